#!/usr/bin/env bash
# Installs missing packages; prints nothing if none is missing.
#   scripts/setup.sh          packages, the Python environment .venv, real digits in data/mnist
#   scripts/setup.sh data     the same; fails if the digits cannot be downloaded
#   scripts/setup.sh lint     packages, .venv and the tools of make lint
#   scripts/setup.sh format   clang-format alone
#   scripts/setup.sh fuzz     clang with libFuzzer, for make fuzz
#   scripts/setup.sh test     a browser, ccache, oclgrind, the tests' Python packages, for make test
#   scripts/setup.sh libraries  the newest MKL and oneDNN of the Python registry, for make bench
set -euo pipefail
source "$(dirname "$0")/common.sh"

packages=(
  build-essential cmake ninja-build git pkg-config python3 python3-venv
  libcli11-dev nlohmann-json3-dev libfmt-dev libhwloc-dev libxsimd-dev zlib1g-dev
  libbenchmark-dev libgtest-dev
  libopenmpi-dev openmpi-bin libopenblas0-openmp libblis4-openmp libdnnl-dev
  libzstd-dev libsimgrid-dev libfftw3-dev
  ocl-icd-opencl-dev pocl-opencl-icd libclblast-dev
)
# name of the library, header to be found
required_headers=(
  CLI11 CLI/CLI.hpp nlohmann-json nlohmann/json.hpp fmt fmt/core.h hwloc hwloc.h
  "Google Benchmark" benchmark/benchmark.h zlib zlib.h xsimd xsimd/xsimd.hpp
  GoogleTest gtest/gtest.h
)
requirements=plots/requirements.txt
test_requirements=('pytest>=7,<9' 'pytest-xdist>=3,<4')
stamp=.venv/requirements.sha256
tests_requirements=tests/requirements.txt
tests_stamp=.venv/tests-requirements.sha256
# oneDNN for GNU OpenMP, which this program uses; newer releases there need other runtimes.
vendor_libraries=(mkl onednn-cpu-gomp onednn-devel-cpu-gomp)
vendor_stamp=.libraries/installed
log=$root/build/setup.log

mode=${1:-all}
tools=()
case $mode in
  all | data) ;;
  lint) tools=(clang-format clang-tidy shellcheck libomp-dev) ;; # clang cannot parse GCC's omp.h
  format)
    packages=()
    tools=(clang-format)
    ;;
  fuzz) # libomp: clang cannot parse GCC's omp.h
    packages=()
    tools=(clang libclang-rt-dev libomp-dev)
    ;;
  test) # opens the report pages; finds races and overruns of OpenCL kernels
    packages=()
    tools=(chromium ccache oclgrind)
    ;;
  libraries) packages=() ;;
  *)
    die "setup.sh: unknown mode '$mode';" \
      "expected nothing, data, lint, format, fuzz, test or libraries"
    ;;
esac

# attempt STEP COMMAND…: prints STEP, logs the command's output, tries twice.
attempt() {
  local step=$1
  shift
  say "$step"
  mkdir -p "$(dirname "$log")"
  local try
  for try in 1 2; do
    printf '\n+ %s\n' "$*" >>"$log"
    if "$@" >>"$log" 2>&1 </dev/null; then
      return 0
    fi
    if [[ $try == 1 ]]; then
      say "  failed; trying again"
      sleep 3
    fi
  done
  return 1
}

fail_with_log() {
  {
    say "$1 The last lines of its output:"
    tail -n 20 "$log" | sed 's/^/  | /'
    say "The whole output is in $log"
  } >&2
  exit 1
}

# --- packages ----------------------------------------------------------------------------------

missing_packages() {
  local installed name
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for name in "$@"; do
    [[ $'\n'$installed$'\n' == *$'\n'"installed $name"$'\n'* ]] || say "$name"
  done
}

