package apitest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// TestGoTypesAndDefinitionsAgree writes objects of the Go types strictly, status included, and reads the same back.
func TestGoTypesAndDefinitionsAgree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, obj := range []any{fullKyma(), &v1beta2.Kyma{Spec: v1beta2.KymaSpec{Channel: "fast"}}, fullTemplate(), fullRelease(), fullRuntime()} {
		want := b.untyped(t, obj)
		t.Run(want.GetKind(), func(t *testing.T) {
			got := b.mustCreate(t, want)
			if status, found := want.Object["status"]; found {
				got.Object["status"] = status
				var err error
				if got, err = b.resource(want.GetKind()).UpdateStatus(t.Context(), got, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
					t.Fatal(err)
				}
			}
			for _, part := range []string{"spec", "status"} {
				if diff := cmp.Diff(want.Object[part], got.Object[part]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", part, diff)
				}
			}
		})
	}
}

// untyped is what an object of a Go type looks like on the wire, with a name where it has none.
func (b bed) untyped(t *testing.T, obj any) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	typed, ok := obj.(runtime.Object)
	if !ok {
		t.Fatalf("%T is no object", obj)
	}
	kinds, _, err := v1beta2Scheme(t).ObjectKinds(typed)
	if err != nil {
		t.Fatal(err)
	}
	u.SetGroupVersionKind(kinds[0])
	if u.GetName() == "" {
		u.SetName("minimal")
	}
	return u
}

func condition() metav1.Condition {
	return metav1.Condition{
		Type: v1beta2.ConditionReady, Status: metav1.ConditionFalse, Reason: v1beta2.ReasonModuleWarning, Message: "web: look",
		ObservedGeneration: 1, LastTransitionTime: instant(),
	}
}

func instant() metav1.Time { return metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) }

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

func fullKyma() *v1beta2.Kyma {
	return &v1beta2.Kyma{
		ObjectMeta: metav1.ObjectMeta{Name: "full"},
		Spec: v1beta2.KymaSpec{
			Channel: "fast", Suspend: true, SkipMaintenanceWindows: true,
			Modules: []v1beta2.Module{
				{
					Name: "web", Channel: "regular", Managed: new(false), CustomResourcePolicy: v1beta2.IgnoreCustomResource,
					Values: raw(`{"a":{"b":[1,"c"]}}`), ControllerName: "x", RemoteModuleTemplateRef: "y",
					ValuesFrom: []v1beta2.ValuesReference{{Kind: "Secret", Name: "s", Key: "k", Optional: true}},
				},
				{Name: "db", Version: "1.0.0", Managed: new(true), CustomResourcePolicy: v1beta2.CreateAndDelete},
			},
		},
		Status: v1beta2.KymaStatus{
			State: v1beta2.StateWarning, ObservedGeneration: 1, ActiveChannel: "fast", RuntimeUID: "u", ModulesReady: "1/2",
			Conditions: []metav1.Condition{condition()},
			Modules: []v1beta2.ModuleStatus{
				{
					Name: "web", Namespace: "kyma-system", Channel: "regular", Version: "1.0.0", State: v1beta2.StateWaiting, Message: "m",
					WaitingFor: []string{"module.db"}, InputDigest: "i", BundleDigest: "b", LastTransitionTime: instant(),
				},
				{Name: "db", State: v1beta2.StateReady},
			},
		},
	}
}

func fullTemplate() *v1beta2.ModuleTemplate {
	return &v1beta2.ModuleTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1.0.0"},
		Spec: v1beta2.ModuleTemplateSpec{
			ModuleName: "web", Version: "1.0.0", Namespace: "shop", Reconciler: "special", Needs: []string{"module.istio"},
			Source: v1beta2.Source{Chart: &v1beta2.SourceRef{
				Path: "web", URL: "https://example.com/web.tgz", Digest: "sha256:" + strings.Repeat("0", 64),
				CredentialsRef: &v1beta2.SecretReference{Name: "charts"}, CABundle: "-----BEGIN CERTIFICATE-----",
			}},
			Values: raw(`{"replicas":2}`), Data: raw(`{"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"web"},"spec":{"a":1}}`),
			Manager: &v1beta2.Manager{Group: "example.com", Version: "v1", Kind: "Web", Namespace: "shop", Name: "web"},
			Health:  []v1beta2.HealthRule{{Group: "example.com", Kind: "Web", Ready: "self.ok", Failed: "self.broken"}},
			Yield:   []v1beta2.YieldRule{{Group: "apps", Kind: "Deployment", Name: "web", Paths: []string{"/spec/replicas"}}},
			Adopt:   true, PerRuntime: true,
		},
	}
}

func fullRelease() *v1beta2.ModuleReleaseMeta {
	return &v1beta2.ModuleReleaseMeta{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: v1beta2.ModuleReleaseMetaSpec{
			ModuleName: "web", Channels: []v1beta2.ChannelVersion{{Channel: "fast", Version: "v1.0.0"}},
			KymaSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			OcmComponentName: "example.com/web", Beta: true, Internal: true,
		},
	}
}

func fullRuntime() *v1beta2.Runtime {
	return &v1beta2.Runtime{
		ObjectMeta: metav1.ObjectMeta{Name: "full"},
		Spec: v1beta2.RuntimeSpec{
			Provider: v1beta2.ProviderBYOC, DriftDetection: v1beta2.DriftWatch, DeletionPolicy: v1beta2.DeletionAbandon,
			Kubeconfig: &v1beta2.KubeconfigSpec{SecretRef: v1beta2.SecretKeyReference{Name: "full", Key: "config"}},
		},
		Status: v1beta2.RuntimeStatus{
			State: v1beta2.StateReady, ObservedGeneration: 1, Conditions: []metav1.Condition{condition()},
			Facts: []v1beta2.Fact{{Key: v1beta2.FactKubernetesVersion, Value: "v1.36.3", Writer: "local", ObservedAt: instant()}},
		},
	}
}
