package render

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurnsAreFair: sources whose renderings take long have had all places; each other waits for one of them to end, and then has
// its share.
func TestTurnsAreFair(t *testing.T) {
	t.Parallel()
	for places, slow := range map[int]int{1: 1, 4: 1, 5: 5, 3: 7} {
		t.Run(fmt.Sprintf("%dPlaces%dSlow", places, slow), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testFair(t, places, slow) })
		})
	}
}

func testFair(t *testing.T, places, slow int) {
	const long, short = 20 * time.Second, 10 * time.Millisecond
	turns := newTurns(places)
	done := map[string]time.Duration{}
	start := time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	render := func(source string, took time.Duration) {
		all.Go(func() {
			if err := turns.begin(t.Context(), source); err != nil {
				t.Error(err)
			}
			<-time.After(took)
			turns.end(source, nil)
			mu.Lock()
			defer mu.Unlock()
			done[source] = time.Since(start)
		})
	}
	for n := range 100 {
		for s := range slow {
			render(fmt.Sprintf("slow %d", s), long)
		}
		if n == 0 {
			synctest.Wait()
		}
	}
	synctest.Wait()
	render("quick", short)
	all.Wait()
	// Of those that have fewest under way it is the next, unless others have none under way either.
	if most := long + time.Duration(max(0, slow-places))*long + short; done["quick"] > most {
		t.Errorf("quick was done after %s, want %s", done["quick"], most)
	}
	least := 100 * time.Duration(slow) * long / time.Duration(places)
	for s := range slow {
		if d := done[fmt.Sprintf("slow %d", s)]; d > least+2*long {
			t.Errorf("slow %d was done after %s, want %s: places were left free", s, d, least)
		}
	}
	if turns.free != places || len(turns.sources) != 0 || len(turns.waiting) != 0 {
		t.Errorf("in the end: %+v", turns)
	}
}

// TestTurnGivenUp: who gives up waiting neither keeps a place nor loses one.
func TestTurnGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1)
		if err := turns.begin(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := turns.begin(ctx, "b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		turns.end("a", nil)
		if err := turns.begin(ctx, "b"); err == nil {
			t.Fatal("a turn for nobody")
		}
		if err := turns.begin(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		turns.end("b", nil)
		if turns.free != 1 || len(turns.sources) != 0 || len(turns.waiting) != 0 {
			t.Errorf("in the end: %+v", turns)
		}
	})
}

// TestBans: a source that runs into the bounds is refused for a minute, then for two, up to ten, until it renders once.
func TestBans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1)
		loops := &Error{Problem: "It loops.", Err: ErrDeadline}
		round := func(err error) {
			t.Helper()
			if refused := turns.begin(t.Context(), "a"); refused != nil {
				t.Fatalf("refused: %v", refused)
			}
			turns.end("a", err)
		}
		for range 2 {
			for range maxStrikes {
				round(loops)
			}
			for _, ban := range []time.Duration{leastBan, 2 * leastBan, 4 * leastBan, 8 * leastBan, mostBan, mostBan} {
				<-time.After(ban - 1)
				var no *refusal
				if err := turns.begin(t.Context(), "a"); !errors.As(err, &no) || !errors.Is(no.kind, ErrDeadline) {
					t.Fatalf("before %s: %v", ban, err)
				}
				<-time.After(1)
				round(loops)
			}
			<-time.After(mostBan)
			round(nil)
		}
		round(loops)
		round(loops)
		round(&Error{Problem: "an answer", Err: ErrTemplate})
		round(loops)
		round(errLeft) // says nothing
		round(loops)
		round(nil)
		if len(turns.sources) != 0 {
			t.Errorf("in the end: %+v", turns)
		}
		for n := range 2 * maxSources {
			name := fmt.Sprint(n)
			if err := turns.begin(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			turns.end(name, loops)
		}
		if len(turns.sources) > maxSources {
			t.Errorf("%d sources are remembered", len(turns.sources))
		}
	})
}
