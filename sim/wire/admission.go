package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	admissionapi "k8s.io/api/admission/v1"
	admission "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/kyma-project/mothership/sim/state"
)

var webhookResource = apischema.GroupVersionResource{
	Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations",
}

// admission asks the validating webhooks that have a URL; nil if there are none. Those behind a Service have no pods that could
// answer, and are passed by.
func (q *request) admission(dryRun bool) func(operation string, object, old *state.Object) error {
	v := q.c.Catalog().Resource(webhookResource)
	list, err := q.c.List(v, state.Filter{}, 0, "")
	if err != nil || len(list.Objects) == 0 || q.path.v.Group == webhookResource.Group {
		return nil
	}
	var hooks []admission.ValidatingWebhook
	for _, o := range list.Objects {
		var config admission.ValidatingWebhookConfiguration
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Content.Tree(), &config); err != nil {
			continue
		}
		for _, w := range config.Webhooks {
			if w.ClientConfig.URL != nil {
				hooks = append(hooks, w)
			}
		}
	}
	if len(hooks) == 0 {
		return nil
	}
	return func(operation string, object, old *state.Object) error {
		for i := range hooks {
			if err := q.ask(&hooks[i], operation, object, old, dryRun); err != nil {
				return err
			}
		}
		return nil
	}
}

// ask calls one webhook if it wants to be asked.
func (q *request) ask(w *admission.ValidatingWebhook, operation string, object, old *state.Object, dryRun bool) error {
	subject := object
	if subject == nil {
		subject = old
	}
	if !q.wants(w.Rules, operation) || !selects(w.ObjectSelector, subject.Content.Labels) {
		return nil
	}
	review, err := q.call(w, q.reviewOf(operation, object, old, dryRun))
	if err != nil {
		if w.FailurePolicy != nil && *w.FailurePolicy == admission.Ignore {
			return nil
		}
		return apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: failed to call webhook: %w", w.Name, err))
	}
	if review.Response.Allowed {
		return nil
	}
	return denied(w.Name, review.Response.Result)
}

// denied is the error of a refusal, as the API server words it.
func denied(name string, result *metav1.Status) error {
	if result == nil {
		result = &metav1.Status{}
	}
	out := &apierrors.StatusError{ErrStatus: *result}
	s := &out.ErrStatus
	if s.Code < http.StatusBadRequest {
		s.Code, s.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
	}
	s.Status = metav1.StatusFailure
	if s.Message == "" {
		s.Message = fmt.Sprintf("admission webhook %q denied the request without explanation", name)
		return out
	}
	s.Message = fmt.Sprintf("admission webhook %q denied the request: %s", name, s.Message)
	return out
}

func (q *request) wants(rules []admission.RuleWithOperations, operation string) bool {
	in := func(list []string, value string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, value)
	}
	return slices.ContainsFunc(rules, func(r admission.RuleWithOperations) bool {
		operations := make([]string, len(r.Operations))
		for i, o := range r.Operations {
			operations[i] = string(o)
		}
		return in(operations, operation) && in(r.APIGroups, q.path.v.Group) && in(r.APIVersions, q.path.v.Name) && in(r.Resources, q.path.v.Plural)
	})
}

func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return selector == nil || err == nil && s.Matches(labels.Set(set))
}

func (q *request) reviewOf(operation string, object, old *state.Object, dryRun bool) *admissionapi.AdmissionReview {
	v := q.path.v
	gvk := metav1.GroupVersionKind{Group: v.Group, Version: v.Name, Kind: v.Kind.Kind}
	gvr := metav1.GroupVersionResource{Group: v.Group, Version: v.Name, Resource: v.Plural}
	r := &admissionapi.AdmissionRequest{
		UID: uuid.NewUUID(), Kind: gvk, RequestKind: &gvk, Resource: gvr, RequestResource: &gvr, Namespace: q.path.namespace, Name: q.path.name,
		Operation: admissionapi.Operation(operation), UserInfo: Admin, DryRun: &dryRun,
	}
	if object != nil {
		r.Name, r.Object.Raw = object.Content.Name, q.encode(nil, *object, false)
	}
	if old != nil {
		r.OldObject.Raw = q.encode(nil, *old, false)
	}
	return &admissionapi.AdmissionReview{TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: "admission.k8s.io/v1"}, Request: r}
}

const defaultWebhookTimeout = 10 * time.Second

var errNoResponse = errors.New("the answer has no response")

// call sends a review over a connection of its own.
func (q *request) call(w *admission.ValidatingWebhook, review *admissionapi.AdmissionReview) (*admissionapi.AdmissionReview, error) {
	timeout := defaultWebhookTimeout
	if w.TimeoutSeconds != nil {
		timeout = time.Duration(*w.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(q.Context(), timeout)
	defer cancel()
	body, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, *w.ClientConfig.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.ClientConfig.CABundle)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, err
	}
	var out admissionapi.AdmissionReview
	if err := json.Unmarshal(answer, &out); err != nil {
		return nil, err
	}
	if out.Response == nil {
		return nil, errNoResponse
	}
	return &out, nil
}
