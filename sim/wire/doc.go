// Package wire speaks the Kubernetes API for one simulated cluster: paths, discovery, content types, verbs, watches, Status errors.
//
// # Overview
//
// Serve answers one request for one cluster. It keeps nothing between requests. Answers are JSON, whole or metadata only, and protobuf
// for the metadata of one object and for Status; bodies are JSON, YAML for apply, or protobuf for built-in kinds. Errors are what sim/state returns, as Status objects.
//
// It may import sim/state, sim/schema, sim/content, k8s.io/apimachinery, k8s.io/api and client-go's types.
package wire
