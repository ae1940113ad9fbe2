package child

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMetricsAreSummed(t *testing.T) {
	t.Parallel()
	got := sums("# HELP a b\na{phase=\"x\",y=\"1\"} 2\na{phase=\"x\",y=\"2\"} 3\na{phase=\"z\"} 1\nplain 4e0\n")
	want := Metrics{"a": {"x": 5, "z": 1}, "plain": {"": 4}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Sum("a") != 6 || got.Sum("nothing") != 0 {
		t.Errorf("sums %v and %v", got.Sum("a"), got.Sum("nothing"))
	}
}
