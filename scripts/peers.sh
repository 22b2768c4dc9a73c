#!/usr/bin/env bash
# Installs PyTorch and MKL into an environment of their own and measures beside them: the training
# steps with PyTorch, and the matmul ladder with the newest MKL among the vendors' libraries.
#   OUT=FOLDER   the run folder (results/local/<time>-peers); the matmul rows go to matmul/ in it
set -euo pipefail
source "$(dirname "$0")/common.sh"

environment=.venv-peers
requirements=bench/peers/requirements.txt
stamp=$environment/requirements.sha256
wanted=$({ /usr/bin/python3 --version && cat "$requirements"; } | sha256sum)
if [[ $(cat "$stamp" 2>/dev/null) != "$wanted" ]]; then
  say "Installing PyTorch and MKL into $environment (several gigabytes)"
  /usr/bin/python3 -m venv --clear "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" ||
    die "pip could not install PyTorch and MKL. No other target needs them."
  say "$wanted" >"$stamp"
fi

program=${BUILD:-build}/stepladder
out=${OUT:-results/local/$(date -u +%Y-%m-%dT%H-%M-%SZ)-peers}
"$environment/bin/python" bench/peers/run.py --program "$program" --out "$out"

say "The matmul ladder with MKL"
LD_LIBRARY_PATH=$PWD/$environment/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
  "$program" bench matmul --suite layers --variant 'packed*,fused*,openblas,blis,onednn,mkl' \
  --out "$out/matmul"
