package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/internal/cluster"
)

// The options of calls, as internal/cluster states them.
type (
	// ApplyOptions of Apply.
	ApplyOptions = cluster.ApplyOptions
	// PatchOptions of Patch.
	PatchOptions = cluster.PatchOptions
	// DeleteOptions of Delete.
	DeleteOptions = cluster.DeleteOptions
	// ListOptions of List and ListMeta.
	ListOptions = cluster.ListOptions
	// WatchOptions of WatchMeta.
	WatchOptions = cluster.WatchOptions
	// WatchEvent is one event of WatchMeta.
	WatchEvent = cluster.WatchEvent
)

// Get reads an object. namespace is empty for cluster-wide kinds.
func (c *Client) Get(ctx context.Context, r Resource, namespace, name string, into any) error {
	q, err := objectRequest(VerbGet, http.MethodGet, r, namespace, name)
	if err != nil {
		return err
	}
	q.accept, q.idempotent = acceptFor(into), true
	return c.call(ctx, q, object(into, r.GVK()))
}

// Create makes an object from its JSON, which carries the name. One that exists already is ErrConflict
// (apierrors.IsAlreadyExists). It is repeated only if the first attempt was surely not taken up.
func (c *Client) Create(ctx context.Context, r Resource, namespace string, body []byte, into any) error {
	q, err := objectRequest(VerbCreate, http.MethodPost, r, namespace, "")
	if err != nil {
		return err
	}
	q.name = nameIn(body)
	q.body, q.contentType, q.accept = body, acceptJSON, acceptFor(into)
	return c.call(ctx, q, object(into, r.GVK()))
}

// Apply makes or changes an object by server-side apply of its JSON.
func (c *Client) Apply(ctx context.Context, r Resource, namespace, name string, body []byte, o ApplyOptions, into any) error {
	q, err := applyRequest(&cluster.Application{Resource: r, Namespace: namespace, Name: name, Body: body, Options: o}, acceptFor(into))
	if err != nil {
		return err
	}
	return c.call(ctx, q, object(into, r.GVK()))
}

// applyRequest is the request for an object, or an *Error.
func applyRequest(o *cluster.Application, accept string) (*request, error) {
	q, err := objectRequest(VerbApply, http.MethodPatch, o.Resource, o.Namespace, o.Name)
	if err != nil {
		return nil, err
	}
	if o.Options.Manager == "" {
		return nil, q.fail(ReasonInvalid, 0, errors.New("a field manager is needed"))
	}
	q.body, q.contentType, q.accept, q.idempotent = o.Body, string(types.ApplyPatchType), accept, true
	q.rawQuery = writeQuery(o.Options.Manager, o.Options.DryRun) + "&force=" + strconv.FormatBool(o.Options.Force)
	return q, nil
}

// Patch changes an object by a JSON, merge or strategic merge patch. It is repeated only if the first attempt was surely
// not taken up, or with DryRun.
func (c *Client) Patch(ctx context.Context, r Resource, namespace, name string, pt types.PatchType, body []byte, o PatchOptions, into any) error {
	q, err := objectRequest(VerbPatch, http.MethodPatch, r, namespace, name)
	if err != nil {
		return err
	}
	q.body, q.contentType, q.accept, q.idempotent = body, string(pt), acceptFor(into), o.DryRun
	q.rawQuery = writeQuery(o.Manager, o.DryRun)
	return c.call(ctx, q, object(into, r.GVK()))
}

// Delete removes an object, or starts to: finalizers may keep it. A repetition after a lost answer may find it gone,
// which is ErrNotFound. The errors are *Error.
func (c *Client) Delete(ctx context.Context, r Resource, namespace, name string, o DeleteOptions) error {
	q, err := objectRequest(VerbDelete, http.MethodDelete, r, namespace, name)
	if err != nil {
		return err
	}
	if q.body, err = deleteBody(o); err != nil {
		return q.fail(ReasonInvalid, 0, err)
	}
	q.contentType, q.accept, q.idempotent = acceptJSON, acceptMetadata, o.UID != "" || o.DryRun
	return c.call(ctx, q, discard)
}

func deleteBody(o DeleteOptions) ([]byte, error) {
	out := metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}}
	if o.UID != "" {
		out.Preconditions = &metav1.Preconditions{UID: &o.UID}
	}
	if o.Propagation != "" {
		out.PropagationPolicy = &o.Propagation
	}
	if o.DryRun {
		out.DryRun = []string{metav1.DryRunAll}
	}
	return json.Marshal(out)
}

// writeQuery is the query of a write, as url.Values.Encode would have it.
func writeQuery(manager string, dryRun bool) string {
	var q []string
	if dryRun {
		q = append(q, "dryRun="+metav1.DryRunAll)
	}
	if manager != "" {
		q = append(q, "fieldManager="+url.QueryEscape(manager))
	}
	return strings.Join(q, "&")
}

// objectRequest is the request for an object, or for a collection if name is empty and the verb allows it.
func objectRequest(verb, method string, r Resource, namespace, name string) (*request, error) {
	q := &request{
		verb: verb, method: method, path: resourcePath(r, namespace, name),
		kind: r, namespace: namespace, name: name,
		secret: r.Group == "" && r.Resource == "secrets",
	}
	if err := q.check(r, namespace, name); err != nil {
		return nil, q.fail(ReasonInvalid, 0, err)
	}
	return q, nil
}

// check refuses what would lead to another URL than the one meant.
func (q *request) check(r Resource, namespace, name string) error {
	collection := q.verb == VerbList || q.verb == VerbWatch
	switch {
	case r.Version == "" || r.Resource == "":
		return errors.New("the resource has no version or name")
	case r.Namespaced && namespace == "" && !collection:
		return errors.New("a namespace is needed")
	case !r.Namespaced && namespace != "":
		return fmt.Errorf("the kind is cluster-wide, but namespace %s is given", namespace)
	case name == "" && !collection && q.verb != VerbCreate:
		return errors.New("a name is needed")
	}
	return checkSegments(r.Group, r.Version, r.Resource, namespace, name)
}

func resourcePath(r Resource, namespace, name string) string {
	path := "/apis/" + r.Group + "/" + r.Version
	if r.Group == "" {
		path = "/api/" + r.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + r.Resource
	if name != "" {
		path += "/" + name
	}
	return path
}

// qualified is namespace/name.
func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// nameIn reads the name of an object's JSON, for messages.
func nameIn(body []byte) string {
	var o struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(body, &o) // the server will say what is wrong with it
	return o.Metadata.Name
}
