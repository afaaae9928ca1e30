#!/usr/bin/env bash
# Measures groups on a machine with several GPUs: 2, 4, 8 or any other number.
#
# usage: benchmarks/several_gpus.sh OUT [POINTS [SCALE]]
#
# OUT is a folder for records. POINTS are those of an axis of the square that each GPU has of a 2-D
# Poisson equation (10000 takes some 40 GB of the host and 10 GB of a GPU for each). SCALE
# divides the points of an axis of the other systems. PYTHON names the interpreter that has wollemi
# and wollemi_bench; it is python3 unless it is set.
set -u
out=${1:?usage: benchmarks/several_gpus.sh OUT [POINTS [SCALE]]}
points=${2:-10000}
scale=${3:-1}
python=${PYTHON:-python3}
export NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0} PYTHONUNBUFFERED=1
mkdir -p "$out"
cd "$(dirname "$0")/.." || exit 1
failed=0

step() { # step NAME COMMAND...: a step that fails does not keep the next ones from running
  local name=$1
  shift
  echo "== $name, $(date +%T)"
  "$@" || { echo "== $name failed: $?"; failed=1; }
}

gpus=$(nvidia-smi -L | wc -l)
nvidia-smi topo -m > "$out/topology.txt"
rm -f "$out/groups.jsonl"
step suite "$python" -m wollemi bench suite groups --executor cuda \
  --scale "$scale" --json "$out/groups.jsonl"
step large "$python" -m wollemi_bench.groups_large "$points"
step plot "$python" -m wollemi_bench.groups_plot "$out/groups.jsonl" "$out/scaling.png"
step tests "$python" -m pytest -q -m gpu -n 0 tests/distributed/test_gpus.py
if command -v mpiexec > /dev/null; then
  for n in $((200 / scale)) $((320 / scale)); do
    step "ranks $n^3" mpiexec -n "$gpus" "$python" -m mpi4py -m wollemi_bench.groups_ranks "$n"
  done
fi
if "$python" -c "import torch.distributed" 2> /dev/null; then
  for n in $((200 / scale)) $((320 / scale)); do
    step "ranks of torchrun $n^3" "$python" -m torch.distributed.run --nproc-per-node="$gpus" \
      -m wollemi_bench.groups_ranks "$n"
  done
fi
exit "$failed"
