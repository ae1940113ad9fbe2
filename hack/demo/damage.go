package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// deed is one damage to one object, done by kubectl.
type deed struct {
	runtime, command string
	// list and name are of the object, in namespace web.
	list client.ObjectList
	name string
	// damaged says whether an event shows the damage.
	damaged func(e watch.Event) bool
}

const (
	goodImage = "docker.io/library/nginx:1.27"
	password  = "change-me"
)

func deeds() []deed {
	return []deed{
		{
			runtime: "eu-1", command: "set image deployment/web web=docker.io/library/nginx:evil", list: &appsv1.DeploymentList{}, name: "web",
			damaged: func(e watch.Event) bool {
				d, ok := e.Object.(*appsv1.Deployment)
				return ok && d.Spec.Template.Spec.Containers[0].Image != goodImage
			},
		},
		{
			runtime: "us-1", command: "delete service web-metrics", list: &corev1.ServiceList{}, name: "web-metrics",
			damaged: func(e watch.Event) bool { return e.Type == watch.Deleted },
		},
		{
			runtime: "ap-1", command: `patch secret web-status --type merge -p {"stringData":{"password":"stolen"}}`, list: &corev1.SecretList{}, name: "web-status",
			damaged: func(e watch.Event) bool {
				s, ok := e.Object.(*corev1.Secret)
				return ok && string(s.Data["password"]) != password
			},
		},
	}
}

// damage does all deeds, one after the other, and tells how long each lasted.
func (f *fleet) damage(ctx context.Context) error {
	for _, d := range deeds() {
		if err := f.do(ctx, d); err != nil {
			return fmt.Errorf("%s on %s: %w", d.command, d.runtime, err)
		}
	}
	return nil
}

// do does one deed, and waits until it is undone. Both are seen by a watch.
func (f *fleet) do(ctx context.Context, d deed) error {
	ctx, cancel := context.WithTimeout(ctx, watchdog)
	defer cancel()
	a, err := f.access(ctx, d.runtime)
	if err != nil {
		return err
	}
	w, err := a.client.Watch(ctx, d.list, client.InNamespace("web"), client.MatchingFields{"metadata.name": d.name})
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	defer w.Stop()
	fmt.Printf("   $ kubectl --kubeconfig %s.kubeconfig -n web %s\n", d.runtime, d.command)
	typed := make(chan error, 1)
	go func() { // ends with kubectl, and is waited for below
		out, err := f.typed(ctx, a, append([]string{"-n", "web"}, words(d.command)...)...)
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
			cancel() // nothing will be damaged
		}
		typed <- err
	}()
	took, seen := repairTime(w, d.damaged)
	if err := <-typed; err != nil {
		return err
	}
	if !seen {
		return errors.New("it was not put back")
	}
	fmt.Printf("     put back after %d ms\n", took.Milliseconds())
	return nil
}

// repairTime is how long the damage lasted that a watch shows; false if the watch ends before. kubectl may wait longer than that.
func repairTime(w watch.Interface, damaged func(watch.Event) bool) (time.Duration, bool) {
	var since time.Time
	for e := range w.ResultChan() { // ends with the context of the watch
		switch is := damaged(e); {
		case is && since.IsZero():
			since = time.Now()
		case !is && !since.IsZero():
			return time.Since(since), true
		}
	}
	return 0, false
}

// typed runs kubectl against a runtime.
func (f *fleet) typed(ctx context.Context, a *access, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+a.file, "HOME="+f.dir) // its discovery cache goes with the folder
	cmd.WaitDelay = callTimeout
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.TrimSpace(out.String()), err
}

// gone makes sure that an object is not in a runtime.
func (f *fleet) gone(ctx context.Context, runtime string, args ...string) error {
	a, err := f.access(ctx, runtime)
	if err != nil {
		return err
	}
	out, err := f.typed(ctx, a, append([]string{"get", "--ignore-not-found", "-o", "name"}, args...)...)
	if err != nil {
		return fmt.Errorf("looking for %s in %s: %w: %s", strings.Join(args, " "), runtime, err, out)
	}
	if out != "" {
		return fmt.Errorf("%s is still in %s", out, runtime)
	}
	return nil
}

