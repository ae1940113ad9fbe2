package render

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"regexp"
	"sync"
)

// warnings serialises captureWarnings: the standard logger is one for the process.
var warnings sync.Mutex

// captureWarnings runs f, which takes milliseconds, and returns the warnings that Helm's merging of values writes to
// the standard logger meanwhile. They would print the values in question; what is returned names only their keys.
// Everything else that is logged meanwhile passes through.
func captureWarnings(f func()) []string {
	warnings.Lock()
	defer warnings.Unlock()
	w := &warningFilter{next: log.Writer()}
	log.SetOutput(w)
	defer func() {
		if log.Writer() == io.Writer(w) {
			log.SetOutput(w.next)
		}
	}()
	f()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kept
}

// warningFilter takes Helm's warnings out of a log.
type warningFilter struct {
	next io.Writer
	mu   sync.Mutex
	kept []string
}

var shapeWarnings = []struct {
	form    *regexp.Regexp
	meaning string
}{
	{regexp.MustCompile(`warning: cannot overwrite table with non table for (\S+)`), "values: %s is a table in the chart, but what is given is not"},
	{regexp.MustCompile(`warning: destination for (\S+) is a table\. Ignoring non-table value`), "values: %s is given as a table, but is none in the chart"},
	{regexp.MustCompile(`warning: skipped value for (\S+): Not a table`), "values: %s is given as a table, but is none in the chart"},
	{regexp.MustCompile(`Conflict: cannot merge map onto non-map for "([^"]*)"`), "values: global %s is not a table everywhere"},
	{regexp.MustCompile(`warning: skipping globals because (?:source|destination) (\S+) is not a table`), "values: %s is not a table"},
	{regexp.MustCompile(`key (\S+) is table\. Skipping`), "values: global %s is a table in one place only"},
}

// Write is called by the logger once per line.
func (w *warningFilter) Write(line []byte) (int, error) {
	for _, s := range shapeWarnings {
		if m := s.form.FindSubmatch(line); m != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.kept = append(w.kept, fmt.Sprintf(s.meaning, bytes.TrimRight(m[1], ".")))
			return len(line), nil
		}
	}
	return w.next.Write(line)
}
