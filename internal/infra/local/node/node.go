package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Name of the Node.
const Name = "simulated"

const (
	// Label marks the Node and the volumes: nothing behind them is real.
	Label = "operator.kyma-project.io/simulated"
	// Simulate is the annotation of pods that asks for trouble: Fail or NeverReady.
	Simulate = "operator.kyma-project.io/simulate"
	// Fail makes a Job's pod fail, and any other pod crash in a loop.
	Fail = "fail"
	// NeverReady keeps a pod running without ever being Ready, and a Job's pod from ending.
	NeverReady = "never-ready"
)

const (
	// callTimeout bounds each call to the API server.
	callTimeout = 10 * time.Second
	// workers is how many objects are worked on at a time.
	workers = 4
	// slowestRetry bounds the exponential back-off of an object that cannot be written.
	slowestRetry = 5 * time.Second
)

// Node is a running simulation. It is safe for concurrent use.
type Node struct {
	core   typedcorev1.CoreV1Interface
	queue  workqueue.TypedRateLimitingInterface[key]
	stores map[kind]cache.Store
	stop   func()
}

// kind is what is watched, by its resource name.
type kind string

const (
	pods     kind = "pods"
	claims   kind = "persistentvolumeclaims"
	volumes  kind = "persistentvolumes"
	services kind = "services"
)

// key names an object in the queue.
type key struct {
	kind kind
	name string // <namespace>/<name>, or <name>
}

// Start makes the Node and begins to watch. The configuration needs to be an administrator's. The context bounds the
// start only; Close ends what was started.
func Start(ctx context.Context, config *rest.Config) (*Node, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "simulated-node")
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("starting the simulated node: %w", err)
	}
	n := &Node{core: client.CoreV1(), stores: map[kind]cache.Store{}}
	if err := n.register(ctx); err != nil {
		return nil, fmt.Errorf("starting the simulated node: %w", err)
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[key](5*time.Millisecond, slowestRetry)
	n.queue = workqueue.NewTypedRateLimitingQueue(limiter)
	if err := n.run(); err != nil {
		return nil, fmt.Errorf("starting the simulated node: %w", err)
	}
	return n, nil
}

// Close ends the watches and waits for what is being done. The Node object stays. It may be called again.
func (n *Node) Close() { n.stop() }

// run starts the watches and the workers, which end when n.stop is called.
func (n *Node) run() error {
	// Watches that end with the server are no news for anybody: without this, client-go writes about each to stderr.
	ctx, cancel := context.WithCancel(logr.NewContext(context.Background(), logr.Discard()))
	var wg sync.WaitGroup
	n.stop = sync.OnceFunc(func() {
		cancel()
		n.queue.ShutDown()
		wg.Wait()
	})
	watched := map[kind]cache.SharedIndexInformer{
		pods: n.informer(pods, &corev1.Pod{}), claims: n.informer(claims, &corev1.PersistentVolumeClaim{}),
		volumes: n.informer(volumes, &corev1.PersistentVolume{}), services: n.informer(services, &corev1.Service{}),
	}
	for kind, informer := range watched {
		if err := n.feed(kind, informer); err != nil {
			n.stop()
			return err
		}
		n.stores[kind] = informer.GetStore()
	}
	for _, informer := range watched {
		wg.Go(func() { informer.RunWithContext(ctx) })
	}
	for range workers {
		wg.Go(func() { n.work(ctx) })
	}
	return nil
}

// informer keeps the objects of a kind.
func (n *Node) informer(kind kind, object runtime.Object) cache.SharedIndexInformer {
	source := cache.NewListWatchFromClient(n.core.RESTClient(), string(kind), metav1.NamespaceAll, fields.Everything())
	return cache.NewSharedIndexInformer(source, object, 0, cache.Indexers{})
}

// feed puts the objects of an informer into the queue as they change.
func (n *Node) feed(kind kind, informer cache.SharedIndexInformer) error {
	if err := informer.SetTransform(withoutManagedFields); err != nil {
		return fmt.Errorf("watching %s: %w", kind, err)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { n.enqueue(kind, object) },
		UpdateFunc: func(_, object any) { n.enqueue(kind, object) },
		DeleteFunc: func(object any) {
			if claim, ok := deleted(object).(*corev1.PersistentVolumeClaim); ok {
				n.queue.Add(key{volumes, claim.Spec.VolumeName})
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching %s: %w", kind, err)
	}
	return nil
}

// withoutManagedFields drops what takes most of an object's memory and is never looked at.
func withoutManagedFields(object any) (any, error) {
	if m, err := meta.Accessor(object); err == nil {
		m.SetManagedFields(nil)
	}
	return object, nil
}

// deleted unwraps an object whose deletion was seen late.
func deleted(object any) any {
	if late, ok := object.(cache.DeletedFinalStateUnknown); ok {
		return late.Obj
	}
	return object
}

// enqueue has an object looked at.
func (n *Node) enqueue(kind kind, object any) {
	if name, err := cache.MetaNamespaceKeyFunc(object); err == nil { // it fails for things that are no objects only
		n.queue.Add(key{kind, name})
	}
}

// work takes objects from the queue until it is shut down. What fails is tried again, ever more slowly.
func (n *Node) work(ctx context.Context) {
	for {
		k, shutdown := n.queue.Get()
		if shutdown {
			return
		}
		if err := n.reconcile(ctx, k); err != nil && ctx.Err() == nil {
			n.queue.AddRateLimited(k)
		} else {
			n.queue.Forget(k)
		}
		n.queue.Done(k)
	}
}

// reconcile does what an object needs next. An object that is gone, or was changed meanwhile, comes again as an event
// where anything is left to do.
func (n *Node) reconcile(ctx context.Context, k key) error {
	object, exists, err := n.stores[k.kind].GetByKey(k.name)
	if err != nil || !exists {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	switch object := object.(type) {
	case *corev1.Pod:
		err = n.reconcilePod(ctx, object.DeepCopy())
	case *corev1.PersistentVolumeClaim:
		err = n.reconcileClaim(ctx, object.DeepCopy())
	case *corev1.PersistentVolume:
		err = n.reconcileVolume(ctx, object.DeepCopy())
	case *corev1.Service:
		err = n.reconcileService(ctx, object.DeepCopy())
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// register makes the Node, ready and large enough for anything.
func (n *Node) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	node, err := n.core.Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: Name,
		Labels: map[string]string{
			Label: "true", corev1.LabelHostname: Name,
			corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		},
	}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		node, err = n.core.Nodes().Get(ctx, Name, metav1.GetOptions{})
	}
	if err != nil {
		return fmt.Errorf("registering node %s: %w", Name, err)
	}
	node.Spec.Taints = nil // admission taints every new node as not ready, and no lifecycle controller runs to lift that
	if node, err = n.core.Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("registering node %s: %w", Name, err)
	}
	node.Status = nodeStatus(metav1.Now())
	if _, err := n.core.Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("registering node %s: %w", Name, err)
	}
	return nil
}

// nodeStatus is that of a healthy node.
func nodeStatus(now metav1.Time) corev1.NodeStatus {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1000"), corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("10Ti"), corev1.ResourcePods: resource.MustParse("10000"),
	}
	return corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Simulated",
			Message: "no machine is behind this node", LastHeartbeatTime: now, LastTransitionTime: now,
		}},
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: hostIP}, {Type: corev1.NodeHostName, Address: Name}},
		NodeInfo:  corev1.NodeSystemInfo{KubeletVersion: "v0.0.0-simulated", OperatingSystem: "linux", Architecture: "amd64"},
	}
}
