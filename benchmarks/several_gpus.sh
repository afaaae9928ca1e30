#!/usr/bin/env bash
# Measures groups on a machine with several GPUs: 2, 4, 8 or any other number.
#
# usage: benchmarks/several_gpus.sh OUT [POINTS [SCALE [PART...]]]
#
# OUT is a folder for records. POINTS are the points of an axis of the square that each GPU has of a 2-D
# Poisson equation (10000 takes some 15 GB of a GPU for each). SCALE divides the points of an axis of
# the other systems. PARTS are some of: suite large plot tests ranks torchrun failures exit ends sanitizer;
# all of them are the default, so that a run that was cut can be completed. A part that fails, or takes
# longer than LIMIT seconds (1200), does not keep the next ones from running. PYTHON names the
# interpreter that has wollemi and wollemi_bench; it is python3 unless it is set. EXECUTOR=omp and
# MEMBERS=2 try the parts on a machine without a GPU.
set -u
out=${1:?usage: benchmarks/several_gpus.sh OUT [POINTS [SCALE [PART...]]]}
points=${2:-10000}
scale=${3:-1}
parts=${*:4}
parts=${parts:-suite large plot tests ranks torchrun failures exit ends sanitizer}
python=${PYTHON:-python3}
limit=${LIMIT:-1200}
executor=${EXECUTOR:-cuda}
own=own # each rank takes its own GPU
[ "$executor" = cuda ] || own=omp:1
export NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0} PYTHONUNBUFFERED=1
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/.." || exit 1
source benchmarks/step.sh

gpus=${MEMBERS:-$(nvidia-smi -L 2> /dev/null | wc -l)}
nvidia-smi topo -m > "$out/topology.txt" 2> /dev/null
sizes="$((200 / scale)) $((320 / scale))"
launched=("$python" -m torch.distributed.run "--nproc-per-node=$gpus")

for part in $parts; do
  case $part in
    suite)
      rm -f "$out/groups.jsonl"
      step suite "$python" -m wollemi bench suite groups --executor "$executor" \
        --scale "$scale" --json "$out/groups.jsonl"
      ;;
    large) step large "$python" -m wollemi_bench.groups_large "$points" "$executor" ;;
    plot) step plot "$python" -m wollemi_bench.groups_plot "$out/groups.jsonl" "$out/scaling.png" ;;
    tests) step tests "$python" -m pytest -q -m gpu -n 0 tests/distributed/test_gpus.py ;;
    ranks)
      # Open MPI refuses root, and containers have no other user
      [ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
      command -v mpiexec > /dev/null || { echo "== ranks: no mpiexec"; continue; }
      for n in $sizes; do
        step "ranks $n^3" mpiexec -n "$gpus" "$python" -m mpi4py -m wollemi_bench.groups_ranks "$n"
      done
      ;;
    torchrun)
      "$python" -c "import torch.distributed" 2> /dev/null || { echo "== torchrun: no torch"; continue; }
      step "links of torchrun" "${launched[@]}" -m wollemi info --links
      for n in $sizes; do
        step "ranks of torchrun $n^3" "${launched[@]}" -m wollemi_bench.groups_ranks "$n"
      done
      ;;
    failures) # a rank fails while the others wait for it on their GPUs: they hear of it within 5 s
      step failures "${launched[@]}" tests/distributed/mpi/ranks.py caught "$own"
      ;;
    exit) # a member of one process fails while others wait for it: the process ends within a minute
      links=("")
      [ "$executor" = cuda ] && links=(peer nccl)
      for link in "${links[@]}"; do
        limit=60 step "exit ${link:-default}" "$python" -m wollemi_bench.groups_exit "$executor" \
          ${link:+"$link"}
      done
      ;;
    ends) # one of two members or ranks fails in each way, once: all have ended within 5 s
      step ends "$python" -m wollemi_bench.groups_ends "$executor" 1
      ;;
    sanitizer)
      command -v compute-sanitizer > /dev/null || { echo "== sanitizer: no compute-sanitizer"; continue; }
      for tool in memcheck racecheck; do
        step "sanitizer $tool" compute-sanitizer --tool "$tool" --error-exitcode 3 "$python" -m pytest \
          -q -m gpu -n 0 tests/distributed/test_gpus.py -k "products_on_gpus and peer-2"
      done
      ;;
    *) echo "== no part $part"; failed=1 ;;
  esac
done
exit "$failed"
