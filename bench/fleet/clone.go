package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// written is what the control plane wrote about a runtime that has joined.
type written struct {
	kyma    v1beta2.Kyma
	runtime v1beta2.Runtime
}

func (b *bench) read(ctx context.Context, name string) (w written, err error) {
	key := client.ObjectKey{Namespace: space, Name: name}
	if err := b.api.client.Get(ctx, key, &w.kyma); err != nil {
		return w, fmt.Errorf("reading what was written: %w", err)
	}
	if err := b.api.client.Get(ctx, key, &w.runtime); err != nil {
		return w, fmt.Errorf("reading what was written: %w", err)
	}
	return w, nil
}

// cloneAll writes down the rest of the runtimes as the control plane has written down the template. It must not run meanwhile.
func (b *bench) cloneAll(ctx context.Context, runtimes int) error {
	if b.fleet >= runtimes {
		return nil
	}
	original, err := b.read(ctx, template)
	if err != nil {
		return err
	}
	if err := b.compare(ctx, original); err != nil {
		return err
	}
	cfg, err := b.sim.config(ctx, template)
	if err != nil {
		return err
	}
	c := clientOf(cfg)
	defer c.CloseIdleConnections()
	return b.each(ctx, runtimes, func(ctx context.Context, name string) error { return b.clone(ctx, c, original, name) })
}

// compare checks that what cloned makes of the template is what the control plane has made of each runtime that has joined.
func (b *bench) compare(ctx context.Context, original written) error {
	for i := range min(sample, b.fleet) {
		got, err := b.read(ctx, runtimeName(i))
		if err != nil {
			return err
		}
		uid := got.kyma.Status.RuntimeUID
		version, _ := factOf(&got.runtime, v1beta2.FactKubeconfigVersion)
		want := cloned(original, got.kyma.Name, uid, version)
		if diff := cmp.Diff(comparison(want), comparison(got)); diff != "" {
			return fmt.Errorf("%w: %s", errOther, diff)
		}
	}
	return nil
}

var errOther = errors.New("a runtime that has joined is not as the clones would be")

// comparison leaves out what differs for good reasons: times, what the API adds, and the order of conditions.
func comparison(w written) any {
	k, r := w.kyma.DeepCopy(), w.runtime.DeepCopy()
	for i := range k.Status.Modules {
		k.Status.Modules[i].LastTransitionTime = metav1.Time{}
	}
	for _, list := range [][]metav1.Condition{k.Status.Conditions, r.Status.Conditions} {
		for i := range list {
			list[i].LastTransitionTime = metav1.Time{}
		}
		slices.SortFunc(list, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	}
	for i := range r.Status.Facts {
		r.Status.Facts[i].ObservedAt = metav1.Time{}
	}
	return []any{k.Name, k.Finalizers, k.Spec, k.Status, r.Name, r.Finalizers, r.Spec, r.Status}
}

// cloned is what the control plane would have written of a runtime, after what it has written of another.
func cloned(of written, name, uid, kubeconfig string) written {
	k := v1beta2.Kyma{ObjectMeta: named(name), Spec: *of.kyma.Spec.DeepCopy(), Status: *of.kyma.Status.DeepCopy()}
	k.Finalizers, k.Status.RuntimeUID = of.kyma.Finalizers, uid
	r := v1beta2.Runtime{ObjectMeta: named(name), Spec: *of.runtime.Spec.DeepCopy(), Status: *of.runtime.Status.DeepCopy()}
	r.Finalizers, r.Spec.Kubeconfig.SecretRef.Name = of.runtime.Finalizers, name
	own := map[string]string{
		v1beta2.FactRuntimeUID: uid, v1beta2.FactKubeconfigVersion: kubeconfig, v1beta2.FactKubeconfigSecret: name + "/kubeconfig",
	}
	for i := range r.Status.Facts {
		if value, ok := own[r.Status.Facts[i].Key]; ok {
			r.Status.Facts[i].Value = value
		}
	}
	return written{k, r}
}

func factOf(r *v1beta2.Runtime, key string) (string, bool) {
	for _, f := range r.Status.Facts {
		if f.Key == key {
			return f.Value, true
		}
	}
	return "", false
}

// clone writes down one runtime.
func (b *bench) clone(ctx context.Context, sim *http.Client, original written, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	kubeconfig, err := b.sim.kubeconfig(ctx, name)
	if err != nil {
		return err
	}
	uid, err := b.uidOf(ctx, sim, name)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: named(name), Data: map[string][]byte{"kubeconfig": kubeconfig}}
	if err := b.create(ctx, secret); err != nil {
		return err
	}
	w := cloned(original, name, uid, string(secret.UID)+"/"+secret.ResourceVersion)
	runtimeStatus, kymaStatus := w.runtime.Status, w.kyma.Status
	if err := b.create(ctx, &w.runtime, &w.kyma); err != nil {
		return err
	}
	w.runtime.Status, w.kyma.Status = runtimeStatus, kymaStatus
	for _, obj := range []client.Object{&w.runtime, &w.kyma} {
		if err := b.api.client.Status().Update(ctx, obj); err != nil {
			return fmt.Errorf("writing the status of %T %s: %w", obj, name, err)
		}
	}
	return nil
}

// uidOf is the identity of a cluster of the simulator.
func (b *bench) uidOf(ctx context.Context, c *http.Client, name string) (string, error) {
	cfg, err := b.sim.config(ctx, name)
	if err != nil {
		return "", err
	}
	data, err := request(ctx, c, cfg, http.MethodGet, "/api/v1/namespaces/"+metav1.NamespaceSystem, nil)
	if err != nil {
		return "", err
	}
	var ns metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &ns); err != nil {
		return "", fmt.Errorf("reading the identity of %s: %w", name, err)
	}
	return string(ns.UID), nil
}
