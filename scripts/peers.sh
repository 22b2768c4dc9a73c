#!/usr/bin/env bash
# Installs the peers apart from everything else, and measures the training steps beside them.
#   OUT=FOLDER   the run folder (results/local/<time>-peers)
set -euo pipefail
source "$(dirname "$0")/common.sh"

environment=.venv-peers
requirements=bench/peers/requirements.txt
stamp=$environment/requirements.sha256
wanted=$({ /usr/bin/python3 --version && cat "$requirements"; } | sha256sum)
if [[ $(cat "$stamp" 2>/dev/null) != "$wanted" ]]; then
  say "Installing PyTorch into $environment (some gigabytes)"
  /usr/bin/python3 -m venv --clear "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" ||
    die "pip could not install PyTorch; nothing else needs it."
  say "$wanted" >"$stamp"
fi

"$environment/bin/python" bench/peers/run.py --program "${BUILD:-build}/stepladder" \
  --out "${OUT:-results/local/$(date -u +%Y-%m-%dT%H-%M-%SZ)-peers}"
