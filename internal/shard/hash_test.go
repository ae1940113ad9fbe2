package shard

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// One more replica only takes, one less only leaves what it had; and each has about its part.
func TestOnlyTheShareMoves(t *testing.T) {
	t.Parallel()
	var members []string
	before := shareOut(nil)
	if before != (table{}) {
		t.Fatal("without members somebody has something")
	}
	for n := range 12 {
		joined := fmt.Sprintf("mothership-7d9c%d-x%dk", n, n*n)
		members = append(members, joined)
		after, has := shareOut(members), map[string]int{}
		for s := range after {
			has[after[s]]++
			if after[s] != before[s] && after[s] != joined {
				t.Fatalf("slot %d went from %q to %q when %q joined", s, before[s], after[s], joined)
			}
		}
		for m, count := range has {
			if part := Slots / len(members); count < part/3 || count > 2*part+2 {
				t.Errorf("%d members: %s has %d slots of %d", len(members), m, count, Slots)
			}
		}
		before = after
	}
	reversed := make([]string, 0, len(members))
	for i := len(members) - 1; i >= 0; i-- {
		reversed = append(reversed, members[i])
	}
	if shareOut(reversed) != before {
		t.Error("the order of members matters")
	}
}

// Runtimes with similar names are spread over the slots.
func TestRuntimesAreSpread(t *testing.T) {
	t.Parallel()
	const runtimes = 100 * Slots
	var count [Slots]int
	for i := range runtimes {
		count[SlotOf(fmt.Sprintf("kcp-system/runtime-%d", i))]++
	}
	for s, n := range count {
		if n < 50 || n > 150 {
			t.Errorf("slot %d has %d of %d runtimes", s, n, runtimes)
		}
	}
	// These are for ever: another slot than yesterday's would be in two hands during an upgrade.
	got := map[string]Slot{"kcp-system/eu-1": SlotOf("kcp-system/eu-1"), "a/b": SlotOf("a/b"), "": SlotOf("")}
	if diff := cmp.Diff(map[string]Slot{"kcp-system/eu-1": 172, "a/b": 236, "": 38}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var empty table
	for name, want := range map[string]table{
		"Empty": empty, "One": all("a"), "Shared": shareOut([]string{"a", "b", "c"}), "Partly": {3: "a", 255: "b"},
	} {
		text, err := want.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(text)
		if err != nil || got != want {
			t.Errorf("%s: %s was read as %v, %v", name, text, got, err)
		}
	}
}

func FuzzTable(f *testing.F) {
	text, _ := new(shareOut([]string{"a", "b"})).encode()
	for _, seed := range []string{text, "{}", "", "null", `{"a":"zz"}`, `{"a":"00"}`, `{"":"` + fmt.Sprintf("%064d", 0) + `"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := decode(text)
		if err != nil {
			return
		}
		again, err := first.encode()
		if err != nil {
			t.Fatal(err)
		}
		if second, err := decode(again); err != nil || second != first {
			t.Errorf("%q and %q differ: %v", text, again, err)
		}
	})
}

// What is not understood is an error, never an empty table: everything would be taken.
func TestUnreadableTable(t *testing.T) {
	t.Parallel()
	one := fmt.Sprintf("%064d", 1)
	for _, text := range []string{"", "[]", "null", `{"a":"1"}`, `{"a":"` + one + `","b":"` + one + `"}`, `{"":"` + one + `"}`, `{"a":"` + one} {
		if _, err := decode(text); err == nil {
			t.Errorf("%q was understood", text)
		}
	}
}
