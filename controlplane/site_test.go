package controlplane_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/journal"
)

// site is one test's part of the world: a runtime of its own, and names that nobody else uses.
type site struct {
	*world
	t     *testing.T
	name  string // of the Kyma and Runtime; also the namespace of its modules in the runtime, and the beginning of their names
	proxy *proxy
	token string
}

var notDNS = regexp.MustCompile(`[^a-z0-9]+`)

// newSite makes one without anything in the control plane.
func newSite(t *testing.T) *site {
	t.Helper()
	w, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return w.site(t)
}

// newBareSite makes one for a control plane of the test's own (another).
func newBareSite(t *testing.T) *site {
	t.Helper()
	w, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return w.bare(t)
}

// sites counts them: a test may be run again.
var sites atomic.Int64

// site is one in the world's own control plane.
func (w *world) site(t *testing.T) *site {
	t.Helper()
	s := w.bare(t)
	t.Cleanup(s.leave)
	return s
}

// bare is a site that nobody tidies up.
func (w *world) bare(t *testing.T) *site {
	t.Helper()
	name := strings.Trim(notDNS.ReplaceAllString(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), "-"), "-")
	name = name[:min(len(name), 36)] + "-" + strconv.FormatInt(sites.Add(1), 10)
	s := &site{world: w, t: t, name: name, proxy: newProxy(t, w.target.Config(), w.uid)}
	s.token = canary(s.name)
	return s
}

// canary is a secret that must never be seen.
func canary(of string) string { return canaryPrefix + of }

const canaryPrefix = "c4n4ry-"

// leave lets go of all that the test made, and shows what happened if it failed.
func (s *site) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s.t.Failed() {
		s.t.Logf("the log:\n%s", strings.Join(s.log.about(s.name), "\n"))
	}
	var r v1beta2.Runtime
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := s.api.Get(ctx, s.key(), &r); err != nil {
			return err
		}
		if r.Spec.Provider == v1beta2.ProviderLocal {
			return nil
		}
		r.Spec.DeletionPolicy = v1beta2.DeletionAbandon
		return s.api.Update(ctx, &r)
	})
	if err == nil {
		err = s.api.Delete(ctx, &r)
	}
	if client.IgnoreNotFound(err) != nil {
		s.t.Errorf("leaving: %v", err)
	}
	if err := s.api.Delete(ctx, &v1beta2.Kyma{ObjectMeta: s.meta(s.name)}); client.IgnoreNotFound(err) != nil {
		s.t.Errorf("leaving: %v", err)
	}
}

// patience bounds each wait: most take milliseconds.
const patience = 30 * time.Second

func (s *site) key() client.ObjectKey { return client.ObjectKey{Namespace: space, Name: s.name} }

func (s *site) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: space, Name: name}
}

// mod is the full name of a module of this test.
func (s *site) mod(name string) string { return s.name + "-" + name }

