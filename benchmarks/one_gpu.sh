#!/usr/bin/env bash
# Measures on one GPU the goals that need one, and says which of them hold.
#
# usage: benchmarks/one_gpu.sh OUT [PART...]
#
# OUT is a folder: summary.txt has all lines at once after each part, and a cut run keeps its finished
# parts. PARTS are some of: fixed structure batches kernels jax derivatives energy cold attention hpcg capture
# versions choice races matrices; all of them are the default, in this order. A part that fails, or takes
# longer than LIMIT seconds (150), does not keep the next ones from running. PYTHON names the
# interpreter that has wollemi and wollemi_bench; it is python3 unless it is set. OLD is a folder with an
# older version, for the part versions; MATRICES is a folder of matrices, for choice and matrices. ONLY
# chooses cases of versions and systems of races ("64^3;100^3"), PEERS libraries of races ("warp;cupy"),
# and BUDGET is the seconds of a library in a race. In 150 seconds: PEERS="warp;torch-sla;jax;cupy"
# BUDGET=0.5, since the others run on the host.
# EXECUTOR=omp SCALE=64 tries the parts on a machine without a GPU, on smaller systems.
set -u
out=${1:?usage: benchmarks/one_gpu.sh OUT [PART...]}
parts=${*:2}
parts=${parts:-fixed structure batches kernels jax derivatives energy cold attention hpcg capture versions choice races matrices}
python=${PYTHON:-python3}
limit=${LIMIT:-150}
executor=${EXECUTOR:-cuda}
scale=${SCALE:-1}
matrices=${MATRICES:-}
export PYTHONUNBUFFERED=1 XLA_PYTHON_CLIENT_PREALLOCATE=false
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/.." || exit 1
source benchmarks/step.sh
minutes=$("$python" -c "print(max($limit - 30, 10) / 60)") # suites end by themselves and keep their page

captures() { # the table of calls that graphs record
  local folder code=0
  folder=$(mktemp -d)
  WOLLEMI_CAPTURE_TABLE=$folder "$python" -m pytest -q -m gpu -n 0 -p no:cacheprovider \
    tests/backends/cuda/capture || code=$?
  if [ "$executor" = cuda ]; then
    "$python" -m website.captures "$folder" "$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)" "$(date +%F)" \
      && cp tests/backends/cuda/capture/outcomes.json docs/cuda-graphs.md "$out"
  fi
  rm -r "$folder"
  return "$code"
}
export -f captures
export python executor out

each() { # option words: adds the option to options for each of the words, which have ";" between them
  local words word
  IFS=";" read -ra words <<< "$2"
  for word in ${words[@]+"${words[@]}"}; do
    options+=("$1" "$word")
  done
}

measure() {
  case $1 in
    fixed | structure | batches | kernels | jax | derivatives | energy | cold | attention)
      step "$1" "$python" -m wollemi_bench.acceptance "$1" --executor "$executor" --scale "$scale"
      ;;
    hpcg)
      local grid=192
      [ "$scale" = 1 ] || grid=16
      step hpcg "$python" -m wollemi bench hpcg --executor "$executor" --grid "$grid" --seconds 10
      ;;
    capture) step capture bash -c captures ;;
    versions)
      [ -n "${OLD:-}" ] || { echo "== versions: OLD names no folder with an older version"; return; }
      step versions "$python" -m wollemi_bench.versions "$OLD" "$executor" --rounds 3 \
        --seconds 0.05 ${ONLY:+--only "$ONLY"}
      ;;
    choice)
      step choice "$python" -m wollemi bench suite choice --executor "$executor" --scale "$scale" \
        --minutes "$minutes" ${matrices:+--matrices "$matrices"}
      ;;
    races)
      options=(--executor "$executor" --scale "$scale" --minutes "$minutes" --json "$out/races.jsonl")
      each --only "${ONLY:-}"
      each --against "${PEERS:-}"
      step races "$python" -m wollemi bench suite races "${options[@]}" ${BUDGET:+--budget "$BUDGET"}
      ;;
    matrices)
      [ -n "$matrices" ] || { echo "== matrices: MATRICES names no folder"; return; }
      step matrices "$python" -m wollemi bench spmv "$matrices" --executor "$executor" \
        --json "$out/matrices.jsonl"
      ;;
    *) echo "== no part $1"; failed=1 ;;
  esac
}

echo "== $(date -u +%FT%TZ), $(git rev-parse --short HEAD 2> /dev/null), $(nvidia-smi -L 2> /dev/null | head -n 1)" >> "$out/summary.txt"
for part in $parts; do
  measure "$part" > >(tee -a "$out/summary.txt") 2>&1
done
wait
grep -h -E "^(holds|missed) " "$out/summary.txt" | sort -u | awk '{print $1}' | uniq -c
exit "$failed"