install_packages() {
  local as_root=()
  if [[ $(id -u) != 0 ]]; then
    if sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      local shell="sudo sh"
      command -v sudo >/dev/null || shell="su root"
      {
        say "Packages are missing, and installing them needs root. Run this one command, then" \
          "make again:"
        say
        say "  $shell -c 'apt-get update && apt-get install -y --no-install-recommends $*'"
        say
        say "(CMAKE_PREFIX_PATH names folders of libraries installed elsewhere.)"
      } >&2
      exit 1
    fi
  fi
  # A stale list of a foreign repository is no error: if a package needs it, the install fails.
  attempt "Reading the package lists" "${as_root[@]}" apt-get update ||
    say "  not all lists could be read; continuing with the others"
  attempt "Installing packages: $*" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$@" ||
    fail_with_log "apt-get could not install the packages."
}

# --- without apt, or with libraries from a prefix folder -----------------------------------------

IFS=':;' read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}"

# The missing requirements of the core, one per line.
missing_requirements() {
  local compiler=${CXX:-c++}
  command -v cmake >/dev/null || say "CMake 3.25 or newer"
  local prefix includes=()
  for prefix in "${prefixes[@]}"; do
    includes+=("-I$prefix/include")
  done
  if ! echo | $compiler -std=c++20 -x c++ -fsyntax-only - 2>/dev/null; then
    say "a C++20 compiler ($compiler; GCC 12 is what we test)"
    return
  fi
  local i
  for ((i = 0; i < ${#required_headers[@]}; i += 2)); do
    if ! echo "#include <${required_headers[i + 1]}>" |
      $compiler -std=c++20 -x c++ "${includes[@]}" -E - >/dev/null 2>&1; then
      say "${required_headers[i]} (library and header ${required_headers[i + 1]})"
    fi
  done
}

has_library() {
  local prefix
  for prefix in "${prefixes[@]}" /usr /usr/local; do
    if compgen -G "$prefix/lib*/lib$1.*" >/dev/null; then
      return 0
    fi
  done
  { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | grep -q "lib$1\.so"
}

missing_options() {
  command -v ninja >/dev/null || say ninja
  command -v mpirun >/dev/null || say MPI
  has_library openblas || say OpenBLAS
  has_library blis || say BLIS
  has_library dnnl || say oneDNN
  has_library zstd || say zstd
  has_library simgrid || say SimGrid
  has_library fftw3f || say FFTW
  has_library OpenCL || say OpenCL
  has_library clblast || say CLBlast
}

accept_system_libraries() {
  local missing options
  mapfile -t missing < <(missing_requirements)
  if ((${#missing[@]})); then
    {
      say "This system has no apt-get. Install the following with its own package manager, or" \
        "into a folder that CMAKE_PREFIX_PATH names:"
      printf '  %s\n' "${missing[@]}"
      say "Optional: ninja, MPI (Open MPI), OpenBLAS, BLIS, oneDNN, zstd, FFTW, OpenCL (PoCL)," \
        "CLBlast, Python 3 with numpy, matplotlib, Jinja2 and Pygments."
    } >&2
    exit 1
  fi
  options=$(missing_options | paste -sd, | sed 's/,/, /g')
  [[ -z $options ]] || say "Continuing without: $options"
}

# --- Python --------------------------------------------------------------------------------------

# Identifies the interpreter and requirements of .venv, which is made again only if they change.
wanted_stamp() {
  { "$1" --version && cat "$requirements" && say "${test_requirements[@]}"; } | sha256sum
}

environment_is_current() {
  [[ $(cat "$stamp" 2>/dev/null) == "$1" ]] && .venv/bin/python -c '' 2>/dev/null
}

install_python_packages() {
  attempt "Installing the Python packages into .venv" .venv/bin/python -m pip install \
    --disable-pip-version-check -r "$requirements" "${test_requirements[@]}"
}

setup_python() {
  # Debian's python3-venv belongs to /usr/bin/python3, not to another python3 earlier on PATH.
  local python=/usr/bin/python3 wanted
  [[ -x $python ]] || python=python3
  wanted=$(wanted_stamp "$python")
  ! environment_is_current "$wanted" || return 0
  attempt "Creating the Python environment .venv" "$python" -m venv --clear .venv ||
    fail_with_log "The Python environment could not be created."
  install_python_packages || fail_with_log "pip could not install the Python packages."
  say "$wanted" >"$stamp"
}

make_environment_on_system_packages() {
  python3 -m venv --clear --system-site-packages .venv ||
    python3 -m venv --clear --system-site-packages --without-pip .venv # without ensurepip
}

# Without apt there may be no package registry either: use the packages that Python already has, and
# go on without charts if they are missing.
setup_python_from_system() {
  local wanted
  if ! wanted=$(wanted_stamp python3 2>/dev/null); then
    say "No Python 3: no charts"
    return
  fi
  ! environment_is_current "$wanted" || return 0
  if ! attempt "Creating the Python environment .venv" make_environment_on_system_packages; then
    say "Python 3 lacks its venv module: no charts"
  elif .venv/bin/python -c 'import jinja2, matplotlib, numpy, pygments' 2>/dev/null ||
    install_python_packages; then
    say "$wanted" >"$stamp"
  else
    say "numpy, matplotlib, Jinja2 or Pygments is missing and pip could not install it ($log):" \
      "no charts or no report"
  fi
}

# For make lint, and for the tests in a browser and of the compiled code of CUDA rungs, which
# without them are skipped or fail and say so.
setup_tests() {
  local wanted
  [[ -x .venv/bin/python ]] || return 0
  wanted=$(sha256sum "$tests_requirements")
  [[ $(cat "$tests_stamp" 2>/dev/null) != "$wanted" ]] || return 0
  if attempt "Installing the Python packages of the tests into .venv" \
    .venv/bin/python -m pip install --disable-pip-version-check -r "$tests_requirements"; then
    say "$wanted" >"$tests_stamp"
  else
    say "pip could not install them ($log): no tests in a browser or of compiled CUDA code," \
      "no ruff"
  fi
}

# 270 MB to fetch and 840 MB on disk: into a folder of their own, where the build finds them before
# those of the system. Without them it takes the latter.
setup_libraries() {
  local wanted="${vendor_libraries[*]}"
  [[ $(cat "$vendor_stamp" 2>/dev/null) != "$wanted" ]] || return 0
  local python=/usr/bin/python3
  [[ -x $python ]] || python=python3
  local step="Installing the newest vendor libraries into .libraries"
  step+=" (840 MB; LIBRARIES=system keeps the system's)"
  if attempt "$step" "$python" -m venv --clear .libraries &&
    attempt "  ${wanted// /, }" .libraries/bin/python -m pip install \
      --disable-pip-version-check --no-deps "${vendor_libraries[@]}"; then
    say "$wanted" >"$vendor_stamp"
  else
    rm -rf .libraries
    say "pip could not install them ($log): the vendor rungs use the system's libraries"
  fi
}

# --- data ----------------------------------------------------------------------------------------

# Without the digits training uses generated images and reports it: only mode data fails.
setup_data() {
  local python=.venv/bin/python
  [[ -x $python ]] || python=$(command -v python3) || python=
  if [[ -n $python ]]; then
    "$python" scripts/data.py || [[ $mode != data ]] || exit 1
  elif [[ $mode == data ]]; then
    die "No real digits: Python 3 is needed to download them."
  fi
}

# -------------------------------------------------------------------------------------------------

missing=()
from_system=
if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
  mapfile -t missing < <(missing_packages "${packages[@]}")
  if ((${#missing[@]})) && [[ -n ${CMAKE_PREFIX_PATH:-} && -z $(missing_requirements) ]]; then
    from_system=1
    missing=()
  fi
  mapfile -t -O "${#missing[@]}" missing < <(missing_packages "${tools[@]}")
  ((${#missing[@]} == 0)) || install_packages "${missing[@]}"
else
  from_system=1
  for tool in "${tools[@]}"; do
    [[ $mode != test ]] || continue # without a browser its tests are skipped
    [[ $tool == lib* ]] || command -v "$tool" >/dev/null ||
      die "$tool is needed, and this system has no apt-get to install it."
  done
fi

if [[ $mode == format || $mode == fuzz ]]; then
  exit 0
elif [[ $mode == test ]]; then
  setup_tests
  exit 0
elif [[ $mode == libraries ]]; then
  setup_libraries
  exit 0
elif [[ -n $from_system ]]; then
  accept_system_libraries
  setup_python_from_system
else
  setup_python
fi
if [[ $mode == lint ]]; then setup_tests; else setup_data; fi
