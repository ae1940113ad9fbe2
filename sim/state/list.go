package state

import (
	"encoding/base64"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/sim/schema"
)

// maxPages is how many lists a cluster remembers that are read page by page.
const maxPages = 16

// page is a list that is read page by page, as it was at its first page.
type page struct {
	resource apischema.GroupResource
	version  uint32
	records  []record
}

// List is a list, or a page of one.
type List struct {
	Objects  []Object
	Version  uint64
	Continue string
	// Remaining is how many objects follow, if that is known; else nil.
	Remaining *int64
}

// token says where a list goes on.
type token struct {
	Version uint32    `json:"v"`
	After   [2]string `json:"a"`
}

// List lists objects in order of namespace and name. limit 0 lists all. continued is the token of the page before.
func (c *Cluster) List(v *schema.Version, f Filter, limit int64, continued string) (*List, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.table(v.Kind)
	records, version := t.namespace(f.Namespace), c.version
	if continued != "" {
		rest, at, err := c.resume(v.GroupResource(), f.Namespace, continued)
		if err != nil {
			return nil, err
		}
		records, version = rest, at.Version
	}
	out := &List{Version: uint64(version)}
	for i, r := range records {
		if !f.matches(r.content) {
			continue
		}
		if limit > 0 && int64(len(out.Objects)) == limit {
			c.cut(t, out, version, f, records[i:])
			break
		}
		out.Objects = append(out.Objects, c.object(r))
	}
	return out, nil
}

// resume finds what is left of a list.
func (c *Cluster) resume(gr apischema.GroupResource, namespace, continued string) ([]record, token, error) {
	var at token
	raw, err := base64.RawURLEncoding.DecodeString(continued)
	if err != nil || json.Unmarshal(raw, &at) != nil {
		return nil, at, apierrors.NewBadRequest("continue key is not valid: it is not a token of this server")
	}
	for _, p := range c.pages {
		if p.resource == gr && p.version == at.Version {
			t := &table{records: p.records}
			rest := t.namespace(namespace)
			i, found := slices.BinarySearchFunc(rest, key{at.After[0], at.After[1]}, compareKey)
			if found {
				i++
			}
			return rest[i:], at, nil
		}
	}
	return nil, at, apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter.")
}

// cut ends a page, and keeps the table as it is for the next one.
func (c *Cluster) cut(t *table, out *List, version uint32, f Filter, rest []record) {
	last := out.Objects[len(out.Objects)-1].Content
	encoded, err := json.Marshal(token{Version: version, After: [2]string{last.Namespace, last.Name}})
	if err != nil {
		return // it cannot: two strings and a number
	}
	out.Continue = base64.RawURLEncoding.EncodeToString(encoded)
	if (f.Labels == nil || f.Labels.Empty()) && f.Fields == nil {
		n := int64(len(rest))
		out.Remaining = &n
	}
	gr := t.kind.GroupResource()
	if slices.ContainsFunc(c.pages, func(p page) bool { return p.resource == gr && p.version == version }) {
		return
	}
	if len(c.pages) == maxPages {
		c.pages = c.pages[1:]
	}
	t.shared = true
	c.pages = append(c.pages, page{resource: gr, version: version, records: t.records})
}
