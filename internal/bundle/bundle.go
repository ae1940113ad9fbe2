// Package bundle is the immutable, content-addressed result of rendering a module: its objects in stages, each
// serialised once as the bytes that will be sent to runtimes.
//
// A bundle depends on nothing but its input, so it is shared by the whole fleet. The package may import the api module,
// internal/kind and k8s.io/apimachinery; it knows neither sources nor runtimes.
package bundle

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/kind"
)

// Ref is the identity of an object in a cluster. The version is not part of it.
type Ref struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is Kind.group namespace/name, the form used in messages.
func (r Ref) String() string {
	var b strings.Builder
	b.WriteString(r.Kind)
	if r.Group != "" {
		b.WriteString("." + r.Group)
	}
	b.WriteByte(' ')
	if r.Namespace != "" {
		b.WriteString(r.Namespace + "/")
	}
	b.WriteString(r.Name)
	return b.String()
}

// GroupKind of the object.
func (r Ref) GroupKind() schema.GroupKind { return schema.GroupKind{Group: r.Group, Kind: r.Kind} }

// Object is one object of a bundle. It is immutable.
type Object struct {
	Ref
	// Version of the API that the bytes are written in.
	Version string
	// Scope of the kind. With ScopeUnknown the runtime decides, and Namespace is what the source says, or empty.
	Scope kind.Scope
	// DefaultNamespace is the module's: it holds where the runtime says that the kind is namespaced and the source
	// names no namespace.
	DefaultNamespace string
	// Stage in which the object is applied.
	Stage Stage
	// Digest ("sha256:<hex>") of the bytes without the digest annotation, which carries it.
	Digest string
	// Bytes are the JSON that is sent.
	Bytes []byte
	// Member says whether the object carries the ApplySet's label, so that it is listed, pruned and removed.
	// Namespaces are never members.
	Member bool
	// Manager is the field manager that the object is applied under: the same for all members; a set's own for Namespaces,
	// which several sets may share.
	Manager string
	// DigestKey is the annotation that carries the digest: again a set's own for Namespaces.
	DigestKey string
	// Keep protects the object from pruning and removal.
	Keep bool
	// Once says that the object is created once and never changed (a generated Secret of a per-runtime module).
	Once bool
	// Origin is the file of the source that the object comes from, for messages.
	Origin string
}

// GVK is the object's group, version and kind.
func (o *Object) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: o.Group, Version: o.Version, Kind: o.Kind}
}

// Hook is a Helm hook of the chart. Hooks are reported and never run.
type Hook struct {
	Ref
	// Events are the hook's events, such as "post-install".
	Events []string `json:"events"`
	// Origin is the template that the hook comes from.
	Origin string `json:"origin,omitempty"`
}

// Image is the reference of an image that was replaced by that of a mirror.
type Image struct {
	Ref
	// Path is the JSON pointer (RFC 6901) of the field in the object.
	Path string `json:"path"`
	// From is what the source says, To what stands in the bundle.
	From string `json:"from"`
	To   string `json:"to"`
}

// Bundle is a rendered module. It is immutable and safe for concurrent use.
type Bundle struct {
	// Module and Namespace are the identity of the module in a runtime.
	Module, Namespace string
	// Digest ("sha256:<hex>") of all objects' bytes in order.
	Digest string
	// Objects sorted by stage, kind, namespace and name.
	Objects []*Object
	// Hooks that were left out.
	Hooks []Hook
	// Images that are taken from a mirror.
	Images []Image
	// Warnings of the rendering, for people.
	Warnings []string
}

// ParentName is the name of the ConfigMap in SystemNamespace that is the ApplySet parent of a module.
func ParentName(namespace, module string) string { return namespace + "." + module }

// ApplySetID is the ID of a module's set, after KEP-3659: it is the same in every runtime.
func ApplySetID(namespace, module string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{ParentName(namespace, module), v1beta2.SystemNamespace, "ConfigMap", ""}, ".")))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
}

// Digest is the digest of some bytes in the form used throughout: "sha256:<hex>".
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
