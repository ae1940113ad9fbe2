package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/controlplane"
	"github.com/kyma-project/mothership/internal/statedir"
)

// fleetFlags are those of the commands that speak to a control plane.
type fleetFlags struct {
	kubeconfig, context, namespace string
	output                         string
}

func (f *fleetFlags) addTo(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&f.namespace, "namespace", "n", controlplane.DefaultNamespace, "the `NAMESPACE` of the Kymas, Runtimes and the catalogue")
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "the control plane's kubeconfig `FILE` (default: $MOTHERSHIP_KUBECONFIG, else of what mothership up has started, else $KUBECONFIG, else ~/.kube/config)")
	fs.StringVar(&f.context, "context", "", "`CONTEXT` of the kubeconfig (default: its current one)")
}

// outputTo adds -o with the given formats, the first being the default.
func (f *fleetFlags) outputTo(cmd *cobra.Command, formats ...string) {
	cmd.Flags().StringVarP(&f.output, "output", "o", formats[0], "`FORMAT`: "+either(formats))
	complete(cmd, "output", formats...)
}

// either is a list for people: a, b or c.
func either(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// checkOutput refuses formats that a command does not have.
func (f *fleetFlags) checkOutput(cmd *cobra.Command, formats ...string) error {
	if !slices.Contains(formats, f.output) {
		return usage(cmd, "--output %q: it is %s", f.output, either(formats))
	}
	return nil
}

// fleet is a control plane's API. It is safe for concurrent use.
type fleet struct {
	client    client.WithWatch
	config    *rest.Config
	namespace string
}

// callTimeout is the deadline of one request to a control plane.
const callTimeout = 30 * time.Second

// call gives a request its deadline.
func call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, callTimeout, fmt.Errorf("no answer within %s", callTimeout))
}

// connect makes a client of the control plane that the flags name. Nothing is asked yet.
func (a *app) connect(cmd *cobra.Command, f *fleetFlags) (*fleet, error) {
	if problems := validation.IsDNS1123Label(f.namespace); len(problems) > 0 {
		return nil, usage(cmd, "--namespace %q: %s", f.namespace, strings.Join(problems, "; "))
	}
	cfg, err := a.controlPlaneConfig(f.kubeconfig, f.context)
	if err != nil {
		return nil, err
	}
	return a.newFleet(cfg, f.namespace)
}

// newFleet makes a client of a control plane's API, which knows the few kinds that are used without asking for them.
func (a *app) newFleet(cfg *rest.Config, namespace string) (*fleet, error) {
	log.SetLogger(logr.Discard()) // it would complain about not having one; the first that is set stays
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst, cfg.UserAgent = -1, 0, "mothership-cli"
	cfg.WarningHandlerWithContext = warnings{a}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta2.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("making a client: %w", err)
		}
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme, Mapper: kinds()})
	if err != nil {
		return nil, fmt.Errorf("making a client of the control plane: %w", err)
	}
	return &fleet{client: c, config: cfg, namespace: namespace}, nil
}

// warnings passes on what the API server warns of.
type warnings struct{ a *app }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.a.note("warning", oneLine(text))
}

// kinds are those that are used, so that nothing needs to be discovered.
func kinds() meta.RESTMapper {
	own := schema.GroupVersion{Group: v1beta2.Group, Version: "v1beta2"}
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{own, corev1.SchemeGroupVersion})
	for _, kind := range []string{"Kyma", "Runtime", "ModuleTemplate", "ModuleReleaseMeta"} {
		m.Add(own.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Secret", "ConfigMap", "Event"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	return m
}

// noControlPlane is what to do where there is none.
const noControlPlane = "start one with mothership up, or name its kubeconfig with --kubeconfig or MOTHERSHIP_KUBECONFIG"

// controlPlaneConfig finds the way to the control plane. As it is the user's own kubeconfig, it may start programs.
func (a *app) controlPlaneConfig(file, context string) (*rest.Config, error) {
	return a.loadConfig(a.controlPlaneFile(file), context)
}

// loadConfig reads a kubeconfig by kubectl's rules.
func (a *app) loadConfig(file, context string) (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: file}
	if rules.ExplicitPath == "" {
		rules.Precedence = filepath.SplitList(a.p.Getenv("KUBECONFIG"))
		if home := a.p.Getenv("HOME"); len(rules.Precedence) == 0 && home != "" {
			rules.Precedence = []string{filepath.Join(home, ".kube", "config")}
		}
	}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, &hintedError{err: errors.New("there is no control plane: no kubeconfig was found"), hint: noControlPlane}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the control plane's kubeconfig: %w", err)
	}
	return cfg, nil
}

