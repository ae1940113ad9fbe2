package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
)

// event is a line of `go test -json`, as `go doc test2json` describes it.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Elapsed    float64 // seconds
	Output     string
}

// result of one test.
type result struct {
	action string // pass, fail or skip
	parent bool   // has subtests
}

// summary adds up the results of all packages. It is not safe for concurrent use.
type summary struct {
	out                     io.Writer
	passed, failed, skipped int
	results                 map[string]map[string]*result // package → test
	output                  map[string][]string           // package or package+test → its output
	report                  strings.Builder               // what failed, printed at the end
}

func newSummary(out io.Writer) *summary {
	return &summary{out: out, results: map[string]map[string]*result{}, output: map[string][]string{}}
}

// read takes in the output of one `go test -json`. Lines that are no event are passed through.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			s.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading test results: %w", err)
		}
	}
}

func (s *summary) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		_, _ = s.out.Write(line)
		return
	}
	switch e.Action {
	case "output":
		s.output[key(e.Package, e.Test)] = append(s.output[key(e.Package, e.Test)], e.Output)
	case "build-output":
		fmt.Fprint(s.out, e.Output)
		s.report.WriteString(e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
			return
		}
		s.endTest(e)
	}
}

func key(pkg, test string) string { return pkg + "\x00" + test }

func (s *summary) endTest(e event) {
	tests := s.results[e.Package]
	if tests == nil {
		tests = map[string]*result{}
		s.results[e.Package] = tests
	}
	if r := tests[e.Test]; r != nil {
		r.action = e.Action
	} else {
		tests[e.Test] = &result{action: e.Action}
	}
	for name := e.Test; ; {
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			return
		}
		name = name[:i]
		if tests[name] == nil {
			tests[name] = &result{}
		}
		tests[name].parent = true
	}
}

// endPackage counts the package's tests, prints its line and forgets its output.
func (s *summary) endPackage(e event) {
	tests := s.results[e.Package]
	names := make([]string, 0, len(tests))
	for name := range tests {
		names = append(names, name)
	}
	sort.Strings(names)
	failed := 0
	for _, name := range names {
		failed += s.count(e.Package, name, tests)
	}
	if e.Action == "fail" && failed == 0 {
		failed, s.failed = 1, s.failed+1
	}
	if failed > 0 {
		fmt.Fprintf(&s.report, "--- FAIL %s\n%s", e.Package, strings.Join(s.output[key(e.Package, "")], ""))
	}
	word := map[string]string{"pass": "ok  ", "fail": "FAIL", "skip": "none"}[e.Action]
	fmt.Fprintf(s.out, "%s %s (%.1f s, %d tests)\n", word, e.Package, e.Elapsed, len(names))
	for _, name := range names {
		delete(s.output, key(e.Package, name))
	}
	delete(s.output, key(e.Package, ""))
	delete(s.results, e.Package)
}

// count adds one test to the sums, and its output to the report if it failed. It returns the number of failures added.
func (s *summary) count(pkg, name string, tests map[string]*result) int {
	r := tests[name]
	if r.action == "fail" {
		fmt.Fprintf(&s.report, "--- FAIL %s %s\n%s", pkg, name, strings.Join(s.output[key(pkg, name)], ""))
	}
	if r.parent && (r.action != "fail" || childFailed(name, tests)) {
		return 0
	}
	switch r.action {
	case "pass":
		s.passed++
	case "skip":
		s.skipped++
	default: // failed, or cut off before it ended
		s.failed++
		return 1
	}
	return 0
}

func childFailed(name string, tests map[string]*result) bool {
	for other, r := range tests {
		if r.action == "fail" && strings.HasPrefix(other, name+"/") {
			return true
		}
	}
	return false
}

// failRun counts a failure of running the tests at all.
func (s *summary) failRun(dir string, err error) {
	s.failed++
	fmt.Fprintf(&s.report, "--- FAIL go test in %s: %v\n", dir, err)
}

// finish prints what failed and the sums, and says whether all is well: something passed and nothing failed.
func (s *summary) finish() bool {
	if s.report.Len() > 0 {
		fmt.Fprintf(s.out, "\n%s\n", strings.TrimRight(s.report.String(), "\n"))
	}
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
	return s.failed == 0 && s.passed > 0
}
