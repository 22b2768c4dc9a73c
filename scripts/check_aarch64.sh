#!/usr/bin/env bash
# check_aarch64.sh [TESTS]: cross-compiles the program and its tests for AArch64. Under qemu-user it
# runs the tests of the kernels, or those that the expression matches, and verifies random problems.
# Times from an emulator say nothing. The libraries are Debian's for arm64, in build/aarch64/system,
# which debootstrap fetches; needs root. There is no MPI and no OpenCL among them.
set -euo pipefail
source "$(dirname "$0")/common.sh"

folder=$root/build/aarch64
system=$folder/system
tests=${1:-VerifyAll|VerifyCatches|VerifyLongSums|Convolution|MatmulOrders|Layout|Layers|Tanh|Nan}

[[ $(id -u) == 0 ]] || die "check_aarch64.sh: debootstrap and apt-get need root"
missing=()
command -v debootstrap >/dev/null || missing+=(debootstrap)
command -v qemu-aarch64 >/dev/null || missing+=(qemu-user)
command -v aarch64-linux-gnu-g++ >/dev/null || missing+=(g++-aarch64-linux-gnu)
if ((${#missing[@]})); then
  say "Installing ${missing[*]}"
  apt-get install -y --no-install-recommends "${missing[@]}" >/dev/null ||
    die "check_aarch64.sh: apt-get could not install ${missing[*]}"
fi
mkdir -p "$folder"
if [[ ! -e $system/made ]]; then
  say "Fetching Debian's libraries for arm64 to $system"
  rm -rf "$system"
  # The first stage runs nothing of the other architecture; unpacking is all that a compiler needs.
  packages=libc6-dev,libstdc++-12-dev,libfmt-dev,libhwloc-dev,libbenchmark-dev,libgtest-dev
  packages+=,zlib1g-dev,libcli11-dev,nlohmann-json3-dev,libxsimd-dev
  debootstrap --foreign --arch=arm64 --variant=minbase --include="$packages" bookworm "$system" \
    >"$folder/debootstrap.log" 2>&1 ||
    die "debootstrap failed; its output is in $folder/debootstrap.log"
  for package in "$system"/var/cache/apt/archives/*.deb; do
    dpkg-deb --extract "$package" "$system"
  done
  touch "$system/made"
fi

say "Building for AArch64 in $folder"
cmake -S . -B "$folder" -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake \
  -DSTEPLADDER_SYSROOT="$system" -DSTEPLADDER_CUDA=OFF -DSTEPLADDER_LIBRARIES=system \
  -DSTEPLADDER_WERROR="${WERROR:-OFF}" >"$folder/configure.log" 2>&1 ||
  die "configuring failed; the output is in $folder/configure.log"
cmake --build "$folder" --target stepladder stepladder_tests >"$folder/build.log" 2>&1 ||
  die "building failed; the output is in $folder/build.log"

ctest --test-dir "$folder" --output-on-failure --parallel "$(core_count)" -R "$tests"
qemu-aarch64 -L "$system" "$folder/stepladder" verify matmul convolution max_pool average_pool \
  sgd_update layers reorder low_precision --random 50 --threads 1,2
say "AArch64: passed"
