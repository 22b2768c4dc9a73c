#!/usr/bin/env bash
# Measures the rungs that `best` chooses from on the suites layers, thin, deepbench and alexnet and on
# problems of random sizes, fits the cost model, and prints its regret on other random problems.
# Variables: OUT (the file; the runs stay in a folder beside it) COUNT (random products to fit,
# twice as many convolutions) BUDGET THREADS RESUME BUILD (see make help).
set -euo pipefail
source "$(dirname "$0")/common.sh"

program=${BUILD:-build}/stepladder
python=.venv/bin/python
out=${OUT:-results/local/cost_model.json}
runs=${out%.json}-runs
count=${COUNT:-200}
budget=${BUDGET:-0.05}
cores=$(core_count)
threads=${THREADS:-$( ((cores > 1)) && say "1,$cores" || say 1)}
[[ $count =~ ^[1-9][0-9]{0,4}$ ]] || die "make cost-model: COUNT=$count: expected a whole number from 1"
[[ $out == *.json ]] || die "make cost-model: OUT=$out: expected the name of a .json file"
[[ -n ${RESUME:-} || ! -e $runs ]] || die "make cost-model: $runs exists; RESUME=1 goes on in it, another OUT begins anew"

isa=$("$program" machine --json | "$python" -c 'import json, sys; print(json.load(sys.stdin)["isa"][-1])')
declare -A rungs=(
  [matmul]="simd_$isa,openmp_$isa,packed_$isa,packed_openmp_$isa,fused_$isa,skinny_$isa,short_k_$isa"
  [convolution]="simd_$isa,openmp_$isa,direct_tile_$isa,direct_pixels_$isa,fft_$isa,pointwise_$isa,winograd_$isa"
)

measure() { # FOLDER PRIMITIVE OPTION…
  "$program" bench "$2" "${@:3}" --variant "${rungs[$2]}" --threads "$threads" --budget "$budget" \
    --out "$1" $([[ ! -d $1 ]] || say --resume) >"$runs/bench.log" 2>&1 ||
    { tail -n 5 "$runs/bench.log" >&2; die "make cost-model: measuring $2 failed; the output is in $runs/bench.log"; }
}

mkdir -p "$runs"
for primitive in matmul convolution; do
  say "$primitive: suites (after $((SECONDS / 60)) min)"
  measure "$runs/fitted" "$primitive" --suite layers,thin,deepbench,alexnet # convolution has no thin
  drawn=$([[ $primitive == matmul ]] && say "$count" || say $((2 * count)))
  say "$primitive: $drawn random problems to fit (after $((SECONDS / 60)) min)"
  "$python" scripts/draw_problems.py "$primitive" --count "$drawn" --seed 1001 >"$runs/$primitive-fitted.csv"
  measure "$runs/fitted" "$primitive" --suite-file "$runs/$primitive-fitted.csv"
  say "$primitive: other random problems (after $((SECONDS / 60)) min)"
  "$python" scripts/draw_problems.py "$primitive" --count $(((count + 3) / 4)) --seed 2002 >"$runs/$primitive-checked.csv"
  measure "$runs/checked" "$primitive" --suite-file "$runs/$primitive-checked.csv"
done
"$python" scripts/cost_model.py fit "$runs/fitted" --out "$out"
say "Model: $out. Its regret on the problems that it was not fitted to:"
"$python" scripts/cost_model.py check "$out" "$runs/checked"
