package shard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// One replica has everything at once. Those that join get their share within some renewals, those that leave give theirs at once.
func TestJoinAndLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := join(t, s, "a")
		after(time.Millisecond)
		alone := shared(t, a)
		b := join(t, s, "b")
		c := join(t, s, "c")
		after(turns)
		three := shared(t, a, b, c)
		if alone == three {
			t.Error("nothing has moved")
		}
		b.leave()
		if b.Held() > 0 {
			t.Error("it holds something after it left")
		}
		after(renew)
		two := shared(t, a, c)
		for i := range two {
			if three[i] != "b" && two[i] != three[i] {
				t.Errorf("slot %d went from %s to %s when b left", i, three[i], two[i])
			}
		}
		if len(s.list().Items) != 3 {
			t.Errorf("who left has left something behind: %v", s.list().Items)
		}
	})
}

// What a replica held that died is taken when its lease, and the longest request, are over: not before.
func TestDeath(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := join(t, s, "a"), join(t, s, "b")
		after(turns)
		before := shared(t, a, b)
		died := b.die()
		for time.Since(died) < lease+request-renew {
			after(time.Second)
			for i, owner := range owners(t, a, b) {
				if before[i] == "b" && owner == "a" {
					t.Fatalf("slot %d was taken %s after its replica died", i, time.Since(died))
				}
				if before[i] == "a" && owner != "a" {
					t.Fatalf("slot %d of the living has gone", i)
				}
			}
		}
		after(3 * renew)
		shared(t, a)
		after(lease)
		if n := len(s.list().Items); n != 2 {
			t.Errorf("%d leases are left: the dead one's should be gone", n)
		}
	})
}

// While the API does not answer, nobody owns anything from the end of the lease on. When it does again, each has again what it had,
// at once.
func TestOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := join(t, s, "a"), join(t, s, "b")
		after(turns)
		before := shared(t, a, b)
		a.wire.cut(true)
		b.wire.cut(true)
		after(lease)
		if n := count(owners(t, a, b)); n[""] != Slots {
			t.Fatalf("after an outage as long as the lease: %v", n)
		}
		after(time.Hour)
		a.wire.cut(false)
		after(renew)
		for i, owner := range owners(t, a, b) {
			if before[i] == "b" && owner == "a" {
				t.Fatalf("slot %d was taken from a replica that may be about to come back", i)
			}
		}
		b.wire.cut(false)
		after(2 * renew)
		if shared(t, a, b) != before {
			t.Error("an outage moves slots")
		}
	})
}

// A replica that does not get through for longer than its lease and the longest request has lost its share to the others, and gets
// it back when it is there again.
func TestPartition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := join(t, s, "a"), join(t, s, "b")
		after(turns)
		before := shared(t, a, b)
		b.wire.cut(true)
		after(lease + request + turns)
		shared(t, a)
		b.wire.cut(false)
		after(turns)
		if shared(t, a, b) != before {
			t.Error("the shares are others than before")
		}
	})
}

// An interruption that is shorter than the lease moves nothing, and interrupts no work.
func TestShortInterruption(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := join(t, s, "a"), join(t, s, "b")
		after(turns)
		before := shared(t, a, b)
		ctx, release, err := guardAny(a)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		for range 5 {
			a.wire.cut(true)
			after(renew)
			a.wire.cut(false)
			after(2 * renew)
		}
		if shared(t, a, b) != before || ctx.Err() != nil {
			t.Errorf("slots have moved, or work was interrupted: %v", context.Cause(ctx))
		}
	})
}

func guardAny(r *replica) (context.Context, func(), error) {
	for _, name := range names() {
		if r.Owns(name) {
			return r.Guard(r.t.Context(), name)
		}
	}
	return nil, nil, errors.New("it owns nothing")
}

// A process that was stopped longer than its lease knows by the clock that it owns nothing, before its timers go off.
func TestLateTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := join(t, s, "a")
		after(time.Millisecond)
		ctx, release, err := guardAny(a)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		a.wire.cut(true)
		a.Shard.mu.Lock()
		a.timer.Stop() // as if it were late
		a.Shard.mu.Unlock()
		after(lease)
		if n := count(owners(t, a)); n[""] != Slots || a.Held() > 0 {
			t.Errorf("it owns %v", n)
		}
		if _, _, err := a.Guard(t.Context(), names()[0]); !errors.Is(err, ErrNotOwned) {
			t.Errorf("it guards work: %v", err)
		}
		if ctx.Err() != nil {
			t.Error("the test shows nothing: the timer went off")
		}
		a.wire.cut(false)
		after(renew)
		if !errors.Is(context.Cause(ctx), ErrLapsed) {
			t.Errorf("after the next renewal the work goes on: %v", context.Cause(ctx))
		}
	})
}

// The wall clock counts too: the other one stands still while a machine sleeps.
func TestSleepingMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		shard, err := New(Options{Leases: &wire{}, Identity: "a", LeaseDuration: lease, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		shard.extend(now)
		shard.begin([]Slot{SlotOf("x")})
		defer shard.timer.Stop()
		if !shard.Owns("x") {
			t.Fatal("the test shows nothing")
		}
		asleep := now.Round(0).Add(lease) // without a monotonic reading
		shard.o.Now = func() time.Time { return asleep }
		if shard.Owns("x") {
			t.Error("it slept through the end of its lease and owns what it did")
		}
	})
}

