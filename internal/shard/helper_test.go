package shard

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
)

// Durations of the tests in virtual time.
const (
	lease   = 15 * time.Second
	renew   = 5 * time.Second
	request = 20 * time.Second
	// turns is time for everybody to see a change, and to see what others made of it.
	turns = 3 * renew
)

// replica is one of a test.
type replica struct {
	*Shard
	t    *testing.T
	wire *wire
	stop context.CancelFunc // of Run
	done chan struct{}

	mu   sync.Mutex
	told map[Slot]bool // what the subscriber was told
}

// join starts a replica; it ends with the test.
func join(t *testing.T, s *store, name string, change ...func(*Options)) *replica {
	t.Helper()
	w := &wire{store: s}
	r := &replica{t: t, wire: w, done: make(chan struct{}), told: map[Slot]bool{}}
	o := Options{Leases: w, Identity: name, LeaseDuration: lease, RenewEvery: renew, RequestDeadline: request, Log: logOf(t)}
	for _, c := range change {
		c(&o)
	}
	var err error
	if r.Shard, err = New(o); err != nil {
		t.Fatal(err)
	}
	r.Subscribe(r.hear)
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	go func() {
		defer close(r.done)
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-r.done
		w.work.Wait()
	})
	return r
}

func logOf(t *testing.T) logr.Logger {
	if !testing.Verbose() {
		return logr.Discard()
	}
	return testr.New(t)
}

// hear checks that what is gained was not there, and what is lost was.
func (r *replica) hear(gained, lost []Slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range lost {
		if !r.told[s] {
			r.t.Errorf("%s loses slot %d, which it did not have", r.Identity(), s)
		}
		delete(r.told, s)
	}
	for _, s := range gained {
		if r.told[s] {
			r.t.Errorf("%s gains slot %d, which it had", r.Identity(), s)
		}
		r.told[s] = true
	}
}

// die ends a replica as kill -9 would, and says when: nothing of it reaches the store any more.
func (r *replica) die() (at time.Time) {
	at = time.Now()
	r.wire.cut(true)
	r.stop()
	<-r.done // after it tried in vain to leave
	return at
}

// leave ends it in order.
func (r *replica) leave() {
	r.stop()
	<-r.done
}

// after lets time go by.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// names are one runtime for each slot.
var names = sync.OnceValue(func() (out [Slots]string) {
	for n, left := 0, Slots; left > 0; n++ {
		name := "kcp-system/rt-" + string(rune('a'+n%26)) + time.Duration(n).String()
		if s := SlotOf(name); out[s] == "" {
			out[s] = name
			left--
		}
	}
	return out
})

// owners are who owns each slot. Two at once are an error.
func owners(t *testing.T, replicas ...*replica) (out table) {
	t.Helper()
	for s, name := range names() {
		for _, r := range replicas {
			if !r.Owns(name) {
				continue
			}
			if out[s] != "" {
				t.Fatalf("%s and %s both own slot %d", out[s], r.Identity(), s)
			}
			out[s] = r.Identity()
		}
	}
	return out
}

// shared checks that the slots are shared among all replicas that are given, as they should be.
func shared(t *testing.T, replicas ...*replica) table {
	t.Helper()
	var members []string
	for _, r := range replicas {
		members = append(members, r.Identity())
	}
	slices.Sort(members)
	got := owners(t, replicas...)
	if want := shareOut(members); got != want {
		t.Fatalf("the slots are not shared among %v: %v", members, count(got))
	}
	for _, r := range replicas {
		r.mu.Lock()
		if len(r.told) != r.Held() {
			t.Errorf("%s was told of %d slots and holds %d", r.Identity(), len(r.told), r.Held())
		}
		r.mu.Unlock()
	}
	return got
}

func count(t table) map[string]int {
	out := map[string]int{}
	for _, holder := range t {
		out[holder]++
	}
	return out
}
