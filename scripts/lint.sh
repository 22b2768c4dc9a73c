#!/usr/bin/env bash
# lint.sh format: formats the C++ and CUDA files in place.
# lint.sh check:  clang-format, columns, ruff and shellcheck over all files, then clang-tidy over
#                 the C++ files that differ from BASE (default: the commit before; BASE=all: over
#                 all of them). Every finding is an error.
set -euo pipefail
source "$(dirname "$0")/common.sh"

columns=100

# files PATTERN…: those of git that exist, tracked or new, each ended by \0.
files() {
  git ls-files -z --cached --others --exclude-standard -- "$@" |
    while IFS= read -rd '' file; do
      [[ ! -f $file ]] || printf '%s\0' "$file"
    done
}

mapfile -d '' -t sources < <(files '*.cpp' '*.hpp' '*.cu' '*.cuh' '*.cl')
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

mapfile -d '' -t code < <(
  files '*.cpp' '*.hpp' '*.cu' '*.cuh' '*.cl' '*.py' '*.sh' '*.js' '*.css' '*.cmake' \
    '*CMakeLists.txt' Makefile .ci/run
)
say "columns, at most $columns: ${#code[@]} files"
if LC_ALL=C.UTF-8 grep -nE "^.{$((columns + 1)),}" "${code[@]}"; then failed+=(columns); fi

mapfile -d '' -t scripts < <(files '*.sh' .ci/run)
say "shellcheck: ${#scripts[@]} files"
shellcheck -x -P SCRIPTDIR "${scripts[@]}" || failed+=(shellcheck)

mapfile -d '' -t python < <(files '*.py')
say "ruff: ${#python[@]} files"
.venv/bin/ruff check --quiet "${python[@]}" || failed+=(ruff)

# clang-tidy reads compile_commands.json, with each file by itself. The folder is its own and is
# never built: clang would refuse the precompiled headers of GCC.
base=${BASE:-$(git rev-parse -q --verify HEAD~1 || git rev-parse HEAD)}
folder=${BUILD:-build}/lint
changed=()
if [[ $base == all ]]; then
  changed=("${sources[@]}")
else
  git rev-parse -q --verify "$base^{commit}" >/dev/null ||
    die "lint.sh: BASE=$base is no commit of this checkout (BASE=all: all files)"
  mapfile -d '' -t changed < <(
    git diff -z --name-only --diff-filter=d "$base" -- '*.cpp'
    git ls-files -z --others --exclude-standard -- '*.cpp'
  )
fi
compiled=()
if ((${#changed[@]})); then
  UNITY=OFF scripts/build.sh release "$folder" --configure-only
  mapfile -t compiled < <(
    printf '%s\n' "${changed[@]}" | python3 -c '
import json, os, sys

database, root = sys.argv[1:]
with open(database) as file:
    entries = json.load(file)
paths = {os.path.relpath(os.path.join(e["directory"], e["file"]), root) for e in entries}
folders = ("kernels", "harness", "bench")
changed = set(sys.stdin.read().splitlines())
print(*sorted(p for p in paths & changed if p.split(os.sep)[0] in folders), sep="\n")
' "$folder/compile_commands.json" "$root" | grep .
  )
fi
say "clang-tidy: ${#compiled[@]} files"
((${#compiled[@]} == 0)) || printf '%s\0' "${compiled[@]}" |
  xargs -0 -n 1 -P "$(core_count)" clang-tidy -p "$folder" --quiet --warnings-as-errors='*' \
    --extra-arg=-Wno-unknown-warning-option \
    2> >(grep -vE '^[0-9]+ (warnings?|errors?) ' >&2) ||
  failed+=(clang-tidy)

((${#failed[@]} == 0)) || die "make lint: FAILED (${failed[*]})"
say "make lint: passed"
