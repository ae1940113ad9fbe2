#!/usr/bin/env bash
# Builds kube-apiserver, kube-controller-manager, etcd and kubectl from this Go module into a cache outside the work
# tree, once per content of this folder and Go version. Downloads modules only, never a binary.
#
#   kube/build.sh        builds what is missing, then prints the folder
#   kube/build.sh path   prints the folder (KUBEBUILDER_ASSETS where that is set)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  for bin in etcd kube-apiserver kubectl; do
    [ -x "$KUBEBUILDER_ASSETS/$bin" ] || { echo "error: KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS has no executable $bin: unset it to build our own" >&2; exit 1; }
  done
  echo "$KUBEBUILDER_ASSETS"
  exit 0
fi

key=$(cd "$here" && { go env GOVERSION GOOS GOARCH; cat go.mod go.sum build.sh cmd/*/*.go; } | sha256sum | cut -c1-16)
cache=${MOTHERSHIP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mothership}
dir=$cache/kube/$key
if [ "${1:-}" = path ]; then echo "$dir"; exit 0; fi

complete() { [ -x "$dir/kube-apiserver" ] && [ -x "$dir/kube-controller-manager" ] && [ -x "$dir/etcd" ] && [ -x "$dir/kubectl" ]; }
if complete; then echo "$dir"; exit 0; fi

mkdir -p "$cache/kube"
exec 9>"$cache/kube/.lock"
flock 9 2>/dev/null || true # a second build waits here and then finds the result
if complete; then echo "$dir"; exit 0; fi

version=$(cd "$here" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.}; minor=${minor%%.*}
stamp=k8s.io/component-base/version
date=$(date -u -r "$here/go.mod" +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || echo 1970-01-01T00:00:00Z)
# Unstamped servers say v0.0.0, and Helm and others refuse them.
ldflags="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=$minor -X $stamp.gitCommit=module -X $stamp.gitTreeState=archive -X $stamp.buildDate=$date"

tmp=$(mktemp -d "$cache/kube/.build.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
log=$tmp/log
echo "building Kubernetes $version (kube-apiserver, kube-controller-manager, etcd, kubectl) from source, once; about 10 minutes on two cold cores" >&2
start=$SECONDS
build() { # build <out> <package>
  (cd "$here" && CGO_ENABLED=0 go build -v -trimpath -ldflags "$ldflags" -o "$tmp/$1" "$2") 2>&1 | tee -a "$log" |
    awk -v out="$1" 'function t() { "date +%s" | getline now; close("date +%s"); return now }
      BEGIN { begin = t(); last = begin }
      { n++; if (n % 20 == 0) { now = t(); if (now - last >= 15) { printf "  %s: %d packages compiled, %d s\n", out, n, now - begin; fflush(); last = now } } }
      END { printf "  %s: %d packages compiled, linked, %d s\n", out, n, t() - begin }' >&2
}
if ! { build kube ./cmd/kube && build kubectl ./cmd/kubectl; }; then
  echo "error: building Kubernetes failed; the last lines were:" >&2
  tail -n 20 "$log" >&2
  exit 1
fi
for name in kube-apiserver kube-controller-manager etcd; do ln "$tmp/kube" "$tmp/$name"; done
rm -f "$log" "$tmp/kube"
chmod 755 "$tmp"
rm -rf "$dir"
mv "$tmp" "$dir"
trap - EXIT
echo "built in $((SECONDS - start)) s" >&2
echo "$dir"
