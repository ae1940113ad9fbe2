package mothership_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
	"github.com/kyma-project/mothership/reconciler"
)

// exampleTB lets examples use the server that the tests share.
type exampleTB struct{ testing.TB }

func (exampleTB) Helper()           {}
func (exampleTB) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// runtimeConfig leads to the cluster that the examples work on: usually read from a kubeconfig.
func runtimeConfig() *rest.Config { return localtest.Server(exampleTB{}).Config() }

const greeter = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: greeter
data:
  greeting: hello
`

func ExampleInstaller_Install() {
	installer := mothership.New(mothership.Options{Stdin: strings.NewReader(greeter)})
	module := mothership.Module{Name: "greeter", Namespace: "example-install"}
	module.Template.Source = mothership.Manifests("-") // or Chart, or Kustomization

	result, err := installer.Install(context.Background(), runtimeConfig(), module, mothership.InstallOptions{Wait: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range result.Objects {
		fmt.Println(e.Object, e.Action)
	}

	removed, err := installer.Uninstall(context.Background(), runtimeConfig(), module, mothership.UninstallOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(removed.Count(mothership.ActionDelete), "deleted")
	// Output:
	// ConfigMap example-install/greeter created
	// 1 deleted
}

func ExampleInstaller_Diff() {
	installer := mothership.New(mothership.Options{})
	module := mothership.Module{Name: "web", Namespace: "example-diff", Values: map[string]any{"replicas": 3}}
	module.Template.Source = mothership.Chart("examples/web")
	ctx := context.Background()
	if _, err := installer.Install(ctx, runtimeConfig(), module, mothership.InstallOptions{}); err != nil {
		fmt.Println(err)
		return
	}

	module.Values = map[string]any{"replicas": 5}
	diff, err := installer.Diff(ctx, runtimeConfig(), module, mothership.CompareOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, change := range diff.Changes {
		for _, field := range change.Fields {
			fmt.Printf("%s: %s from %v to %v\n", change.Object, field.Path, field.From, field.To)
		}
	}
	if _, err := installer.Uninstall(ctx, runtimeConfig(), module, mothership.UninstallOptions{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Deployment.apps example-diff/web: .spec.replicas from 3 to 5
}

func ExampleInstaller_Render() {
	installer := mothership.New(mothership.Options{Stdin: strings.NewReader(greeter)})
	module := mothership.Module{Name: "greeter", Namespace: "demo"}
	module.Template.Source = mothership.Manifests("-")

	rendered, err := installer.Render(context.Background(), module, mothership.RenderOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, object := range rendered.Objects {
		fmt.Printf("%s, stage %s\n", object.Ref, object.Stage) // and what would be sent: object.JSON
	}
	// Output:
	// ConfigMap demo/greeter, stage built-in
}

// A team that owns a module writes only what is special about it: here, a default that depends on a fact, something that must
// hold before, and a fact that others wait for.
func ExampleNewReconciler() {
	greeting := reconciler.With(mothership.NewReconciler(mothership.Options{}), reconciler.Hooks{
		Default: func(_ context.Context, req *reconciler.Request) error {
			replicas := 1
			if req.Facts["cluster.plan"] == "large" {
				replicas = 3
			}
			req.Component.Values = map[string]any{"replicas": replicas}
			return nil
		},
		Before: func(_ context.Context, req reconciler.Request) reconciler.Result {
			if _, ok := req.Facts["cluster.plan"]; !ok {
				return reconciler.Waiting("cluster.plan")
			}
			return reconciler.Done()
		},
		After: func(context.Context, reconciler.Request) reconciler.Result {
			return reconciler.Done(reconciler.Fact{Key: "greeting.url", Value: "http://web.example-reconciler"})
		},
	})

	runtime, closeIt, err := mothership.NewRuntime("eu-1", runtimeConfig(), mothership.Connection{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer closeIt()
	req := reconciler.Request{Runtime: runtime, Facts: map[string]string{}}
	req.Component = reconciler.Component{Name: "greeting", Namespace: "example-reconciler"}
	req.Component.Template.Version = "1.0.0"
	req.Component.Template.Source = mothership.Chart("examples/web")

	result := greeting.Reconcile(context.Background(), req)
	fmt.Println(result.Outcome, result.Needs)

	req.Facts["cluster.plan"] = "large"
	if result = settle(greeting, req); result.Err != nil {
		fmt.Println(result.Err)
	}
	fmt.Println(result.Outcome, result.Facts)

	req.Component.Deleting = true
	fmt.Println(settle(greeting, req).Outcome)
	// Output:
	// waiting [cluster.plan]
	// done [{module.greeting 1.0.0} {greeting.url http://web.example-reconciler}]
	// done
}
