package content

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"sync/atomic"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// Content is what an object says. It is immutable and safe for concurrent use.
type Content struct {
	// APIVersion and Kind that it was stored as.
	APIVersion, Kind string
	// Namespace (empty for cluster-wide kinds) and Name.
	Namespace, Name string
	// Labels are the object's; nil if it has none.
	Labels map[string]string
	// Owners are the UIDs of the objects that it belongs to.
	Owners []types.UID
	// Finalizers that must go before the object does.
	Finalizers []string
	// Deleting says that it has a deletionTimestamp.
	Deleting bool

	meta, rest []byte // the insides of metadata, and of the object without apiVersion, kind and metadata
	sum        sum
	tree       weak.Pointer[tree]
	proto      atomic.Pointer[[]byte] // meta as protobuf, once somebody asked for it
}

type sum [16]byte

// tree is a decoded content.
type tree struct{ object map[string]any }

// Fields of metadata that are of the identity.
var identityFields = []string{"uid", "resourceVersion", "creationTimestamp", "generation", "selfLink"}

// New interns what an object says. The tree is taken over: nobody may change it afterwards. What is of its identity is left
// out. The object must have a name.
func New(object map[string]any) (*Content, error) {
	meta, _ := object["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	for _, f := range identityFields {
		delete(meta, f)
	}
	object = maps.Clone(object)
	object["metadata"] = meta
	c := &Content{}
	c.APIVersion, _ = object["apiVersion"].(string)
	c.Kind, _ = object["kind"].(string)
	if err := c.encode(object, meta); err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", c.Kind, c.Name, err)
	}
	return intern(c, &tree{object: object})
}

// parsed are the fields of metadata that clusters act on.
type parsed struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	Labels            map[string]string `json:"labels"`
	Finalizers        []string          `json:"finalizers"`
	DeletionTimestamp string            `json:"deletionTimestamp"`
	OwnerReferences   []struct {
		UID types.UID `json:"uid"`
	} `json:"ownerReferences"`
}

func (c *Content) encode(object, meta map[string]any) error {
	encoded, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	rest := maps.Clone(object)
	for _, f := range []string{"apiVersion", "kind", "metadata"} {
		delete(rest, f)
	}
	c.meta = encoded[1 : len(encoded)-1]
	if encoded, err = json.Marshal(rest); err != nil {
		return err
	}
	c.rest = encoded[1 : len(encoded)-1]
	h := sha256.New()
	for _, part := range [][]byte{[]byte(c.APIVersion), []byte(c.Kind), c.meta, c.rest} {
		_, _ = h.Write(part)
		_, _ = h.Write([]byte{0})
	}
	copy(c.sum[:], h.Sum(nil))
	return nil
}

// index reads what clusters act on. It is done once per content, when it is new.
func (c *Content) index() error {
	var p parsed
	if err := json.Unmarshal(wrap(c.meta), &p); err != nil {
		return err
	}
	c.Name, c.Namespace, c.Labels, c.Finalizers, c.Deleting = p.Name, p.Namespace, p.Labels, p.Finalizers, p.DeletionTimestamp != ""
	for _, o := range p.OwnerReferences {
		c.Owners = append(c.Owners, o.UID)
	}
	return nil
}

func wrap(inside []byte) []byte {
	out := make([]byte, 0, len(inside)+2)
	return append(append(append(out, '{'), inside...), '}')
}

// Tree is the object as a tree that is shared: it must not be changed, and has no identity.
func (c *Content) Tree() map[string]any {
	if t := c.tree.Value(); t != nil {
		return t.object
	}
	object := map[string]any{}
	if err := kjson.Unmarshal(wrap(c.rest), &object); err != nil {
		panic(fmt.Sprintf("decoding what was encoded here: %v", err))
	}
	meta := map[string]any{}
	if err := kjson.Unmarshal(wrap(c.meta), &meta); err != nil {
		panic(fmt.Sprintf("decoding what was encoded here: %v", err))
	}
	object["apiVersion"], object["kind"], object["metadata"] = c.APIVersion, c.Kind, meta
	return object
}

// Meta decodes the metadata, without identity.
func (c *Content) Meta() *metav1.ObjectMeta {
	var m metav1.ObjectMeta
	if err := json.Unmarshal(wrap(c.meta), &m); err != nil {
		panic(fmt.Sprintf("decoding what was encoded here: %v", err))
	}
	return &m
}

// Size is the number of bytes of its JSON.
func (c *Content) Size() int { return len(c.meta) + len(c.rest) }
