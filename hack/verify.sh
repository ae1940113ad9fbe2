#!/usr/bin/env bash
# Checks that what is committed is what the sources make: modules tidy, formatted, vetted, linted, and nothing generated
# is out of date. Prints each step; stops at the first that fails. Run by `make verify`.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { echo "verify: $*"; }

for dir in . api bench kube; do
  step "go mod tidy -diff in $dir"
  (cd "$dir" && go mod tidy -diff) || { echo "error: go.mod or go.sum in $dir is not tidy: run go mod tidy there" >&2; exit 1; }
done

step gofmt
unformatted=$(git ls-files --cached --others --exclude-standard '*.go' | xargs gofmt -s -l)
[ -z "$unformatted" ] || { printf 'error: not formatted: run make fmt\n%s\n' "$unformatted" >&2; exit 1; }

for dir in . api bench; do
  step "go vet in $dir"
  (cd "$dir" && go vet ./...)
done
# With the flags of kube/build.sh, so that Kubernetes is not compiled a second time.
step "go vet in kube"
(cd kube && CGO_ENABLED=0 go vet -trimpath ./...)

step "make generate"
make --no-print-directory -s generate

step "make lint"
make --no-print-directory -s lint

step "work tree"
dirty=$(git status --porcelain)
if [ -n "$dirty" ]; then
  printf 'error: the work tree is dirty: commit what was generated, or what you changed\n%s\n' "$dirty" >&2
  git --no-pager diff --stat >&2
  exit 1
fi
echo "verify: all good"
