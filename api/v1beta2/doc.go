// The rules of controller-gen for the whole package:
// +kubebuilder:object:generate=true
// +groupName=operator.kyma-project.io

// Package v1beta2 holds the types of API group operator.kyma-project.io/v1beta2 and the names (labels, annotations,
// field manager) that Mothership writes into runtimes.
//
// Only fields that the code acts on are here; later fields arrive with the feature that reads them. The package may
// import k8s.io/apimachinery and the standard library, nothing else: clients of the API must not inherit the
// operator's dependencies.
package v1beta2

//go:generate go tool -modfile=../../go.tools.mod controller-gen object paths=. crd paths=. output:crd:dir=../crd
//go:generate go run -C ../.. ./hack/unwrap api/crd
