package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/controlplane"
	"github.com/kyma-project/mothership/internal/fleetview"
)

const aboutExplain = `
Says how a Kyma is and why, what was tried and how often, what happens next and when, and what you can do. It reads the
Kyma, its Runtime, the catalogue and the events, and asks the control plane's HTTP address (in ConfigMap "mothership")
what it has planned. Where that cannot be reached, it explains what the status tells.
`

func (a *app) explain() *cobra.Command {
	f := &fleetFlags{}
	cmd := a.verb("explain KYMA [MODULE] [flags]", "Explain why a Kyma or a module is not ready, and what happens next", aboutExplain,
		"  mothership explain eu-1\n  mothership explain eu-1 istio", []string{"KYMA", "[MODULE]"},
		func(cmd *cobra.Command, args []string) error { return a.runExplain(cmd, f, args) })
	f.addTo(cmd)
	f.outputTo(cmd, asTable, asJSON, asYAML)
	a.completing(cmd, f, &v1beta2.KymaList{}, &v1beta2.ModuleReleaseMetaList{})
	return cmd
}

// explained is what explain prints with -o json.
type explained struct {
	fleetview.Explanation
	Events []fleetview.Event `json:"events"`
}

func (a *app) runExplain(cmd *cobra.Command, f *fleetFlags, args []string) error {
	if err := f.checkOutput(cmd, asTable, asJSON, asYAML); err != nil {
		return err
	}
	fl, err := a.connect(cmd, f)
	if err != nil {
		return err
	}
	out, err := a.explanation(cmd, fl, args[0])
	if err != nil {
		return err
	}
	if len(args) > 1 {
		var found bool
		if out.Explanation, found = out.Of(args[1]); !found {
			return &hintedError{
				err:  fmt.Errorf("Kyma %q has no module %q", args[0], args[1]), //nolint:staticcheck // it begins with a kind
				hint: fmt.Sprintf("to enable it: mothership module enable %s %s", args[0], args[1]),
			}
		}
		out.Events = eventsOf(out.Events, args[1])
	}
	return a.print(&flags{output: f.output}, out, func() string { return a.explainText(out) })
}

// eventsOf are those that name a module.
func eventsOf(events []fleetview.Event, module string) []fleetview.Event {
	out := []fleetview.Event{}
	for _, e := range events {
		if strings.HasPrefix(e.Message, "Module "+module+" ") || strings.HasPrefix(e.Message, "Module "+module+":") {
			out = append(out, e)
		}
	}
	return out
}

// explanation gathers what is known of a Kyma.
func (a *app) explanation(cmd *cobra.Command, f *fleet, name string) (*explained, error) {
	ctx := cmd.Context()
	var k v1beta2.Kyma
	if err := f.get(ctx, name, &k); err != nil {
		return nil, err
	}
	in := fleetview.Input{Kyma: &k}
	var r v1beta2.Runtime
	switch err := f.get(ctx, name, &r); {
	case err == nil:
		in.Runtime = &r
	case !errors.As(err, new(*missingError)):
		return nil, err
	}
	var err error
	objects, err := f.readAll(cmd, []client.ObjectList{&v1beta2.ModuleTemplateList{}, &v1beta2.ModuleReleaseMetaList{}})
	if err != nil {
		return nil, err
	}
	in.Catalog = catalogOf(objects)
	if in.Engine, err = f.askEngine(ctx, name); err != nil {
		a.note("note", "the control plane itself was not asked, so attempts and times are not known: "+err.Error())
	}
	events, err := f.events(ctx, "Kyma", name)
	if err != nil {
		return nil, err
	}
	if events == nil {
		events = []fleetview.Event{}
	}
	return &explained{fleetview.Explain(in), events}, nil
}

const (
	// askTimeout is how long the control plane's HTTP address is waited for.
	askTimeout = 3 * time.Second
	// maxAnswer bounds its answer, in bytes.
	maxAnswer = 4 << 20
)

// askEngine asks the control plane what it has planned for a runtime.
func (f *fleet) askEngine(ctx context.Context, name string) (*controlplane.Explanation, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var m corev1.ConfigMap
	if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: "mothership"}, &m); err != nil {
		return nil, fmt.Errorf("reading its address from ConfigMap %s/mothership: %w", f.namespace, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.Data["address"]+"/fleet/"+f.namespace+"/"+name, nil)
	if err != nil {
		return nil, fmt.Errorf("reading its address from ConfigMap %s/mothership: %w", f.namespace, err)
	}
	resp, err := (&http.Client{}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", resp.Status)
	}
	var out controlplane.Explanation
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&out); err != nil {
		return nil, fmt.Errorf("reading its answer: %w", err)
	}
	return &out, nil
}

func (a *app) explainText(e *explained) string {
	paint, now := a.palette(a.p.Stdout), time.Now()
	var b strings.Builder
	fmt.Fprintf(&b, "Kyma %s is %s", e.Kyma, paint.state(e.State, string(e.State)))
	b.WriteString(colon(e.Why) + "\n")
	if e.Suspend {
		b.WriteString(point("next", "nothing is installed, repaired or removed while it is suspended"))
		b.WriteString(point("do", "mothership resume "+e.Kyma))
	}
	b.WriteString(runtimeText(paint, e.Runtime, now))
	for _, m := range e.Modules {
		b.WriteString("\n" + moduleText(paint, m, now))
	}
	b.WriteString(eventText(paint, e.Events, now))
	return b.String()
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + oneLine(text)
}

// point is one indented line, nothing where there is nothing to say.
func point(name, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("  %-8s %s\n", name+":", oneLine(text))
}

func runtimeText(paint palette, r fleetview.RuntimeExplanation, now time.Time) string {
	state := "missing"
	if r.Exists {
		state = string(r.State)
	}
	if state == "" {
		state = string(v1beta2.StateProcessing)
	}
	text := "Runtime is " + paint.state(v1beta2.State(state), state) + colon(r.Why) + "\n"
	if r.Failures > 0 {
		text += point("tried", count(r.Failures, "time")+" in a row without an answer")
	}
	if r.NextProbe != nil {
		text += point("next", "it is asked again "+in(*r.NextProbe, now))
	}
	return text + point("do", r.Advice)
}

func moduleText(paint palette, m fleetview.ModuleExplanation, now time.Time) string {
	text := "Module " + strings.TrimSpace(m.Module.Module+" "+m.Version) + " is " + paint.state(m.State, string(m.State))
	if ago := since(m.Since, now); ago != "" {
		text += ", for " + ago
	}
	text += "\n" + point("why", m.Message)
	for _, w := range m.Waits {
		text += point("waits", w)
	}
	if m.Tried != "" {
		tried := m.Tried
		if m.TriedAt != nil {
			at := metav1.NewTime(*m.TriedAt)
			tried += ", " + since(&at, now) + " ago"
		}
		if m.Attempts > 0 {
			tried += ", failed " + count(m.Attempts, "time") + " in a row"
		}
		text += point("tried", tried)
	}
	next := m.Next
	if m.NextAt != nil {
		next += " " + in(*m.NextAt, now)
	}
	return text + point("next", next) + point("do", m.Advice)
}

// in is when something is due, for people.
func in(at, now time.Time) string {
	if d := at.Sub(now); d > time.Second {
		return "in " + duration.HumanDuration(d)
	}
	return "now"
}