// A slot moves when work on it has ended: at once where it came to its end, after the longest request where it was cut short.
func TestWorkUnderWay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lingers time.Duration // after it was told to end
		want    time.Duration // from when it was told
	}{
		"Ends": {0, request}, "Lingers": {time.Minute, time.Minute + request},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				a := join(t, s, "a")
				after(time.Millisecond)
				moving := shareOut([]string{"a", "b"})
				slot := 0
				for moving[slot] != "b" {
					slot++
				}
				ctx, release, err := a.Guard(t.Context(), names()[slot])
				if err != nil {
					t.Fatal(err)
				}
				b := join(t, s, "b")
				<-ctx.Done()
				told := time.Now()
				if !errors.Is(context.Cause(ctx), ErrMoved) {
					t.Errorf("the work ended because %v", context.Cause(ctx))
				}
				after(test.lingers)
				release()
				release() // again does no harm
				for owners(t, a, b)[slot] == "" {
					after(time.Second)
					if time.Since(told) > time.Hour {
						t.Fatal("it was never taken")
					}
				}
				if took := time.Since(told); took < test.want || took > test.want+turns {
					t.Errorf("it was taken after %s, want %s", took, test.want)
				}
				shared(t, a, b)
			})
		})
	}
}

// Work that came to its end before a slot moves holds up nothing.
func TestWorkThatEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := join(t, s, "a")
		after(time.Millisecond)
		for _, name := range names() {
			_, release, err := a.Guard(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			release()
		}
		b := join(t, s, "b")
		after(turns)
		shared(t, a, b)
	})
}

// Who deletes the table stops everything, until nobody can hold anything any more.
func TestDeletedTable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := join(t, s, "a"), join(t, s, "b")
		after(turns)
		shared(t, a, b)
		if err := s.delete(tableName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		after(renew)
		for range int((lease + request - 2*renew) / time.Second) {
			if n := count(owners(t, a, b)); n[""] != Slots {
				t.Fatalf("somebody owns something too early: %v", n)
			}
			after(time.Second)
		}
		after(turns)
		shared(t, a, b)
	})
}

// The same where everything is deleted.
func TestDeletedLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := join(t, s, "a"), join(t, s, "b")
		after(turns)
		for _, l := range s.list().Items {
			if err := s.delete(l.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for range int((lease + request) / time.Second) {
			owners(t, a, b)
			after(time.Second)
		}
		after(turns)
		shared(t, a, b)
	})
}

// A table that is not understood is left alone, and nothing is owned by it.
func TestStrangeTable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := join(t, s, "a")
		after(time.Millisecond)
		s.mu.Lock()
		s.leases[tableName].Annotations[tableAnnotation] = "?"
		s.leases[tableName].ResourceVersion = s.next()
		s.mu.Unlock()
		after(time.Minute)
		if n := count(owners(t, a)); n[""] != Slots {
			t.Errorf("it owns %v", n)
		}
	})
}

// A replica costs two requests for each renewal while nothing moves.
func TestCost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := join(t, s, "a"), join(t, s, "b")
		after(time.Minute)
		shared(t, a, b)
		s.mu.Lock()
		s.writes, s.lists = 0, 0
		s.mu.Unlock()
		after(time.Hour)
		s.mu.Lock()
		defer s.mu.Unlock()
		most := 2 * int(time.Hour/renew) * 11 / 10
		if s.writes > most || s.lists > most {
			t.Errorf("%d writes and %d lists of two replicas in an hour, want at most %d", s.writes, s.lists, most)
		}
	})
}

// Replicas with a longer lease and longer requests are waited for as long as they say.
func TestOthersDurations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		slow := join(t, s, "slow", func(o *Options) { o.LeaseDuration, o.RequestDeadline = 4*lease, 4*request })
		after(turns)
		a := join(t, s, "a")
		after(turns)
		before := shared(t, a, slow)
		died := slow.die()
		after(time.Until(died.Add(4*lease + 4*request - 2*renew)))
		for i, owner := range owners(t, a) {
			if before[i] == "slow" && owner != "" {
				t.Fatalf("slot %d was taken too early", i)
			}
		}
		after(2 * turns)
		shared(t, a)
	})
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"NoLeases": {Identity: "a"}, "NoIdentity": {Leases: &wire{}}, "Capitals": {Leases: &wire{}, Identity: "A"},
		"Long": {Leases: &wire{}, Identity: "a23456789012345678901234567890123456789012345678901234567890"},
		"Slow": {Leases: &wire{}, Identity: "a", RenewEvery: time.Minute}, "Negative": {Leases: &wire{}, Identity: "a", LeaseDuration: -1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := New(Options{Leases: &wire{}, Identity: "mothership-5d4f-abc12"}); err != nil {
		t.Error(err)
	}
}

// Two who write the table at the same time: one gets it, also where its write moves nothing.
func TestEveryWriteCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // in which no time goes by
		s := newStore()
		shard, err := New(Options{Leases: &wire{store: s}, Identity: "a"})
		if err != nil {
			t.Fatal(err)
		}
		mine := all("a")
		if err := shard.create(t.Context(), &mine); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			seen := s.list().Items[0]
			if err := shard.write(t.Context(), &seen, mine); err != nil {
				t.Fatal(err)
			}
			if err := shard.write(t.Context(), &seen, all("b")); err == nil {
				t.Error("a write over what has changed was accepted")
			}
		}
		if got, ok := s.table(); !ok || got != mine {
			t.Errorf("the table is %v", got)
		}
	})
}
