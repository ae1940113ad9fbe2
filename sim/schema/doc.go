// Package schema knows kinds: what they are called, how their objects are completed, checked and merged.
//
// # Overview
//
// A Kind is built in (BuiltIn) or made of a CustomResourceDefinition (Custom). Its Versions complete objects (drop unknown
// fields, fill in defaults), validate them, and keep managed fields by the very code that the API server uses
// (k8s.io/apimachinery/pkg/util/managedfields over structured-merge-diff). All of it is immutable once made and shared by all
// clusters of the process: equal definitions give one Kind.
//
// It may import internal/kind for the table of built-in kinds, k8s.io/apimachinery, k8s.io/apiextensions-apiserver,
// k8s.io/kube-openapi, structured-merge-diff, and client-go's scheme and apply configurations.
package schema
