package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummary(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		events   string
		ok       bool
		last     string
		contains []string
	}{
		{
			name: "SubtestsCountInsteadOfTheirParent",
			events: `{"Action":"pass","Package":"p","Test":"TestA/One"}
{"Action":"skip","Package":"p","Test":"TestA/Two"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Elapsed":1.5}
`,
			ok: true, last: "1 passed, 0 failed, 1 skipped", contains: []string{"ok   p (1.5 s, 3 tests)"},
		},
		{
			name: "FailureIsPrintedAtTheEnd",
			events: `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: too cold\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p"}
{"Action":"pass","Package":"q","Test":"TestC"}
{"Action":"pass","Package":"q"}
`,
			last: "2 passed, 1 failed, 0 skipped", contains: []string{"\n\n--- FAIL p TestA\n    a_test.go:7: too cold\n"},
		},
		{
			name: "ParentThatFailsByItselfCounts",
			events: `{"Action":"pass","Package":"p","Test":"TestA/One"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}
`,
			last: "1 passed, 1 failed, 0 skipped",
		},
		{
			name: "PackageThatDoesNotCompileCountsOnce",
			events: `{"ImportPath":"p","Action":"build-output","Output":"p.go:3: undefined: x\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p"}
`,
			last: "0 passed, 1 failed, 0 skipped", contains: []string{"\n\np.go:3: undefined: x\n--- FAIL p\n"},
		},
		{name: "NothingRunIsNotSuccess", last: "0 passed, 0 failed, 0 skipped"},
		{
			name:   "OtherLinesPassThrough",
			events: "go: downloading x\n{\"Action\":\"pass\",\"Package\":\"p\",\"Test\":\"TestA\"}\n{\"Action\":\"pass\",\"Package\":\"p\"}",
			ok:     true, last: "1 passed, 0 failed, 0 skipped", contains: []string{"go: downloading x\n"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			s := newSummary(&out)
			if err := s.read(strings.NewReader(tt.events)); err != nil {
				t.Fatal(err)
			}
			if got := s.finish(); got != tt.ok {
				t.Errorf("finish() = %v, want %v", got, tt.ok)
			}
			lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
			if diff := cmp.Diff(tt.last, lines[len(lines)-1]); diff != "" {
				t.Errorf("last line (-want +got):\n%s", diff)
			}
			for _, want := range tt.contains {
				if !strings.Contains(out.String(), want) {
					t.Errorf("output has no %q:\n%s", want, out.String())
				}
			}
		})
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	dirs, rest, err := parse([]string{"-dir", ".", "-dir", "api", "--", "-p", "2", "./..."})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{".", "api"}, {"-p", "2", "./..."}}, [][]string{dirs, rest}); diff != "" {
		t.Errorf("parse (-want +got):\n%s", diff)
	}
	if _, _, err := parse([]string{"./..."}); err == nil {
		t.Error("an argument before -- is accepted")
	}
}
