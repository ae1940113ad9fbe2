package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/sim/schema"
)

// maxBody bounds what a client sends, as the API server does.
const maxBody = 3 << 20

// body reads a body as JSON.
func (q *request) body() ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(q.out, q.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest("reading the body: " + err.Error())
	}
	contentType, _, _ := strings.Cut(q.Header.Get("Content-Type"), ";")
	switch contentType {
	case runtime.ContentTypeProtobuf:
		return fromProtobuf(body)
	case runtime.ContentTypeYAML:
		return yaml.YAMLToJSON(body)
	}
	return body, nil
}

var protobufs = protobuf.NewSerializer(schema.Scheme, schema.Scheme)

func fromProtobuf(body []byte) ([]byte, error) {
	object, gvk, err := protobufs.Decode(body, nil, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest("decoding protobuf: " + err.Error())
	}
	object.GetObjectKind().SetGroupVersionKind(*gvk)
	return json.Marshal(object)
}

// dryRun reads the parameter of that name.
func dryRun(values []string) (bool, error) {
	for _, v := range values {
		if v != metav1.DryRunAll {
			return false, badParameter("dryRun", fmt.Sprintf("%q is not one of: All", v))
		}
	}
	return len(values) > 0, nil
}

func badParameter(name, problem string) error {
	return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("PatchOptions").GroupKind(), "", fieldErrors(name, problem))
}

// deleteOptions reads the options of a deletion, from the body and the query.
func (q *request) deleteOptions() (*metav1.DeleteOptions, error) {
	body, err := q.body()
	if err != nil {
		return nil, err
	}
	o := &metav1.DeleteOptions{}
	if len(bytes.TrimSpace(body)) > 0 {
		if err := json.Unmarshal(body, o); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	query := q.URL.Query()
	if p := metav1.DeletionPropagation(query.Get("propagationPolicy")); p != "" {
		o.PropagationPolicy = &p
	}
	o.DryRun = append(o.DryRun, query["dryRun"]...)
	return o, nil
}
