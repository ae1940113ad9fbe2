package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	fastjson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

const (
	defaultPage     = 500
	defaultMaxItems = 100_000
	// maxRestarts bounds how often a list is begun anew because its continue token expired.
	maxRestarts = 3
)

func listDefaults(o ListOptions) ListOptions {
	setDefault(&o.Limit, defaultPage)
	setDefault(&o.MaxItems, defaultMaxItems)
	return o
}

// ListMeta lists the metadata of objects, consistent and complete, page by page. A list whose pages expire is begun anew,
// at most three times; then it is ErrExpired. The items carry the resource's kind. Errors are *Error.
func (c *Client) ListMeta(ctx context.Context, r Resource, o ListOptions) ([]metav1.PartialObjectMetadata, error) {
	items, _, err := c.ListMetaVersion(ctx, r, o)
	return items, err
}

// ListMetaVersion is ListMeta, and gives the resourceVersion of the list too: a watch that begins there misses nothing.
func (c *Client) ListMetaVersion(ctx context.Context, r Resource, o ListOptions) (items []metav1.PartialObjectMetadata, resourceVersion string, err error) {
	apiVersion, kind := r.GVK().ToAPIVersionAndKind()
	return list(ctx, c, r, o, acceptMetaList, func(dec *jsontext.Decoder, item *metav1.PartialObjectMetadata) error {
		if err := fastjson.UnmarshalDecode(dec, item); err != nil {
			return err
		}
		item.APIVersion, item.Kind = apiVersion, kind
		return named(item.Name)
	})
}

// List lists whole objects; otherwise it is like ListMeta.
func (c *Client) List(ctx context.Context, r Resource, o ListOptions) ([]unstructured.Unstructured, error) {
	gvk := r.GVK()
	items, _, err := list(ctx, c, r, o, acceptJSON, func(dec *jsontext.Decoder, item *unstructured.Unstructured) error {
		return decodeItem(dec, item, gvk)
	})
	return items, err
}

// decodeItem decodes an object of a list, which says what it is in the list's kind only.
func decodeItem(dec *jsontext.Decoder, item *unstructured.Unstructured, gvk schema.GroupVersionKind) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if err := kjson.Unmarshal(raw, &item.Object); err != nil {
		return fmt.Errorf("%w: %w", errUndecodable, err)
	}
	if item.Object == nil {
		return named("")
	}
	if item.GetKind() == "" {
		item.SetGroupVersionKind(gvk)
	}
	return named(item.GetName())
}

// list reads all pages, and begins anew when one has expired. The version is that of all pages.
func list[T any](
	ctx context.Context, c *Client, r Resource, o ListOptions, accept string, decode func(*jsontext.Decoder, *T) error,
) (items []T, version string, err error) {
	o = listDefaults(o)
	q, err := listRequest(r, o, accept)
	if err != nil {
		return nil, "", err
	}
	for restart := 0; ; restart++ {
		items, version, err = pages(ctx, c, q, o, decode)
		if err == nil {
			return items, version, nil
		}
		if restart >= maxRestarts || !errors.Is(err, ErrExpired) {
			return nil, "", err
		}
	}
}

func listRequest(r Resource, o ListOptions, accept string) (*request, error) {
	q, err := objectRequest(VerbList, http.MethodGet, r, o.Namespace, "")
	if err != nil {
		return nil, err
	}
	q.target = groupKind(r)
	if o.Namespace != "" {
		q.target += " in " + o.Namespace
	}
	q.accept, q.idempotent = accept, true
	q.query = url.Values{"limit": {strconv.FormatInt(o.Limit, 10)}}
	if o.LabelSelector != "" {
		q.query.Set("labelSelector", o.LabelSelector)
	}
	if o.FieldSelector != "" {
		q.query.Set("fieldSelector", o.FieldSelector)
	}
	return q, nil
}

// pages reads a list from its start. Each page but the last brings at least one item, so MaxItems bounds them too.
func pages[T any](ctx context.Context, c *Client, q *request, o ListOptions, decode func(*jsontext.Decoder, *T) error) (items []T, version string, err error) {
	q.query.Del("continue")
	for {
		more, p, err := readPage(ctx, c, q, items, o.MaxItems, decode)
		if err != nil {
			return nil, "", err
		}
		if p.Continue == "" {
			return more, p.ResourceVersion, nil
		}
		if len(more) == len(items) {
			return nil, "", q.fail(ReasonTruncated, 0, fmt.Errorf("an empty page that promises more: %w", io.ErrUnexpectedEOF))
		}
		items = more
		q.query.Set("continue", p.Continue)
	}
}

// readPage appends the items of one page, and gives what the page says of itself.
func readPage[T any](
	ctx context.Context, c *Client, q *request, items []T, maxItems int, decode func(*jsontext.Decoder, *T) error,
) (all []T, p page, err error) {
	err = c.call(ctx, q, func(resp *http.Response) error {
		if err := checkJSON(resp); err != nil {
			return err
		}
		all = items // an attempt that broke off may have left some
		p, err = decodePage(resp.Body, func(dec *jsontext.Decoder) error {
			if len(all) >= maxItems {
				return q.fail(ReasonTooLarge, 0, fmt.Errorf("more than %d items", maxItems))
			}
			var item T
			if err := decode(dec, &item); err != nil {
				return err
			}
			all = append(all, item)
			return nil
		})
		return err
	})
	return all, p, err
}
