#!/usr/bin/env bash
# Packs the libraries and headers that a build needs, besides CUDA, CMake and a compiler, from
# Debian packages into a prefix folder, for a GPU machine where nothing can be installed.
#   gpu_bundle.sh FOLDER [BUILD]
# With BUILD, a folder to build in, FOLDER/bin/stepladder is the program for the GPUs in
# FOLDER/architectures (90a; CUDA_ARCHITECTURES selects others), and FOLDER/commit names its source.
# The bundle has no MPI and no oneDNN; their rungs are not built. Libraries are static where Debian
# has static ones, otherwise shared, with their dependencies. They need at least the glibc version
# in FOLDER/glibc. FOLDER/MANIFEST lists packages and files; the same packages give the same
# MANIFEST.
set -euo pipefail
source "$(dirname "$0")/common.sh"

folder=${1:?gpu_bundle.sh: name the folder to pack into}
build=${2:-}
most_megabytes=45
multiarch=$(gcc -print-multiarch)
libraries=/usr/lib/$multiarch
packages=(libfmt-dev libcli11-dev nlohmann-json3-dev libbenchmark-dev libgtest-dev libhwloc-dev
  libxsimd-dev zlib1g-dev)
static="libz libgtest libgtest_main libbenchmark_main"
# Libraries of every machine with a C++ compiler.
of_the_system='^(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\.so'

command -v dpkg-query >/dev/null ||
  die "make gpu-bundle: this system has no Debian packages to pack." \
    "Run it where \`make setup\` installed them."
rm -rf "$folder"
mkdir -p "$folder/licences"
folder=$(realpath "$folder")

# Copies files, not links, because a transfer may lose links. Headers of the architecture's own
# folder go to include/, because compilers search that folder only below /usr.
pack() {
  local target=$folder/${1#/usr/}
  target=${target/#"$folder/include/$multiarch"/"$folder/include"}
  mkdir -p "$(dirname "$target")"
  cp -pL "$1" "$target"
}

owners=()
add_owner() { # FILE; packages list it with or without /usr
  local owner
  owner=$(dpkg-query -S "$1" 2>/dev/null || dpkg-query -S "${1#/usr}" 2>/dev/null) ||
    die "make gpu-bundle: no package owns $1"
  owner=${owner%%: *}
  owners+=("${owner%%:*}")
}

# Packs a shared library under each of its names, and the libraries that it needs.
pack_shared() {
  local file=$1 name needed
  [[ ! -e $folder/${file#/usr/} ]] || return 0
  local real
  real=$(realpath "$file")
  add_owner "$real"
  for name in "$(basename "$file")" "$(basename "$real")" \
    "$(readelf -d "$real" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')"; do
    pack "$libraries/$name"
  done
  for needed in $(readelf -d "$real" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    [[ $needed =~ $of_the_system ]] || pack_shared "$libraries/$needed"
  done
}

for package in "${packages[@]}"; do
  files=$(dpkg-query -L "$package" 2>/dev/null) ||
    die "make gpu-bundle: the package $package is not installed; \`make setup\` installs it"
  owners+=("$package")
  while IFS= read -r file; do
    [[ -f $file ]] || continue
    name=$(basename "$file")
    case $file in
      /usr/include/* | /usr/share/cmake/* | "$libraries"/cmake/*) pack "$file" ;;
      "$libraries"/*.a) [[ " $static " != *" ${name%.a} "* ]] || pack "$file" ;;
      "$libraries"/*.so) [[ " $static " == *" ${name%.so} "* ]] || pack_shared "$file" ;;
    esac
  done <<<"$files"
done

# Reads libraries from the bundle alone, found from the program's own folder.
build_program() {
  local architectures=${CUDA_ARCHITECTURES:-90a} needed commit
  mkdir -p "$build" "$folder/bin"
  CMAKE_PREFIX_PATH=$folder LDFLAGS="-Wl,--disable-new-dtags" cmake --preset release -B "$build" \
    -G Ninja -DSTEPLADDER_ISAS=all -DSTEPLADDER_CUDA=ON \
    "-DSTEPLADDER_CUDA_ARCHITECTURES=$architectures" \
    -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON -DDNNL_LIBRARY=OFF -DZSTD_LIBRARY=OFF \
    -DFFTW_INCLUDE_DIR=OFF -DOPENCL_LIBRARY=OFF -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON \
    "-DCMAKE_INSTALL_RPATH=\$ORIGIN/../lib/$multiarch" >"$build/configure.log" 2>&1 || {
    tail -n 40 "$build/configure.log" >&2
    die "make gpu-bundle: configuring $build failed; the whole output is in $build/configure.log"
  }
  cmake --build "$build" --parallel "$(core_count)" --target stepladder
  strip -o "$folder/bin/stepladder" "$build/stepladder"
  for needed in $(readelf -d "$build/stepladder" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    [[ $needed =~ $of_the_system ]] || pack_shared "$libraries/$needed"
  done
  say "$architectures" >"$folder/architectures"
  rm -f "$folder/commit"
  if commit=$(git rev-parse --short=12 HEAD 2>/dev/null); then
    [[ -z $(git status --porcelain --untracked-files=no) ]] || commit+=" dirty"
    say "$commit" >"$folder/commit"
  fi
}
[[ -z $build ]] || build_program

mapfile -t owners < <(printf '%s\n' "${owners[@]}" | sort -u)
for package in "${owners[@]}"; do
  cp -pL "/usr/share/doc/$package/copyright" "$folder/licences/$package"
done

find "$folder" \( -name '*.so*' -o -name stepladder \) -exec readelf -V {} + |
  grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1 | sed 's/GLIBC_//' >"$folder/glibc"
{
  dpkg-query -W -f='${Package} ${Version}\n' "${owners[@]}"
  (cd "$folder" && find . -type f ! -name MANIFEST -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
} >"$folder/MANIFEST"

kilobytes=$(du -sk --apparent-size "$folder" | cut -f1)
((kilobytes < most_megabytes * 1024)) ||
  die "make gpu-bundle: $folder takes $((kilobytes / 1024)) MB; expected less than $most_megabytes"
say "$folder: $((kilobytes / 1024)) MB from ${#owners[@]} packages, for glibc" \
  "$(cat "$folder/glibc") or newer"
