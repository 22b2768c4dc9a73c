#!/usr/bin/env bash
# lint.sh format: formats the C++ and CUDA files in place.
# lint.sh check:  reports where they differ from .clang-format, then runs clang-tidy. Every finding
#                 is an error.
set -euo pipefail
source "$(dirname "$0")/common.sh"

mapfile -d '' -t sources < <(
  git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.hpp' '*.cu' '*.cuh' |
    while IFS= read -rd '' file; do
      [[ ! -f $file ]] || printf '%s\0' "$file"
    done
)
((${#sources[@]})) || die "lint.sh: no C++ or CUDA files; run it in a git checkout of the project."

if [[ ${1:-} == format ]]; then
  clang-format -i "${sources[@]}"
  exit 0
fi

failed=()
say "clang-format: ${#sources[@]} files"
# Not --dry-run: clang-format 14 then rejects the comment after a nested inline namespace, which it
# leaves as it is.
for file in "${sources[@]}"; do
  clang-format "$file" | diff -u --label "$file" --label "$file, formatted" "$file" - ||
    failed=(clang-format)
done

# clang-tidy reads compile_commands.json. The folder is its own and is never built: clang would
# refuse the precompiled headers of GCC.
folder=${BUILD:-build}/lint
scripts/build.sh release "$folder" --configure-only
mapfile -t compiled < <(
  python3 - "$folder/compile_commands.json" "$root" <<'PYTHON'
import json, os, sys

database, root = sys.argv[1:]
with open(database) as file:
    entries = json.load(file)
paths = {os.path.relpath(os.path.join(e["directory"], e["file"]), root) for e in entries}
folders = ("kernels", "harness", "bench")
print("\n".join(sorted(p for p in paths if p.endswith(".cpp") and p.split(os.sep)[0] in folders)))
PYTHON
)
say "clang-tidy: ${#compiled[@]} files"
printf '%s\0' "${compiled[@]}" |
  xargs -0 -n 1 -P "$(core_count)" clang-tidy -p "$folder" --quiet --warnings-as-errors='*' \
    2> >(grep -vE '^[0-9]+ (warnings?|errors?) ' >&2) ||
  failed+=(clang-tidy)

((${#failed[@]} == 0)) || die "make lint: FAILED (${failed[*]})"
say "make lint: passed"
