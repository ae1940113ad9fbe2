package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/fleetview"
)

func (a *app) describe() *cobra.Command {
	return a.group("describe (kyma|runtime) NAME", "Show all about one Kyma or Runtime",
		"What it shall be, its conditions, its modules or facts, and what happened lately.",
		a.describing("kyma", []string{"kymas", "ky"}, &v1beta2.KymaList{}, a.describeKyma),
		a.describing("runtime", []string{"runtimes", "skr"}, &v1beta2.RuntimeList{}, a.describeRuntime))
}

func (a *app) describing(what string, aliases []string, list client.ObjectList, run func(context.Context, *fleet, string) (string, error)) *cobra.Command {
	f := &fleetFlags{}
	cmd := a.verb(what+" NAME [flags]", "Show all about a "+kindOf(list), "What is shown last is what happened, with the newest at the end.",
		"  mothership describe "+what+" eu-1", []string{"NAME"}, func(cmd *cobra.Command, args []string) error {
			if err := checkName(cmd, "name", args[0]); err != nil {
				return err
			}
			fl, err := a.connect(cmd, f)
			if err != nil {
				return err
			}
			text, err := run(cmd.Context(), fl, args[0])
			if err != nil {
				return err
			}
			return a.write(text)
		})
	cmd.Aliases = aliases
	f.addTo(cmd)
	a.completing(cmd, f, list)
	return cmd
}

func (a *app) describeKyma(ctx context.Context, f *fleet, name string) (string, error) {
	var k v1beta2.Kyma
	if err := f.get(ctx, name, &k); err != nil {
		return "", err
	}
	events, err := f.events(ctx, "Kyma", name)
	if err != nil {
		return "", err
	}
	paint, now := a.palette(a.p.Stdout), time.Now()
	_, at := readyCondition(k.Status.Conditions)
	var b strings.Builder
	b.WriteString(fields(
		"Name", k.Name, "Namespace", k.Namespace, "Labels", labelText(k.Labels), "Channel", cmp.Or(k.Status.ActiveChannel, k.Spec.Channel),
		"State", stateText(paint, k.Status.State, since(at, now)), "Modules ready", k.Status.ModulesReady, "Suspended", yes(k.Spec.Suspend),
		"Deleting", yes(k.DeletionTimestamp != nil), "Cluster", k.Status.RuntimeUID, "Age", since(&k.CreationTimestamp, now),
		"Spec", specText(&k),
	))
	b.WriteString(conditionText(paint, k.Status.Conditions, now))
	modules := moduleGrid([]client.Object{&k}, "", now).narrow()
	b.WriteString(section("Modules", modules.lines(paint, 0), len(modules.rows)))
	b.WriteString(eventText(paint, events, now))
	return b.String(), nil
}

func (a *app) describeRuntime(ctx context.Context, f *fleet, name string) (string, error) {
	var r v1beta2.Runtime
	if err := f.get(ctx, name, &r); err != nil {
		return "", err
	}
	events, err := f.events(ctx, "Runtime", name)
	if err != nil {
		return "", err
	}
	paint, now := a.palette(a.p.Stdout), time.Now()
	_, at := readyCondition(r.Status.Conditions)
	secret := ""
	if r.Spec.Kubeconfig != nil {
		secret = r.Spec.Kubeconfig.SecretRef.Name + "/" + r.Spec.Kubeconfig.SecretRef.Key
	}
	var b strings.Builder
	b.WriteString(fields(
		"Name", r.Name, "Namespace", r.Namespace, "Labels", labelText(r.Labels), "Provider", r.Spec.Provider,
		"State", stateText(paint, r.Status.State, since(at, now)), "Drift detection", string(r.Spec.DriftDetection),
		"Deletion policy", string(r.Spec.DeletionPolicy), "Kubeconfig", secret, "Deleting", yes(r.DeletionTimestamp != nil),
		"Age", since(&r.CreationTimestamp, now),
	))
	b.WriteString(conditionText(paint, r.Status.Conditions, now))
	facts := grid{columns: []column{{name: "KEY"}, {name: "VALUE"}, {name: "WRITER"}, {name: "SINCE"}}}
	for _, fact := range r.Status.Facts {
		facts.rows = append(facts.rows, gridRow{cells: cells(fact.Key, fact.Value, fact.Writer, since(&fact.ObservedAt, now))})
	}
	b.WriteString(section("Facts", facts.lines(paint, 0), len(facts.rows)))
	b.WriteString(eventText(paint, events, now))
	return b.String(), nil
}

// fields are names and values, one per line; those without a value are left out.
func fields(pairs ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(&b, "%-16s %s\n", pairs[i]+":", pairs[i+1])
		}
	}
	return b.String()
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

func stateText(paint palette, s v1beta2.State, since string) string {
	if s == "" {
		return "(the control plane has not looked at it yet)"
	}
	text := paint.state(s, oneLine(string(s)))
	if since != "" {
		text += ", for " + since
	}
	return text
}

func labelText(labels map[string]string) string {
	var out []string
	for key, value := range labels {
		out = append(out, key+"="+value)
	}
	slices.Sort(out)
	return oneLine(strings.Join(out, ", "))
}

// specText is what a Kyma asks for, module by module, without values, which may be confidential.
func specText(k *v1beta2.Kyma) string {
	var out []string
	for _, m := range k.Spec.Modules {
		text := m.Name
		switch {
		case m.Version != "":
			text += " " + m.Version
		case m.Channel != "":
			text += " (" + m.Channel + ")"
		}
		if m.Managed != nil && !*m.Managed {
			text += " (unmanaged)"
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return "no modules"
	}
	return oneLine(strings.Join(out, ", "))
}

// section is a heading and indented lines, or a word that there are none.
func section(name string, lines []string, n int) string {
	if n == 0 {
		return fmt.Sprintf("\n%s: none\n", name)
	}
	return "\n" + name + ":\n  " + strings.Join(lines, "\n  ") + "\n"
}

func conditionText(paint palette, conditions []metav1.Condition, now time.Time) string {
	g := grid{columns: []column{{name: "TYPE"}, {name: "STATUS"}, {name: "REASON"}, {name: "SINCE"}, {name: "MESSAGE"}}}
	for _, c := range conditions {
		g.rows = append(g.rows, gridRow{cells: cells(c.Type, string(c.Status), c.Reason, since(&c.LastTransitionTime, now), c.Message)})
	}
	return section("Conditions", g.lines(paint, 0), len(g.rows))
}

// maxEvents bounds how many events are read and shown of one object.
const (
	maxEventsRead  = 500
	maxEventsShown = 20
)

// events of an object, the newest last. Where they may not be read there are none.
func (f *fleet) events(ctx context.Context, kind, name string) ([]fleetview.Event, error) {
	var list corev1.EventList
	err := f.list(ctx, &list, client.MatchingFields{"involvedObject.kind": kind, "involvedObject.name": name}, client.Limit(maxEventsRead))
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return fleetview.Events(list.Items), nil
}

func eventText(paint palette, events []fleetview.Event, now time.Time) string {
	g := grid{columns: []column{{name: "AGO"}, {name: "TYPE"}, {name: "REASON"}, {name: "MESSAGE"}}}
	for _, e := range events[max(0, len(events)-maxEventsShown):] {
		message := e.Message
		if e.Count > 1 {
			message += fmt.Sprintf(" (%d times)", e.Count)
		}
		g.rows = append(g.rows, gridRow{cells: cells(since(&e.At, now), e.Type, e.Reason, message)})
	}
	return section("Events", g.lines(paint, 0), len(g.rows))
}
