package wire

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/sim/schema"
	"github.com/kyma-project/mothership/sim/state"
)

// metadataOnly says whether a client prefers the metadata, of one object or of a list.
func (q *request) metadataOnly() bool {
	accept := q.Header.Get("Accept")
	first, _, _ := strings.Cut(accept, ",")
	return strings.Contains(first, "as=PartialObjectMetadata") && strings.Contains(first, "g=meta.k8s.io")
}

func (q *request) encode(dst []byte, o state.Object, metadata bool) []byte {
	if metadata {
		return o.Content.AppendMetadata(dst, o.Identity)
	}
	return o.Content.AppendObject(dst, q.path.v.APIVersion(), o.Identity)
}

func (q *request) object(code int, o state.Object) error {
	metadata := q.metadataOnly()
	if metadata && wantsProtobuf(q.Request) {
		answer(q.out, code, protobufType, o.Content.AppendProtobuf(nil, o.Identity))
		return nil
	}
	answer(q.out, code, jsonType, q.encode(nil, o, metadata))
	return nil
}

func (q *request) get() error {
	o, err := q.c.Get(q.path.v, q.path.namespace, q.path.name)
	if err != nil {
		return err
	}
	return q.object(http.StatusOK, o)
}

// write reads what all writes say.
func (q *request) write(sub schema.Subresource) (*state.Write, error) {
	body, err := q.body()
	if err != nil {
		return nil, err
	}
	query := q.URL.Query()
	w := &state.Write{
		Version: q.path.v, Namespace: q.path.namespace, Name: q.path.name, Sub: sub, Body: body,
		Manager: manager(query.Get("fieldManager"), q.UserAgent()), Force: isTrue(query.Get("force")),
	}
	if w.DryRun, err = dryRun(query["dryRun"]); err != nil {
		return nil, err
	}
	if sub == schema.Main {
		w.Admit = q.admission(w.DryRun)
	}
	return w, nil
}

// manager is the field manager of a write: what the request says, or the name of the program.
func manager(given, userAgent string) string {
	if given != "" {
		return given
	}
	name, _, _ := strings.Cut(userAgent, "/")
	if name == "" {
		return "unknown"
	}
	return name[:min(len(name), 128)]
}

func (q *request) create() error {
	w, err := q.write(schema.Main)
	if err != nil {
		return err
	}
	o, err := q.c.Create(w)
	if err != nil {
		return err
	}
	return q.object(http.StatusCreated, o)
}

func (q *request) update(sub schema.Subresource) error {
	w, err := q.write(sub)
	if err != nil {
		return err
	}
	o, err := q.c.Update(w)
	if err != nil {
		return err
	}
	return q.object(http.StatusOK, o)
}

var patchTypes = []types.PatchType{
	types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyPatchType, types.ApplyYAMLPatchType,
}

func (q *request) patch(sub schema.Subresource) error {
	w, err := q.write(sub)
	if err != nil {
		return err
	}
	contentType, _, _ := strings.Cut(q.Header.Get("Content-Type"), ";")
	pt := types.PatchType(strings.TrimSpace(contentType))
	if pt == types.ApplyPatchType && q.URL.Query().Get("fieldManager") == "" {
		return badParameter("fieldManager", "is required for apply patch")
	}
	if !slices.Contains(patchTypes, pt) || pt == types.StrategicMergePatchType && q.path.v.Custom {
		return state.Unsupported(pt)
	}
	o, err := q.c.Patch(w, pt)
	if err != nil {
		return err
	}
	code := http.StatusOK
	if o.New {
		code = http.StatusCreated
	}
	return q.object(code, o)
}