func (s *site) create(objects ...client.Object) {
	s.t.Helper()
	for _, obj := range objects {
		if err := s.api.Create(s.t.Context(), obj); err != nil {
			s.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

func (s *site) drop(objects ...client.Object) {
	s.t.Helper()
	for _, obj := range objects {
		if err := s.api.Delete(s.t.Context(), obj); err != nil {
			s.t.Fatalf("deleting %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

// join makes the Runtime and the Secret that leads to the site's proxy.
func (s *site) join(change ...func(*v1beta2.Runtime)) {
	s.t.Helper()
	r := &v1beta2.Runtime{ObjectMeta: s.meta(s.name), Spec: v1beta2.RuntimeSpec{
		Provider: v1beta2.ProviderBYOC, Kubeconfig: &v1beta2.KubeconfigSpec{SecretRef: v1beta2.SecretKeyReference{Name: s.name}},
	}}
	for _, c := range change {
		c(r)
	}
	s.create(s.secret(s.name, map[string]string{"kubeconfig": string(s.proxy.kubeconfig(s.token))}), r)
}

func watching(r *v1beta2.Runtime)   { r.Spec.DriftDetection = v1beta2.DriftWatch }
func abandoning(r *v1beta2.Runtime) { r.Spec.DeletionPolicy = v1beta2.DeletionAbandon }

func (s *site) secret(name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: s.meta(name), StringData: data}
}

// wants makes the Kyma.
func (s *site) wants(modules ...v1beta2.Module) {
	s.t.Helper()
	s.create(&v1beta2.Kyma{ObjectMeta: s.meta(s.name), Spec: v1beta2.KymaSpec{Channel: "regular", Modules: modules}})
}

// entry is a Kyma's entry of a module of this test.
func (s *site) entry(name string, change ...func(*v1beta2.Module)) v1beta2.Module {
	m := v1beta2.Module{Name: s.mod(name)}
	for _, c := range change {
		c(&m)
	}
	return m
}

// template makes a version of a module that is one ConfigMap, and its release in the channel regular, or has both made anew.
func (s *site) offers(name, version string, change ...func(*v1beta2.ModuleTemplateSpec)) {
	s.t.Helper()
	s.template(name, version, change...)
	s.release(name, version)
}

func (s *site) template(name, version string, change ...func(*v1beta2.ModuleTemplateSpec)) {
	s.t.Helper()
	t := &v1beta2.ModuleTemplate{ObjectMeta: s.meta(s.mod(name) + "-" + version), Spec: v1beta2.ModuleTemplateSpec{
		ModuleName: s.mod(name), Version: version, Namespace: s.name, Source: s.manifests(configMap(s.mod(name), map[string]string{"version": version})),
	}}
	for _, c := range change {
		c(&t.Spec)
	}
	s.create(t)
}

// release says what the channel regular has.
func (s *site) release(name, version string) {
	s.t.Helper()
	r := &v1beta2.ModuleReleaseMeta{ObjectMeta: s.meta(s.mod(name))}
	err := s.api.Get(s.t.Context(), client.ObjectKeyFromObject(r), r)
	r.Spec.ModuleName, r.Spec.Channels = s.mod(name), []v1beta2.ChannelVersion{{Channel: "regular", Version: version}}
	switch {
	case apierrors.IsNotFound(err):
		err = s.api.Create(s.t.Context(), r)
	case err == nil:
		err = s.api.Update(s.t.Context(), r)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// manifests is a source of plain YAML.
func (s *site) manifests(yaml string) v1beta2.Source {
	s.t.Helper()
	return v1beta2.Source{Manifests: &v1beta2.SourceRef{Path: s.file("module.yaml", yaml)}}
}

// file writes one into a folder of its own, which outlives the test: the control plane may still look at it.
func (s *site) file(name, text string) string {
	s.t.Helper()
	dir, err := os.MkdirTemp(s.dir, "source-")
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(dir, name)
	s.write(file, text)
	return file
}

func (s *site) write(file, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// chart is a source that is a Helm chart of one template.
func (s *site) chart(template string) v1beta2.Source {
	s.t.Helper()
	file := s.file("Chart.yaml", "apiVersion: v2\nname: it\nversion: 0.1.0\n")
	s.write(filepath.Join(filepath.Dir(file), "templates", "it.yaml"), template)
	return v1beta2.Source{Chart: &v1beta2.SourceRef{Path: filepath.Dir(file)}}
}

func configMap(name string, data map[string]string) string {
	out := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata:\n"
	for _, key := range slices.Sorted(maps.Keys(data)) {
		out += fmt.Sprintf("  %s: %q\n", key, data[key])
	}
	return out
}

// change changes an object of the control plane.
func change[T client.Object](s *site, obj T, name string, f func(T)) {
	s.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: space, Name: name}, obj); err != nil {
			return err
		}
		f(obj)
		return s.api.Update(s.t.Context(), obj)
	})
	if err != nil {
		s.t.Fatalf("changing %T %s: %v", obj, name, err)
	}
}

// changes changes the Kyma.
func (s *site) changes(f func(*v1beta2.Kyma)) {
	s.t.Helper()
	change(s, &v1beta2.Kyma{}, s.name, f)
}

// await watches an object until it is as wanted; nil means that it is gone.
func await[T client.Object](t *testing.T, c client.WithWatch, list client.ObjectList, key client.ObjectKey, want string, ok func(T) bool) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w, err := c.Watch(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var last T
	for e := range w.ResultChan() {
		obj, is := e.Object.(T)
		if !is {
			continue
		}
		last = obj
		if e.Type != watch.Deleted && ok(obj) {
			return obj
		}
	}
	t.Fatalf("%s is not: %s; it is %+v", key, want, last)
	return last
}

// gone waits until an object is no more.
func gone(t *testing.T, c client.WithWatch, obj client.Object, list client.ObjectList) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	key := client.ObjectKeyFromObject(obj)
	w, err := c.Watch(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := c.Get(ctx, key, obj); apierrors.IsNotFound(err) {
		return
	}
	for e := range w.ResultChan() {
		if e.Type == watch.Deleted {
			return
		}
	}
	_ = c.Get(t.Context(), key, obj)
	t.Fatalf("%s is not gone: %+v", key, obj)
}

// kyma waits until the Kyma is as wanted.
func (s *site) kyma(want string, ok func(*v1beta2.Kyma) bool) *v1beta2.Kyma {
	s.t.Helper()
	return await(s.t, s.api, &v1beta2.KymaList{}, s.key(), want, ok)
}

// ready waits until the Kyma's newest spec is done.
func (s *site) ready() *v1beta2.Kyma {
	s.t.Helper()
	return s.kyma("ready", func(k *v1beta2.Kyma) bool {
		return k.Status.State == v1beta2.StateReady && k.Status.ObservedGeneration == k.Generation
	})
}

// written waits until no change to the runtime is noted as unfinished: until then, the status is not taken for true.
func (s *site) written() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	segments := []client.ListOption{client.InNamespace(space), client.HasLabels{journal.Label}}
	w, err := s.api.Watch(ctx, &corev1.ConfigMapList{}, segments...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Stop()
	for {
		var list corev1.ConfigMapList
		if err := s.api.List(ctx, &list, segments...); err != nil {
			s.t.Fatal(err)
		}
		noted := slices.ContainsFunc(list.Items, func(m corev1.ConfigMap) bool { return strings.Contains(fmt.Sprint(m.Data), "/"+s.name+"/") })
		if !noted {
			return
		}
		if _, changed := <-w.ResultChan(); !changed && ctx.Err() == nil { // at the end of its time, the list fails
			s.t.Fatal("the watch of the journal has ended")
		}
	}
}

// module waits until a module of this test is as wanted.
func (s *site) module(name, want string, ok func(v1beta2.ModuleStatus) bool) v1beta2.ModuleStatus {
	s.t.Helper()
	k := s.kyma("module "+name+": "+want, func(k *v1beta2.Kyma) bool {
		m := moduleOf(k, s.mod(name))
		return m != nil && ok(*m)
	})
	return *moduleOf(k, s.mod(name))
}

// state waits until a module of this test has a state.
func (s *site) state(name string, want v1beta2.State) v1beta2.ModuleStatus {
	s.t.Helper()
	return s.module(name, string(want), func(m v1beta2.ModuleStatus) bool { return m.State == want })
}

// at waits until a module of this test is ready in a version.
func (s *site) at(name, version string) v1beta2.ModuleStatus {
	s.t.Helper()
	return s.module(name, "ready at "+version, func(m v1beta2.ModuleStatus) bool { return m.State == v1beta2.StateReady && m.Version == version })
}

func moduleOf(k *v1beta2.Kyma, name string) *v1beta2.ModuleStatus {
	for i := range k.Status.Modules {
		if k.Status.Modules[i].Name == name {
			return &k.Status.Modules[i]
		}
	}
	return nil
}

// unreachable waits until the Kyma's runtime is said not to be reachable, for a reason.
func (s *site) unreachable(reason string) *v1beta2.Kyma {
	s.t.Helper()
	return s.kyma("unreachable: "+reason, func(k *v1beta2.Kyma) bool {
		c := meta.FindStatusCondition(k.Status.Conditions, v1beta2.ConditionReachable)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == reason
	})
}

// object waits until the ConfigMap of a module is in the runtime, as wanted.
func (s *site) object(name, want string, ok func(*corev1.ConfigMap) bool) *corev1.ConfigMap {
	s.t.Helper()
	return await(s.t, s.cloud, &corev1.ConfigMapList{}, client.ObjectKey{Namespace: s.name, Name: s.mod(name)}, want, ok)
}

// has says whether the ConfigMap of a module is in the runtime now.
func (s *site) has(name string) bool {
	s.t.Helper()
	err := s.cloud.Get(s.t.Context(), client.ObjectKey{Namespace: s.name, Name: s.mod(name)}, &corev1.ConfigMap{})
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	return err == nil
}

// during watches the Kyma for a while and returns every version of it that was seen after the first.
func (s *site) during(d time.Duration) []*v1beta2.Kyma {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	w, err := s.api.Watch(ctx, &v1beta2.KymaList{}, client.InNamespace(space), client.MatchingFields{"metadata.name": s.name})
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Stop()
	var out []*v1beta2.Kyma
	for e := range w.ResultChan() {
		if k, is := e.Object.(*v1beta2.Kyma); is && e.Type == watch.Modified {
			out = append(out, k)
		}
	}
	return out
}

// event waits for an event about an object of the test's name.
func (s *site) event(reason, text string) *eventsv1.Event {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	w, err := s.api.Watch(ctx, &eventsv1.EventList{}, client.InNamespace(space))
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if ev, is := e.Object.(*eventsv1.Event); is && ev.Regarding.Name == s.name && ev.Reason == reason && strings.Contains(ev.Note, text) {
			return ev
		}
	}
	s.t.Fatalf("there is no event %s with %q", reason, text)
	return nil
}

// in names an object of the test in the runtime.
func (s *site) in(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.name, Name: name}
}

// observed is how long nothing must happen, for a test to believe that it does not.
const observed = 700 * time.Millisecond

// reasonOf is that of the condition Ready.
func reasonOf(k *v1beta2.Kyma) string {
	if c := meta.FindStatusCondition(k.Status.Conditions, v1beta2.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}
