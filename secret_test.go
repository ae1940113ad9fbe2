package mothership_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
)

// What must not be seen: the value of a Secret as it is, and as it is stored; and what the value was before.
const (
	hidden    = "hunter2-is-no-password"
	hiddenOld = "correct-horse-battery"
)

// password is a Secret with a value.
func password(value string, more ...string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: password}\nstringData: {password: " + value + "}\n" + strings.Join(more, "\n") + "\n"
}

// leaks says which of the values is in a text.
func leaks(text string) string {
	for _, value := range []string{hidden, hiddenOld} {
		stored := base64.StdEncoding.EncodeToString([]byte(value))
		for _, form := range []string{value, stored, stored[:12]} {
			if strings.Contains(text, form) {
				return form
			}
		}
	}
	return ""
}

// spoken collects all that the library says.
type spoken struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *spoken) say(what ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range what {
		raw, _ := json.Marshal(w)
		fmt.Fprintf(&s.text, "%v\n%+v\n%s\n", w, w, raw)
		if err, ok := w.(error); ok {
			s.unwrap(err)
		}
	}
}

// unwrap says each error of a tree: callers print what they find by errors.As.
func (s *spoken) unwrap(err error) {
	fmt.Fprintf(&s.text, "%v\n", err)
	if object := (*mothership.ObjectError)(nil); errors.As(err, &object) {
		fmt.Fprintf(&s.text, "%s\n", object.Hint)
	}
	switch e := err.(type) { //nolint:errorlint // the whole tree is walked here
	case interface{ Unwrap() error }:
		if e.Unwrap() != nil {
			s.unwrap(e.Unwrap())
		}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			s.unwrap(one)
		}
	}
}

// everything calls all of the library on a module and returns what it said, and the number of errors.
func (s *site) everything(m mothership.Module) (string, int) {
	s.t.Helper()
	var said spoken
	failed := 0
	note := func(what any, err error) {
		said.say(what)
		if err != nil {
			failed++
			said.say(err)
		}
	}
	c, err := s.installer.Diff(s.t.Context(), s.cfg, m, mothership.CompareOptions{Timeout: 10 * time.Second})
	note(c, err)
	c, err = s.installer.Verify(s.t.Context(), s.cfg, m, mothership.CompareOptions{Timeout: 10 * time.Second})
	note(c, err)
	r, err := s.installer.Install(s.t.Context(), s.cfg, m, mothership.InstallOptions{
		Timeout: 2 * time.Second, Wait: true,
		Progress: func(e mothership.Event) { said.say(e) },
		Waiting:  func(n []mothership.NotReady) { said.say(n) },
	})
	note(r, err)
	return said.text.String(), failed
}