// controlPlaneFile is the kubeconfig that is named, or that of a running `up`; empty for the usual rules.
func (a *app) controlPlaneFile(named string) string {
	if named != "" {
		return named
	}
	if file := a.p.Getenv("MOTHERSHIP_KUBECONFIG"); file != "" {
		return file
	}
	if dir, err := statedir.Default(a.p.Getenv); err == nil && statedir.Running(dir) != 0 {
		return filepath.Join(dir, statedir.Kubeconfig)
	}
	return ""
}

// get reads one object. An error says what there is instead, if it does not exist.
func (f *fleet) get(ctx context.Context, name string, obj client.Object) error {
	ctx, cancel := call(ctx)
	defer cancel()
	err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return f.notFound(ctx, kindOf(obj), name)
	}
	return problemOfAPI("reading "+kindOf(obj)+" "+name, err)
}

// list reads all objects of a kind.
func (f *fleet) list(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	ctx, cancel := call(ctx)
	defer cancel()
	err := f.client.List(ctx, list, append(o, client.InNamespace(f.namespace))...)
	return problemOfAPI("reading "+kindOf(list), err)
}

// kindOf is an object's kind, for messages.
func kindOf(obj any) string {
	name := fmt.Sprintf("%T", obj)
	return strings.TrimSuffix(name[strings.LastIndexByte(name, '.')+1:], "List")
}

// missingError is an object that does not exist.
type missingError struct{ kind, name, namespace string }

// Error names the object.
func (e *missingError) Error() string {
	return fmt.Sprintf("%s %q does not exist in namespace %s", e.kind, e.name, e.namespace)
}

// maxNamed bounds how many names a hint lists.
const maxNamed = 10

// notFound says what there is of the kind.
func (f *fleet) notFound(ctx context.Context, kind, name string) error {
	err := &missingError{kind, name, f.namespace}
	var lists = map[string]client.ObjectList{"Kyma": &v1beta2.KymaList{}, "Runtime": &v1beta2.RuntimeList{}}
	list := lists[kind]
	if list == nil {
		return err
	}
	if listErr := f.list(ctx, list, client.Limit(maxNamed+1)); listErr != nil {
		return errors.Join(listErr)
	}
	names := namesOf(list)
	if len(names) == 0 {
		return &hintedError{err: err, hint: "there is none in that namespace: make one with mothership runtime add, or name another with -n"}
	}
	return &hintedError{err: err, hint: "there are: " + some(names)}
}

func namesOf(list client.ObjectList) []string {
	objects, err := meta.ExtractList(list)
	if err != nil {
		return nil
	}
	var out []string
	for _, obj := range objects {
		if o, ok := obj.(client.Object); ok {
			out = append(out, o.GetName())
		}
	}
	slices.Sort(out)
	return out
}

func some(names []string) string {
	more := ""
	if len(names) > maxNamed {
		names, more = names[:maxNamed], " …"
	}
	return strings.Join(names, ", ") + more
}

// problemOfAPI says what was being done when the API refused, and what helps.
func problemOfAPI(doing string, err error) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("%s: %w", doing, err)
	var unreachable *url.Error
	var status apierrors.APIStatus
	switch {
	case apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces":
		return &hintedError{err: wrapped, hint: "make it with kubectl create namespace, or name another with -n"}
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return &hintedError{err: fmt.Errorf("%s: this cluster has no control plane of Mothership", doing), hint: noControlPlane}
	case errors.As(err, &unreachable):
		return &hintedError{err: fmt.Errorf("%s: the control plane does not answer: %w", doing, unreachable.Err), hint: noControlPlane}
	}
	return wrapped
}
