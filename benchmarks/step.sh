# Sourced by scripts that measure: step NAME COMMAND... runs a command for LIMIT seconds at most, says how
# it ended, and sets failed=1 if it did not succeed. The next steps run in any case.
failed=0

step() {
  local name=$1 code=0
  shift
  echo "== $name, $(date +%T)"
  timeout -k 10 "$limit" "$@" || code=$?
  if [ "$code" = 124 ] || [ "$code" = 137 ]; then
    echo "== $name: cut after $limit s"
  elif [ "$code" != 0 ]; then
    echo "== $name failed: $code"
  fi
  [ "$code" = 0 ] || failed=1
}
