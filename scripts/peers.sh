#!/usr/bin/env bash
# Installs PyTorch and MKL into an environment of their own and measures beside them: the training
# steps with PyTorch, and the matmul ladder with the newest MKL among the vendors' libraries.
#   OUT=FOLDER   the run folder (results/local/<time>-peers); the matmul rows go to matmul/ in it
#   NETWORK=mlp,mnist_cnn   networks in bench/networks.json
#   RANKS=2      measures data-parallel training steps over that many ranks instead, beside PyTorch
#                with DistributedDataParallel over gloo (NETWORK=mnist_cnn)
# With PRIMITIVE=all_reduce it measures all-reduce in other communication libraries instead; each
# MPI library from PyPI is a folder of its own, .venv-peers/libraries/<name>.
#   SUITE=sweep RANKS=2 VARIANT=… BUDGET=…   as in make bench
#   ONECCL=1     installs and measures oneCCL too (2 GB)
set -euo pipefail
source "$(dirname "$0")/common.sh"

[[ -z ${PRIMITIVE:-} || $PRIMITIVE == all_reduce ]] ||
  die "PRIMITIVE=$PRIMITIVE: only all_reduce has peers of its own; without it training is measured"

environment=.venv-peers
requirements=bench/peers/requirements.txt
stamp=$environment/requirements.sha256
wanted=$({ /usr/bin/python3 --version && cat "$requirements"; } | sha256sum)
if [[ $(cat "$stamp" 2>/dev/null) != "$wanted" ]]; then
  say "Installing PyTorch and MKL into $environment (several gigabytes)"
  /usr/bin/python3 -m venv --clear "$environment"
  if "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
    -r "$requirements"; then
    say "$wanted" >"$stamp"
  elif [[ ${PRIMITIVE:-} == all_reduce ]]; then
    say "pip could not install PyTorch" >"$environment/unavailable"
  else
    die "pip could not install PyTorch and MKL. No other target needs them."
  fi
fi

program=${BUILD:-build}/stepladder
out=${OUT:-results/local/$(date -u +%Y-%m-%dT%H-%M-%SZ)-peers}

# install NAME PACKAGE...: into the folder of that library, unless they are there. What fails leaves
# the reason in it, and the row of the library shows it.
install() {
  local folder=$environment/libraries/$1 packages="${*:2}"
  [[ $(cat "$folder/packages" 2>/dev/null) != "$packages" ]] || return 0
  say "Installing $packages into $folder"
  mkdir -p "$folder"
  if /usr/bin/python3 -m venv "$folder" &&
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "${@:2}"; then
    say "$packages" >"$folder/packages"
    rm -f "$folder/unavailable"
  else
    say "pip could not install $packages" >"$folder/unavailable"
  fi
}

# MPICH beside Open MPI: mpirun and mpicc stay Open MPI's, whose alternatives have the higher
# priority, and MPICH is called as mpirun.mpich.
install_mpich() {
  if command -v mpicc.mpich >/dev/null || ! command -v apt-get >/dev/null; then return; fi
  local as_root=()
  if [[ $(id -u) != 0 ]]; then
    if ! sudo -n true 2>/dev/null; then return; fi
    as_root=(sudo -n)
  fi
  say "Installing mpich and libmpich-dev"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 -qq \
    install -y --no-install-recommends mpich libmpich-dev >/dev/null ||
    say "  apt-get could not install them"
}

if [[ ${PRIMITIVE:-} == all_reduce ]]; then
  allow_mpi_as_root
  install_mpich
  install openmpi openmpi
  install mpich mpich
  install intel impi-rt impi-devel
  if [[ ${ONECCL:-} == 1 ]]; then
    install oneccl oneccl-cpu oneccl-devel impi-devel
  elif [[ ! -e $environment/libraries/oneccl/packages ]]; then
    mkdir -p "$environment/libraries/oneccl"
    say "not installed, 2 GB: ONECCL=1 installs it" >"$environment/libraries/oneccl/unavailable"
  fi
  options=(--suite "${SUITE:-sweep}" --ranks "${RANKS:-2}" --variant "${VARIANT:-}")
  [[ -z ${BUDGET:-} ]] || options+=(--budget "$BUDGET")
  exec "$environment/bin/python" bench/peers/all_reduce.py --program "$program" \
    --libraries "$environment/libraries" --build "${BUILD:-build}/peers" "${options[@]}" \
    --out "$out"
fi

options=(--program "$program" --out "$out")
[[ -z ${NETWORK:-} ]] || options+=(--networks "$NETWORK")
if [[ -n ${RANKS:-} ]]; then
  exec "$environment/bin/python" bench/peers/run.py "${options[@]}" --ranks "$RANKS"
fi
"$environment/bin/python" bench/peers/run.py "${options[@]}"

say "The matmul ladder with MKL"
LD_LIBRARY_PATH=$PWD/$environment/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
  "$program" bench matmul --suite layers --variant 'packed*,fused*,openblas,blis,onednn,mkl' \
  --out "$out/matmul"