func TestSecretsAreNeverSaid(t *testing.T) {
	t.Parallel()
	stored := base64.StdEncoding.EncodeToString([]byte(hidden))
	for name, test := range map[string]struct {
		before string                          // installed first
		damage []string                        // kubectl arguments afterwards
		yaml   string                          // what is said is about this
		source func(*testing.T) v1beta2.Source // or this
		values map[string]any
		fault  fault
		errors bool
	}{
		"Created": {yaml: password(hidden)},
		"Changed": {before: password(hiddenOld), yaml: password(hidden)},
		"Repaired": {
			before: password(hiddenOld), yaml: password(hiddenOld),
			damage: []string{"patch", "secret", "password", "-p", `{"stringData":{"password":"` + hidden + `"}}`},
		},
		"KeyRemoved":    {before: password(hiddenOld, "data: {other: "+stored+"}"), yaml: password(hiddenOld)},
		"Pruned":        {before: password(hiddenOld) + "---" + config, yaml: config},
		"Adopted":       {damage: []string{"create", "secret", "generic", "password", "--from-literal=password=" + hiddenOld, "--save-config"}, yaml: password(hidden)},
		"Immutable":     {before: password(hiddenOld, "immutable: true"), yaml: password(hidden, "immutable: true"), errors: true},
		"OtherType":     {before: password(hiddenOld), yaml: password(hidden, "type: example.org/other"), errors: true},
		"NotBase64":     {yaml: "apiVersion: v1\nkind: Secret\nmetadata: {name: password}\ndata: {password: " + hidden + "}\n", errors: true},
		"NotAString":    {yaml: "apiVersion: v1\nkind: Secret\nmetadata: {name: password}\ndata: {password: {in: " + hidden + "}}\n", errors: true},
		"NotAMap":       {yaml: "apiVersion: v1\nkind: Secret\nmetadata: {name: password}\nstringData: " + hidden + "\n", errors: true},
		"BadKey":        {yaml: "apiVersion: v1\nkind: Secret\nmetadata: {name: password}\nstringData: {\"a b\": " + hidden + "}\n", errors: true},
		"UnclosedQuote": {yaml: password(`"` + hidden), errors: true},
		"BadIndent":     {yaml: password(hidden, "   "+hidden+":\n  - : "+hidden), errors: true},
		"ServerQuotesIt": {
			yaml: password(hidden), errors: true,
			fault: at("PATCH", "/secrets/", says(403, "Forbidden", "denied: password "+hidden+" is too short, stored as "+stored)),
		},
		"ServerQuotesItAsText": {
			yaml: password(hidden), errors: true, fault: at("PATCH", "/secrets/", page(400, "text/plain", "bad value "+hidden)),
		},
		"AnswerBreaksOff": {
			yaml: password(hidden), errors: true,
			fault: at("PATCH", "/secrets/", page(200, "application/json", `{"data":{"password":"`+stored+`"},"metadata":{"name":7}}`)),
		},
		"TemplateMakesBadYAML": {
			source: func(t *testing.T) v1beta2.Source {
				return chartOf(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: password}\nstringData:\n  password: {{ .Values.password }}\n")
			},
			values: map[string]any{"password": `"` + hidden + ": ["}, errors: true,
		},
		"ValueOffSchema": {
			source: func(t *testing.T) v1beta2.Source {
				return chartOf(t, password("{{ .Values.password }}"), "values.schema.json",
					`{"properties":{"password":{"type":"string","pattern":"^[0-9]+$","maxLength":3,"enum":["a","b"],"not":{"const":"`+hidden+`"}}}}`)
			},
			values: map[string]any{"password": hidden}, errors: true,
		},
		"TemplateMisusesTheValue": {
			source: func(t *testing.T) v1beta2.Source {
				return chartOf(t, password("{{ .Values.password.inner.most }}{{ index .Values.password 1000 }}"))
			},
			values: map[string]any{"password": hidden}, errors: true,
		},
		"TemplateDecodesTheValue": {
			source: func(t *testing.T) v1beta2.Source { return chartOf(t, password(`{{ mustFromJson .Values.password }}`)) },
			values: map[string]any{"password": hidden}, errors: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			if test.before != "" {
				s.install(s.module("safe", test.before))
			}
			if test.damage != nil {
				s.kubectl(test.damage...)
			}
			if test.fault != nil {
				p := newProxy(t, s.cfg)
				p.has(test.fault)
				s.cfg = p.cfg
			}
			m := s.module("safe", test.yaml, adopting)
			if test.source != nil {
				m.Template.Source = test.source(t)
			}
			m.Values = test.values
			said, failed := s.everything(m)
			if leaked := leaks(said); leaked != "" {
				at := strings.Index(said, leaked)
				t.Errorf("said %q: … %s …", leaked, said[max(0, at-300):min(len(said), at+100)])
			}
			if (failed > 0) != test.errors {
				t.Errorf("%d errors: %s", failed, said)
			}
		})
	}
}

func TestDiffMasksSecrets(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("safe", password(hiddenOld, "type: Opaque"))
	s.install(m)
	m.Template.Source = s.module("safe", password(hidden, "type: Opaque")).Template.Source
	c := s.diff(m)
	if len(c.Changes) != 1 || len(c.Changes[0].Fields) != 1 {
		t.Fatalf("changes: %v", changes(c))
	}
	if f := c.Changes[0].Fields[0]; f.Path != ".data.password" || f.From != "(hidden)" || f.To != "(hidden)" {
		t.Errorf("field: %+v", f)
	}
}