// crash kills a runtime's API server, asks for a change while it is down, and waits until that is there.
func (f *fleet) crash(ctx context.Context) error {
	const name, wanted = "us-1", "Good to be back"
	if err := f.kill(ctx, name); err != nil {
		return err
	}
	if err := f.awaitDown(ctx, name); err != nil {
		return err
	}
	err := change(ctx, f, name, &v1beta2.Kyma{}, func(k *v1beta2.Kyma) {
		for i := range k.Spec.Modules {
			if k.Spec.Modules[i].Name == "web" {
				k.Spec.Modules[i].Values = greeting(wanted)
			}
		}
	})
	if err != nil {
		return err
	}
	noticed := false
	_, err = f.awaitFleet(ctx, func(now kymas) bool {
		if k := now[name]; k != nil {
			c := conditionOf(k, v1beta2.ConditionReachable)
			noticed = noticed || (c != nil && c.Status == metav1.ConditionFalse)
		}
		return allReady(now)
	})
	if err != nil {
		return err
	}
	if !noticed {
		fmt.Println("   it was back before anybody had given it up")
	}
	return f.greets(ctx, name, wanted)
}

// kill kills a runtime's API server by the pid in its folder.
func (f *fleet) kill(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var r v1beta2.Runtime
	if err := f.client.Get(ctx, types.NamespacedName{Namespace: space, Name: name}, &r); err != nil {
		return fmt.Errorf("reading Runtime %s: %w", name, err)
	}
	data, err := os.ReadFile(filepath.Join(f.dir, "runtimes", string(r.UID), "kube-apiserver.pid"))
	if err != nil {
		return fmt.Errorf("finding the API server of %s: %w", name, err)
	}
	text, _, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	pid, err := strconv.Atoi(text)
	if err != nil || pid <= 1 {
		return fmt.Errorf("finding the API server of %s: %q is no pid", name, text)
	}
	fmt.Printf("   $ kill -9 %d\n", pid)
	return syscall.Kill(pid, syscall.SIGKILL)
}

// awaitDown waits until a Runtime says that its API server has ended.
func (f *fleet) awaitDown(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, watchdog)
	defer cancel()
	w, err := f.client.Watch(ctx, &v1beta2.RuntimeList{}, client.InNamespace(space), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return fmt.Errorf("watching Runtime %s: %w", name, err)
	}
	defer w.Stop()
	for e := range w.ResultChan() { // ends with ctx
		r, ok := e.Object.(*v1beta2.Runtime)
		if !ok {
			continue
		}
		if c := meta.FindStatusCondition(r.Status.Conditions, v1beta2.ConditionReady); c != nil && c.Status == metav1.ConditionFalse {
			why, _, _ := strings.Cut(c.Message, ";")
			fmt.Printf("   Runtime %s: %s: %s\n", name, c.Reason, why)
			return nil
		}
	}
	return fmt.Errorf("the end of the API server of %s was not noticed", name)
}

// greets makes sure that the web server of a runtime has a greeting.
func (f *fleet) greets(ctx context.Context, name, wanted string) error {
	a, err := f.access(ctx, name)
	if err != nil {
		return err
	}
	out, err := f.typed(ctx, a, "-n", "web", "get", "configmap", "web", "-o", "jsonpath={.data}")
	if err != nil {
		return fmt.Errorf("reading the greeting of %s: %w: %s", name, err, out)
	}
	if !strings.Contains(out, wanted) {
		return fmt.Errorf("the web server of %s should greet with %q: %s", name, wanted, out)
	}
	fmt.Printf("   the change is there: %s greets with %q\n", name, wanted)
	return nil
}
