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
			number, err := turns.begin(t.Context(), source, "")
			if err != nil {
				t.Error(err)
			}
			<-time.After(took)
			turns.end(source, "", number, nil)
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
		if _, err := turns.begin(t.Context(), "a", ""); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := turns.begin(ctx, "b", ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		turns.end("a", "", 1, nil)
		if _, err := turns.begin(ctx, "b", ""); err == nil {
			t.Fatal("a turn for nobody")
		}
		if _, err := turns.begin(t.Context(), "b", ""); err != nil {
			t.Fatal(err)
		}
		turns.end("b", "", 2, nil)
		if turns.free != 1 || len(turns.sources) != 0 || len(turns.waiting) != 0 {
			t.Errorf("in the end: %+v", turns)
		}
	})
}

// TestReturningSourcesStarveNobody: sources that render one at a time and come back at once do not go before one that has a queue.
func TestReturningSourcesStarveNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(2)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var others sync.WaitGroup
		for n := range 5 {
			others.Go(func() {
				for ctx.Err() == nil {
					number, err := turns.begin(ctx, fmt.Sprint(n), "")
					if err != nil {
						return
					}
					<-time.After(time.Second)
					turns.end(fmt.Sprint(n), "", number, nil)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		var queue sync.WaitGroup
		for range 10 {
			queue.Go(func() {
				number, err := turns.begin(t.Context(), "queue", "")
				if err != nil {
					t.Error(err)
				}
				<-time.After(time.Second)
				turns.end("queue", "", number, nil)
			})
		}
		queue.Wait()
		if d := time.Since(start); d > 35*time.Second { // each sixth turn of two a second
			t.Errorf("ten renderings took %s", d)
		}
		cancel()
		others.Wait()
	})
}

// TestBans: what runs into the bounds is refused for a minute, then for two, up to ten, until it renders once.
func TestBans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(4)
		loops := &Error{Problem: "It loops.", Err: ErrDeadline}
		round := func(input string, err error, refused bool) {
			t.Helper()
			number, no := turns.begin(t.Context(), "a", input)
			if no != nil {
				t.Fatalf("refused: %v", no)
			}
			if no := turns.end("a", input, number, err); (no != nil) != refused {
				t.Fatalf("refused from now on: %v, want %v", no, refused)
			}
		}
		refused := func(input string, source bool) {
			t.Helper()
			var no *refusal
			if _, err := turns.begin(t.Context(), "a", input); !errors.As(err, &no) || !errors.Is(no.kind, ErrDeadline) || no.source != source {
				t.Fatalf("not refused: %v", err)
			}
		}
		for range 2 {
			for n := range maxStrikes {
				round("x", loops, n == maxStrikes-1)
			}
			for _, ban := range []time.Duration{leastBan, 2 * leastBan, 4 * leastBan, 8 * leastBan, mostBan, mostBan} {
				<-time.After(ban - 1)
				refused("x", false)
				<-time.After(1)
				round("x", loops, true)
			}
			round("other values", nil, false)
			<-time.After(mostBan)
			round("x", nil, false)
		}
		// Different ones.
		round("x", loops, false)
		round("y", loops, false)
		round("z", &Error{Problem: "an answer", Err: ErrTemplate}, false)
		round("1", loops, false)
		round("2", loops, false)
		round("3", errLeft, false) // says nothing
		round("4", loops, true)
		refused("5", true)
		<-time.After(leastBan)
		round("5", nil, false)
		for _, input := range []string{"x", "y", "1", "2", "4"} {
			round(input, nil, false)
		}
		// At the same time: they may have one reason, and count once.
		var numbers []uint64
		for range 4 {
			number, err := turns.begin(t.Context(), "a", "x")
			if err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, number)
		}
		for _, number := range numbers {
			if no := turns.end("a", "x", number, loops); no != nil {
				t.Fatal("refused for failures at the same time")
			}
		}
		round("x", nil, false)
		if len(turns.sources) != 0 {
			t.Errorf("in the end: %+v", turns)
		}
		for n := range 2 * maxSources {
			name := fmt.Sprint(n)
			number, err := turns.begin(t.Context(), name, "")
			if err != nil {
				t.Fatal(err)
			}
			turns.end(name, "", number, loops)
		}
		if len(turns.sources) > maxSources+1 {
			t.Errorf("%d sources are remembered", len(turns.sources))
		}
	})
}
