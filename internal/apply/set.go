package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
)

// ErrForeignSet says that the module on this runtime belongs to another control plane or tool.
var ErrForeignSet = errors.New("the module belongs to somebody else")

// Set is one module on one runtime: an ApplySet and its parent. It is used by one goroutine at a time.
type Set struct {
	a      *Applier
	t      Target
	id     ID
	setID  string
	mu     sync.Mutex // guards parent.learnt while a stage is applied
	parent parent
	// storedLearnt is what the parent in the runtime has of parent.learnt.
	storedLearnt map[string][]string
	// poked is when definitions were first seen on their way out, or written to since.
	poked map[string]time.Time
	// patience bounds each wait within a stage; zero is maxLooks.
	patience time.Duration
}

// parent is what the parent ConfigMap says.
type parent struct {
	found      bool
	uid        string
	version    string // its resourceVersion
	kinds      []schema.GroupKind
	namespaces []string
	input      string
	bundle     string
	// learnt are fields that the server drops or rewrites: per kind, JSON pointers.
	learnt map[string][]string
}

// learntKey is the key in the parent's data under which learnt fields are kept.
const learntKey = "rewritten-by-server"

// learntData is the form in which they are kept.
type learntData struct {
	ServerVersion string              `json:"serverVersion"`
	Fields        map[string][]string `json:"fields"`
}

// parentObject is the ConfigMap as it is sent and read.
type parentObject struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   parentMeta        `json:"metadata"`
	Data       map[string]string `json:"data,omitempty"`
}

