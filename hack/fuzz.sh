#!/usr/bin/env bash
# Runs every fuzz target of the tested modules, one after the other, for the given time each (default 1m). Run by
# `make fuzz`. A crash stops the run; its input is kept under testdata/fuzz of the package and belongs into the commit
# that mends it.
set -euo pipefail
cd "$(dirname "$0")/.."
fuzztime=${1:-1m}
count=0
for module in . api bench; do
  while IFS=: read -r file name; do
    [ -n "$file" ] || continue
    count=$((count + 1))
    echo "fuzz: $name in $module/$(dirname "$file"), $fuzztime"
    (cd "$module" && go test -run '^$' -fuzz "^$name\$" -fuzztime "$fuzztime" "./$(dirname "$file")")
  done < <(cd "$module" && git ls-files --cached --others --exclude-standard '*_test.go' |
    { if [ "$module" = . ]; then grep -vE '^(api|bench|kube)/' || true; else cat; fi; } |
    { xargs -r grep -HoE '^func Fuzz[A-Za-z0-9_]+' /dev/null || true; } | sed 's/func //')
done
echo "fuzz: $count targets, no crash"
