package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Admin is who everybody is whose token is right: there is no other authorisation.
var Admin = authentication.UserInfo{Username: "admin", UID: "admin", Groups: []string{"system:masters", "system:authenticated"}}

// review answers the kinds that can only be asked.
func (q *request) review() error {
	answers := map[string]func([]byte) (any, error){
		"selfsubjectaccessreviews": q.selfAccess, "subjectaccessreviews": q.access, "localsubjectaccessreviews": q.access,
		"selfsubjectreviews": q.self, "tokenreviews": q.tokenReview, "selfsubjectrulesreviews": q.rules,
	}
	f := answers[q.path.gvr.Resource]
	isGroup := q.path.gvr.Group == "authorization.k8s.io" || q.path.gvr.Group == "authentication.k8s.io"
	if f == nil || !isGroup || q.Method != http.MethodPost {
		return errNoPath
	}
	body, err := q.body()
	if err != nil {
		return err
	}
	out, err := f(body)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return q.json(http.StatusCreated, out)
}

func (q *request) selfAccess(body []byte) (any, error) {
	var r authorization.SelfSubjectAccessReview
	err := json.Unmarshal(body, &r)
	r.TypeMeta = metav1.TypeMeta{Kind: "SelfSubjectAccessReview", APIVersion: "authorization.k8s.io/v1"}
	r.Status = authorization.SubjectAccessReviewStatus{Allowed: true, Reason: "everybody may do everything here"}
	return r, err
}

func (q *request) access(body []byte) (any, error) {
	var r authorization.SubjectAccessReview
	err := json.Unmarshal(body, &r)
	r.Status = authorization.SubjectAccessReviewStatus{Allowed: true, Reason: "everybody may do everything here"}
	return r, err
}

func (q *request) self([]byte) (any, error) {
	return authentication.SelfSubjectReview{
		TypeMeta: metav1.TypeMeta{Kind: "SelfSubjectReview", APIVersion: "authentication.k8s.io/v1"},
		Status:   authentication.SelfSubjectReviewStatus{UserInfo: Admin},
	}, nil
}

func (q *request) tokenReview(body []byte) (any, error) {
	var r authentication.TokenReview
	err := json.Unmarshal(body, &r)
	r.Spec.Token = ""
	r.Status = authentication.TokenReviewStatus{Authenticated: true, User: Admin}
	return r, err
}

func (q *request) rules(body []byte) (any, error) {
	var r authorization.SelfSubjectRulesReview
	err := json.Unmarshal(body, &r)
	r.TypeMeta = metav1.TypeMeta{Kind: "SelfSubjectRulesReview", APIVersion: "authorization.k8s.io/v1"}
	all := []string{"*"}
	r.Status.ResourceRules = []authorization.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}}
	r.Status.NonResourceRules = []authorization.NonResourceRule{{Verbs: all, NonResourceURLs: all}}
	return r, err
}

// token gives a service account a token. It looks like one; the cluster lets in its own tokens only.
func (q *request) token() error {
	account, err := q.c.Get(q.path.v, q.path.namespace, q.path.name)
	if err != nil {
		return err
	}
	body, err := q.body()
	if err != nil {
		return err
	}
	var r authentication.TokenRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	seconds := int64(3600)
	if r.Spec.ExpirationSeconds != nil {
		seconds = *r.Spec.ExpirationSeconds
	}
	expires := time.Now().Add(time.Duration(seconds) * time.Second).Truncate(time.Second)
	claims := fmt.Sprintf(`{"iss":"simulator","sub":"system:serviceaccount:%s:%s","exp":%d,"uid":%q}`, q.path.namespace, q.path.name, expires.Unix(), account.Identity.UID)
	r.SetGroupVersionKind(apischema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"})
	r.Status = authentication.TokenRequestStatus{
		Token:               "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".",
		ExpirationTimestamp: metav1.NewTime(expires),
	}
	return q.json(http.StatusCreated, r)
}
