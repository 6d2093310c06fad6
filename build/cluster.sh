#!/bin/bash
# Builds the programs of a Kubernetes cluster from their Go module: cluster.sh DIR VERSION PROGRAM...
# Minutes the first time; the Go build cache makes a second time short.
set -euo pipefail
dir=$1 version=$2
shift 2
module=$(mktemp -d)
trap 'rm -rf "$module"' EXIT
cd "$module"
export GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0

# Kubernetes' own go.mod takes its libraries from a folder of its source tree, which the module does not carry;
# they are published too: v1.A.B of Kubernetes goes with v0.A.B of each.
own=$(go mod download -json "k8s.io/kubernetes@$version" | jq -r .GoMod)
libraries=$(go mod edit -json "$own" | jq -r '.Replace[] | select(.New.Path | startswith("./staging/")).Old.Path')
go mod init cluster
go mod edit -go="$(go mod edit -json "$own" | jq -r .Go)" -require="k8s.io/kubernetes@$version"
for library in $libraries; do
  go mod edit -replace="$library=$library@v0.${version#v1.}"
done

stamp="-X k8s.io/component-base/version.gitVersion=$version -X k8s.io/client-go/pkg/version.gitVersion=$version"
go build -ldflags="-s -w $stamp" -o "$dir/" "${@/#/k8s.io/kubernetes/cmd/}"
