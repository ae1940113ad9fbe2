package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/internal/kind"
)

// The child's exit codes.
const (
	exitDone     = 0 // a bundle or errors were written
	exitProtocol = 3 // the parent could not be understood or answered
	exitMemory   = 4 // the memory limit was reached
)

// firstMemory is the limit until the request names one: enough for the largest frame.
const firstMemory = 1 << 30

// ChildMain is what a child process of Isolated runs: it limits itself, reads requests from stdin, renders each, writes
// the bundle or the errors to stdout, and returns the exit code when stdin ends or something failed. It changes the whole
// process (resource limits, default HTTP transport, environment, time zone), so nothing else may run in it.
func ChildMain(stdin io.Reader, stdout io.Writer) int {
	confine()
	parent := newWire(stdin, stdout)
	for served := 0; ; served++ {
		err := serve(parent)
		if errors.Is(err, io.EOF) && served > 0 {
			return exitDone
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "render child:", err)
			return exitProtocol
		}
	}
}

// tidyAfter is after how long without a request the process gives back the memory that it does not need.
const tidyAfter = time.Second

// serve takes one request. The error is io.EOF if there is none.
func serve(parent *wire) error {
	tidy := time.AfterFunc(tidyAfter, debug.FreeOSMemory)
	frame, err := parent.receive()
	tidy.Stop()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("no request on standard input: %w", err)
	}
	if err != nil || frame != frameRequest {
		return errors.New("no request on standard input")
	}
	var w wireRequest
	if err := parent.decode(&w); err != nil {
		return err
	}
	stop := limitMemory(w.Memory)
	defer stop()
	if err := answer(parent, &w); err != nil {
		return err
	}
	held := usedMemory()
	if held > w.Memory/keepShare { // it may be garbage
		debug.FreeOSMemory()
		held = usedMemory()
	}
	return parent.send(frameDone, held)
}

// answer renders a request and writes the result.
func answer(parent *wire, w *wireRequest) error {
	b, err := renderWire(parent, w)
	if err != nil {
		return parent.send(frameErrors, flatten(inModule(err, w.Module)))
	}
	return parent.send(frameBundle, b)
}

func renderWire(parent *wire, w *wireRequest) (b *wireBundle, err error) {
	r, err := w.request()
	if err != nil {
		return nil, err
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	defer func() {
		if recover() != nil {
			err = &Error{Problem: fmt.Sprintf("rendering %s failed in an unforeseen way", r.what()), Err: ErrCrash}
		}
	}()
	out, err := manifestsOf(context.Background(), r, w.Limits) // the parent keeps the deadline
	if err != nil {
		return nil, err
	}
	if w.HasScopes {
		if r.ScopeOf, err = askScopes(parent, out.objects); err != nil {
			return nil, err
		}
	}
	return out.bundle(r)
}

// askScopes asks the parent for the scopes of all kinds of a rendering.
func askScopes(parent *wire, objects []object) (func(schema.GroupKind) kind.Scope, error) {
	known := map[schema.GroupKind]kind.Scope{}
	var kinds []schema.GroupKind
	for _, o := range objects {
		gk := refOf(o.fields).GroupKind()
		if _, ok := known[gk]; !ok {
			known[gk] = kind.ScopeUnknown
			kinds = append(kinds, gk)
		}
	}
	if err := parent.send(frameKinds, kinds); err != nil {
		return nil, err
	}
	frame, err := parent.receive()
	if err != nil || frame != frameScopes {
		return nil, errors.New("the parent did not answer")
	}
	var answers []kind.Scope
	if err := parent.decode(&answers); err != nil || len(answers) != len(kinds) {
		return nil, errors.New("the parent's answer cannot be read")
	}
	for i, gk := range kinds {
		known[gk] = answers[i]
	}
	return func(gk schema.GroupKind) kind.Scope { return known[gk] }, nil
}

// confine takes from the process what rendering does not need, before it reads anything.
func confine() {
	os.Clearenv()
	time.Local = time.UTC
	http.DefaultTransport = refusingTransport{}
	http.DefaultClient = &http.Client{Transport: refusingTransport{}}
	debug.SetGCPercent(400) // the heap is small, and the memory limit collects where it is not
	debug.SetMaxStack(256 << 20)
	setLimits(firstMemory)
}

// refusingTransport refuses every request.
type refusingTransport struct{}

func (refusingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("%w: %s", ErrRemote, r.URL.Redacted())
}

// limitMemory makes the process end with exitMemory soon after it uses more than limit bytes. The kernel's own limit is
// behind it, for single allocations that are larger than what is left.
func limitMemory(limit int64) (stop func()) {
	debug.SetMemoryLimit(limit - limit/8)
	setLimits(limit)
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(memoryInterval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if used := usedMemory(); used > limit {
					os.Exit(exitMemory)
				}
			}
		}
	})
	return func() { close(done); ended.Wait() }
}

// memoryInterval is how often it is looked how much memory the process holds.
const memoryInterval = 10 * time.Millisecond

// usedMemory is what Go's runtime holds, in bytes, without what it has given back.
func usedMemory() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
