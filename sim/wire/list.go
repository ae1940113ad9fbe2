package wire

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kyma-project/mothership/sim/content"
	"github.com/kyma-project/mothership/sim/state"
)

// filter reads namespace and selectors.
func (q *request) filter() (state.Filter, error) {
	query := q.URL.Query()
	f := state.Filter{Namespace: q.path.namespace}
	selector, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return f, apierrors.NewBadRequest(fmt.Sprintf("unable to parse requirement: %v", err))
	}
	f.Labels = selector
	text := query.Get("fieldSelector")
	if text == "" {
		return f, nil
	}
	wanted, err := fields.ParseSelector(text)
	if err != nil {
		return f, apierrors.NewBadRequest(err.Error())
	}
	requirements := wanted.Requirements()
	for _, r := range requirements {
		if !q.selectable(r.Field) {
			return f, apierrors.NewBadRequest("field label not supported: " + r.Field)
		}
	}
	f.Fields = func(c *content.Content) bool {
		return !slices.ContainsFunc(requirements, func(r fields.Requirement) bool {
			return (fieldOf(c, r.Field) == r.Value) == (r.Operator == "!=")
		})
	}
	return f, nil
}

// selectableFields are those of built-in kinds, besides name and namespace.
var selectableFields = map[string][]string{
	"pods": {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase", "status.podIP"},
	"events": {
		"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion",
		"reason", "type", "regarding.kind", "regarding.namespace", "regarding.name",
	},
	"namespaces": {"status.phase"}, "secrets": {"type"}, "nodes": {"spec.unschedulable"}, "services": {"spec.clusterIP", "spec.type"},
	"jobs": {"status.successful"},
}

func (q *request) selectable(field string) bool {
	if field == "metadata.name" || field == "metadata.namespace" && q.path.v.Namespaced {
		return true
	}
	return !q.path.v.Custom && slices.Contains(selectableFields[q.path.v.Plural], field)
}

func fieldOf(c *content.Content, field string) string {
	switch field {
	case "metadata.name":
		return c.Name
	case "metadata.namespace":
		return c.Namespace
	}
	value, ok, err := unstructured.NestedFieldNoCopy(c.Tree(), strings.Split(field, ".")...)
	if !ok || err != nil {
		return ""
	}
	return fmt.Sprint(value)
}

func (q *request) list() error {
	f, err := q.filter()
	if err != nil {
		return err
	}
	query := q.URL.Query()
	limit, err := strconv.ParseInt(query.Get("limit"), 10, 64)
	if query.Get("limit") != "" && err != nil {
		return apierrors.NewBadRequest("limit: " + err.Error())
	}
	list, err := q.c.List(q.path.v, f, limit, query.Get("continue"))
	if err != nil {
		return err
	}
	answer(q.out, http.StatusOK, jsonType, q.encodeList(list))
	return nil
}

func (q *request) encodeList(list *state.List) []byte {
	metadata := q.metadataOnly()
	apiVersion, kind := q.path.v.APIVersion(), q.path.v.ListKind
	if metadata {
		apiVersion, kind = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	size := 256
	for i := range list.Objects {
		size += list.Objects[i].Content.Size() + 256
	}
	dst := fmt.Appendf(make([]byte, 0, size), `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"`, kind, apiVersion, list.Version)
	if list.Continue != "" || q.path.v.Custom && !metadata {
		dst = fmt.Appendf(dst, `,"continue":%q`, list.Continue)
	}
	if list.Remaining != nil {
		dst = fmt.Appendf(dst, `,"remainingItemCount":%d`, *list.Remaining)
	}
	dst = append(dst, `},"items":[`...)
	for i, o := range list.Objects {
		if i > 0 {
			dst = append(dst, ',')
		}
		if !metadata && !q.path.v.Custom {
			dst = o.Content.AppendItem(dst, o.Identity)
			continue
		}
		dst = q.encode(dst, o, metadata)
	}
	return append(dst, "]}"...)
}
