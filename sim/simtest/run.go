package simtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// Scenario is a conversation.
type Scenario struct {
	// Name in CamelCase.
	Name string
	// Steps in order. $NS in them is a namespace of the scenario's own.
	Steps []Step
}

// Step is one request.
type Step struct {
	// Do is the request: method, a blank, path and query.
	Do string
	// Type is the content type of the body; Accept asks for another answer than plain JSON.
	Type, Accept string
	// Body is YAML, sent as JSON unless it is an apply.
	Body string
	// Code that is expected.
	Code int
	// Until is a text that must be in the answer: the request is repeated, for ten seconds at most, until it is and the code is
	// right. "-" waits for the code alone.
	Until string
	// Only is the one field of the answer that is compared, as "metadata.name"; "-" for none, empty for all.
	Only string
}

// Answer is what a server said, normalised.
type Answer struct {
	Do   string
	Code int
	Body any
}

// Run holds all scenarios with a server and returns the answers of each.
func Run(t *testing.T, cfg *rest.Config) map[string][]Answer {
	t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]Answer{}
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) { out[s.Name] = hold(t, client, cfg.Host, s) })
	}
	return out
}

func hold(t *testing.T, client *http.Client, host string, s Scenario) []Answer {
	t.Helper()
	ns := "sim-" + strings.ToLower(s.Name)
	steps := append([]Step{{
		Do: "POST /api/v1/namespaces", Body: "{apiVersion: v1, kind: Namespace, metadata: {name: $NS}}", Code: http.StatusCreated,
	}}, s.Steps...)
	steps = append(steps, Step{Do: "DELETE /api/v1/namespaces/$NS", Code: http.StatusOK, Only: "-"})
	var out []Answer
	for _, step := range steps {
		a, raw := step.repeat(t, client, host, ns)
		if a.Code != step.Code {
			t.Errorf("%s: %d, want %d: %s", step.Do, a.Code, step.Code, raw)
		}
		out = append(out, a)
	}
	return out
}

// patience is how long a server may take for what it does by itself.
const patience = 10 * time.Second

func (s Step) repeat(t *testing.T, client *http.Client, host, ns string) (Answer, []byte) {
	t.Helper()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		a, raw := s.send(t, client, host, ns)
		if s.Until == "" || a.Code == s.Code && (s.Until == "-" || bytes.Contains(raw, []byte(s.Until))) {
			return a, raw
		}
		select {
		case <-deadline:
			t.Errorf("%s: no %q within %s: %s", s.Do, s.Until, patience, raw)
			return a, raw
		case <-tick.C:
		}
	}
}

func (s Step) send(t *testing.T, client *http.Client, host, ns string) (Answer, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	method, path, _ := strings.Cut(strings.ReplaceAll(s.Do, "$NS", ns), " ")
	req, err := http.NewRequestWithContext(ctx, method, host+path, bytes.NewReader(s.body(t, ns)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	if s.Accept != "" {
		req.Header.Set("Accept", s.Accept)
	}
	req.Header.Set("Content-Type", "application/json")
	if s.Type != "" {
		req.Header.Set("Content-Type", s.Type)
	}
	req.Header.Set("User-Agent", "conformance/1")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Answer{Do: s.Do, Code: resp.StatusCode, Body: s.pick(normalise(raw, ns))}, raw
}

func (s Step) body(t *testing.T, ns string) []byte {
	t.Helper()
	text := strings.ReplaceAll(s.Body, "$NS", ns)
	if strings.HasPrefix(text, "[") || text == "" { // a JSON patch
		return []byte(text)
	}
	out, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pick reduces an answer to what is compared of it.
func (s Step) pick(body any) any {
	switch s.Only {
	case "":
		return body
	case "-":
		return nil
	}
	for _, f := range strings.Split(s.Only, ".") {
		m, ok := body.(map[string]any)
		if !ok {
			return fmt.Sprintf("no %s", s.Only)
		}
		body = m[f]
	}
	return body
}

// lines decodes a watch: one value after the other.
func lines(raw []byte) []any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	var out []any
	for {
		var v any
		if dec.Decode(&v) != nil {
			return out
		}
		out = append(out, v)
	}
}
