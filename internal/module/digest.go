package module

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/render"
	"github.com/kyma-project/mothership/reconciler"
)

// InputDigest is the digest that Render gives, and Reconcile reports, for a module: of all that changes what is applied, or how.
// The source is fetched, as far as it is not cached; nothing is rendered, and no runtime is touched. So o.PerRuntime must be
// given for templates that are rendered per runtime, and o.Secret is not part of the digest. Empty without a key (Options.Key).
func (r *Reconciler) InputDigest(ctx context.Context, c reconciler.Component, o RenderOptions) (string, error) {
	if err := validate(c); err != nil {
		return "", err
	}
	if c.Template.PerRuntime && o.PerRuntime == "" {
		return "", fmt.Errorf("%w: the digest of a module that is rendered per runtime needs the runtime's identity", ErrInvalid)
	}
	if len(r.o.Key) == 0 {
		return "", nil
	}
	req, err := r.request(ctx, c, o)
	if err != nil {
		return "", err
	}
	return r.digest(c, req), nil
}

// treatment is what of a template says how a bundle is applied, apart from what it is rendered from.
type treatment struct {
	Data       any
	Manager    *v1beta2.Manager
	Health     []v1beta2.HealthRule
	Yield      []v1beta2.YieldRule
	Adopt      bool
	PerRuntime bool
	Reconciler string
	// ServiceAccountName is left out where there is none, so that templates without one keep their digests.
	ServiceAccountName string `json:",omitempty"`
}

// digest names a module's input: "hmac-sha256:<hex>" over what it is rendered from and how it is treated. Empty without a
// key: weak values could be guessed from it.
func (r *Reconciler) digest(c reconciler.Component, req render.Request) string {
	if len(r.o.Key) == 0 {
		return ""
	}
	req.Secret = nil // known to the runtime only; it stays as long as the runtime does
	t := c.Template
	how, err := json.Marshal(treatment{
		Data: canonical(t.Data), Manager: t.Manager, Health: t.Health, Yield: t.Yield,
		Adopt: t.Adopt, PerRuntime: t.PerRuntime, Reconciler: t.Reconciler,
		ServiceAccountName: t.ServiceAccountName,
	})
	if err != nil {
		how = fmt.Appendf(nil, "%#v", t) // cannot be: all of it came from JSON
	}
	mac := hmac.New(sha256.New, r.o.Key)
	_, _ = io.WriteString(mac, render.InputDigest(r.o.Key, req)+"\x00") // hashes do not fail
	_, _ = mac.Write(how)
	return "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil))
}

// canonical is JSON in a form in which blanks and the order of keys do not count. What is no JSON stays what it is.
func canonical(raw *runtime.RawExtension) any {
	if raw == nil || len(raw.Raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw.Raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return string(raw.Raw)
	}
	return v
}