type parentMeta struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	UID         string            `json:"uid,omitempty"`
	Version     string            `json:"resourceVersion,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Open reads the parent of a module's set. A set of another control plane or of another tool is ErrForeignSet. One
// request.
func (a *Applier) Open(ctx context.Context, t Target, id ID) (*Set, error) {
	s := a.set(t, id)
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// set is a set whose parent was not read yet.
func (a *Applier) set(t Target, id ID) *Set {
	if t.Writer == nil {
		t.Writer = t.Client
	}
	return &Set{a: a, t: t, id: id, setID: bundle.ApplySetID(id.Namespace, id.Module)}
}

// Installed says whether the set has a parent.
func (s *Set) Installed() bool { return s.parent.found }

// InputDigest is the input digest that was last applied to the end, or empty.
func (s *Set) InputDigest() string { return s.parent.input }

// BundleDigest is the digest of the bundle that was last applied to the end, or empty.
func (s *Set) BundleDigest() string { return s.parent.bundle }

func (s *Set) name() string { return bundle.ParentName(s.id.Namespace, s.id.Module) }

func (s *Set) read(ctx context.Context) error {
	var obj parentObject
	err := s.t.Client.Get(ctx, configMaps, v1beta2.SystemNamespace, s.name(), &obj)
	if errors.Is(err, cluster.ErrNotFound) {
		s.parent = parent{}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the inventory of module %s: %w", s.id, err)
	}
	return s.take(&obj)
}

// take takes over what the parent says, unless it is somebody else's.
func (s *Set) take(obj *parentObject) error {
	if err := s.checkOwner(obj.Metadata); err != nil {
		return err
	}
	annotations := obj.Metadata.Annotations
	s.parent = parent{
		found: true, uid: obj.Metadata.UID, version: obj.Metadata.Version,
		kinds:      parseGroupKinds(annotations[v1beta2.ApplySetGroupKindsAnnotation]),
		namespaces: splitList(annotations[v1beta2.ApplySetNamespacesAnnotation]),
		input:      annotations[v1beta2.InputDigestAnnotation],
		bundle:     annotations[v1beta2.BundleDigestAnnotation],
	}
	s.readLearnt(obj.Data[learntKey])
	return nil
}

func (s *Set) checkOwner(meta parentMeta) error {
	if id := meta.Labels[v1beta2.ApplySetIDLabel]; id != "" && id != s.setID {
		return fmt.Errorf("%w: ConfigMap %s/%s is the parent of another set (%s)", ErrForeignSet, meta.Namespace, meta.Name, id)
	}
	if tool := meta.Annotations[v1beta2.ApplySetToolingAnnotation]; tool != v1beta2.ApplySetTooling {
		return fmt.Errorf("%w: ConfigMap %s/%s is managed by %q, not by %s", ErrForeignSet, meta.Namespace, meta.Name, tool, v1beta2.ApplySetTooling)
	}
	owner := meta.Annotations[v1beta2.OwnerAnnotation]
	if owner == s.a.o.Owner {
		return nil
	}
	if owner == v1beta2.EmbeddedOwner {
		return fmt.Errorf("%w: module %s was installed without a control plane (`mothership install`): uninstall it there first", ErrForeignSet, s.id)
	}
	return fmt.Errorf("%w: module %s is managed by control plane %s: change it there", ErrForeignSet, s.id, owner)
}

// readLearnt takes over what was learnt of the same server version.
func (s *Set) readLearnt(raw string) {
	var data learntData
	if raw == "" || json.Unmarshal([]byte(raw), &data) != nil || data.ServerVersion != s.t.ServerVersion {
		return
	}
	s.parent.learnt, s.storedLearnt = data.Fields, data.Fields
}

// writeParent states which kinds and namespaces the set uses. The digests are written only when the bundle has been
// applied to the end. A parent that somebody else wrote meanwhile is ErrConflict: two installations of one module must not
// forget each other's kinds.
func (s *Set) writeParent(ctx context.Context, p parent) error {
	obj := parentObject{
		APIVersion: "v1", Kind: "ConfigMap",
		Metadata: parentMeta{
			Name: s.name(), Namespace: v1beta2.SystemNamespace, Version: p.version,
			Labels: map[string]string{v1beta2.ApplySetIDLabel: s.setID},
			Annotations: map[string]string{
				v1beta2.ApplySetToolingAnnotation:    v1beta2.ApplySetTooling,
				v1beta2.ApplySetGroupKindsAnnotation: formatGroupKinds(p.kinds),
				v1beta2.ApplySetNamespacesAnnotation: strings.Join(p.namespaces, ","),
				v1beta2.OwnerAnnotation:              s.a.o.Owner,
				v1beta2.ModuleAnnotation:             s.id.String(),
				v1beta2.InputDigestAnnotation:        p.input,
				v1beta2.BundleDigestAnnotation:       p.bundle,
			},
		},
	}
	if len(p.learnt) > 0 {
		raw, err := json.Marshal(learntData{ServerVersion: s.t.ServerVersion, Fields: p.learnt})
		if err != nil {
			return fmt.Errorf("serialising the inventory of module %s: %w", s.id, err)
		}
		obj.Data = map[string]string{learntKey: string(raw)}
	}
	body, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("serialising the inventory of module %s: %w", s.id, err)
	}
	var answer parentObject
	if err := s.applyParent(ctx, body, &answer); err != nil {
		return s.parentFailed(ctx, err)
	}
	p.found, p.uid, p.version = true, answer.Metadata.UID, answer.Metadata.Version
	s.parent, s.storedLearnt = p, p.learnt
	return nil
}

// parentFailed reads the parent again where somebody else wrote or deleted it, so that the next observation starts from what it
// says now. Then the error is ErrConflict.
func (s *Set) parentFailed(ctx context.Context, err error) error {
	gone := s.parent.found && errors.Is(err, cluster.ErrNotFound)
	if gone || errors.Is(err, cluster.ErrConflict) {
		if err := s.read(ctx); err != nil {
			return err
		}
	}
	if gone {
		err = fmt.Errorf("%w: it was deleted meanwhile", cluster.ErrConflict)
	}
	return fmt.Errorf("writing the inventory of module %s: %w", s.id, err)
}

// applyParent makes mothership-system where it is missing.
func (s *Set) applyParent(ctx context.Context, body []byte, answer *parentObject) error {
	write := func() error {
		return s.t.Client.Apply(ctx, configMaps, v1beta2.SystemNamespace, s.name(), body,
			cluster.ApplyOptions{Manager: v1beta2.FieldManager, Force: true}, answer)
	}
	if !s.parent.found { // the server holds a write into a missing namespace for some 50 ms before it refuses it
		if err := s.createNamespace(ctx, v1beta2.SystemNamespace); err != nil {
			return err
		}
	}
	err := write()
	if !errors.Is(err, cluster.ErrNotFound) {
		return err
	}
	if err := s.createNamespace(ctx, v1beta2.SystemNamespace); err != nil {
		return err
	}
	return write()
}

// createNamespace makes a namespace; one that exists is fine.
func (s *Set) createNamespace(ctx context.Context, name string) error {
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}})
	if err != nil {
		return fmt.Errorf("serialising namespace %s: %w", name, err)
	}
	if err := s.t.Client.Create(ctx, namespaces, "", body, nil); err != nil && !errors.Is(err, cluster.ErrConflict) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}

func parseGroupKinds(s string) []schema.GroupKind {
	var out []schema.GroupKind
	for _, part := range splitList(s) {
		out = append(out, schema.ParseGroupKind(part))
	}
	return out
}

func formatGroupKinds(kinds []schema.GroupKind) string {
	names := make([]string, len(kinds))
	for i, gk := range kinds {
		names[i] = gk.String()
	}
	sort.Strings(names)
	return strings.Join(slices.Compact(names), ",")
}

func splitList(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
