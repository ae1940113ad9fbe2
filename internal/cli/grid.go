package cli

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// column of a grid.
type column struct {
	name string
	// wide columns are shown with -o wide only.
	wide bool
	// state cells are painted.
	state bool
	// clock cells change by themselves as time goes by.
	clock bool
}

// gridRow is one line of a grid.
type gridRow struct {
	// key tells it from others, name is what people ask for it by.
	key, name string
	cells     []string
	// data is what -o json prints of it.
	data any
}

// grid is a table for people.
type grid struct {
	columns []column
	rows    []gridRow
}

// narrow leaves the wide columns out.
func (g grid) narrow() grid {
	out := grid{}
	keep := func(i int) bool { return !g.columns[i].wide }
	for i, c := range g.columns {
		if keep(i) {
			out.columns = append(out.columns, c)
		}
	}
	for _, row := range g.rows {
		cells := row.cells
		row.cells = nil
		for i, cell := range cells {
			if keep(i) {
				row.cells = append(row.cells, cell)
			}
		}
		out.rows = append(out.rows, row)
	}
	return out
}

// widths of the columns, at least those given.
func (g grid) widths(least []int) []int {
	out := make([]int, len(g.columns))
	for i, c := range g.columns {
		out[i] = utf8.RuneCountInString(c.name)
		if i < len(least) {
			out[i] = max(out[i], least[i])
		}
		for _, row := range g.rows {
			out[i] = max(out[i], utf8.RuneCountInString(row.cells[i]))
		}
	}
	return out
}

// header is the line of the columns' names.
func (g grid) header(widths []int) string {
	var names []string
	for _, c := range g.columns {
		names = append(names, c.name)
	}
	return g.line(palette{}, names, widths, 0)
}

// line is one row; longer than width cells it is cut, unless width is 0.
func (g grid) line(paint palette, cells []string, widths []int, width int) string {
	var b strings.Builder
	left := width
	for i, cell := range cells {
		padded := cell
		if i < len(cells)-1 {
			padded += strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(cell), 0)+3)
		}
		if width > 0 {
			if left <= 0 {
				break
			}
			padded = cut(padded, left)
			left -= utf8.RuneCountInString(padded)
		}
		if g.columns[i].state {
			padded = paint.state(v1beta2.State(cell), padded)
		}
		b.WriteString(padded)
	}
	return strings.TrimRight(b.String(), " ")
}

// lines are the header and all rows.
func (g grid) lines(paint palette, width int) []string {
	widths := g.widths(nil)
	out := []string{paint.dim(g.header(widths))}
	for _, row := range g.rows {
		out = append(out, g.line(paint, row.cells, widths, width))
	}
	return out
}

// changed says whether a row says something else than before, apart from the time.
func (g grid) changed(before, now []string) bool {
	if len(before) != len(now) {
		return true
	}
	for i := range now {
		if !g.columns[i].clock && before[i] != now[i] {
			return true
		}
	}
	return false
}

// cells are safe for a terminal, each on one line; "-" stands for nothing but in the last.
func cells(texts ...string) []string {
	for i, text := range texts {
		texts[i] = oneLine(text)
		if texts[i] == "" && i < len(texts)-1 {
			texts[i] = "-"
		}
	}
	return texts
}

// state paints by how good a state is.
func (p palette) state(s v1beta2.State, text string) string {
	switch s {
	case v1beta2.StateReady:
		return p.green(text)
	case v1beta2.StateError:
		return p.red(text)
	case v1beta2.StateWarning, v1beta2.StateDeleting:
		return p.yellow(text)
	case v1beta2.StateProcessing, v1beta2.StateWaiting:
		return p.cyan(text)
	}
	return text
}

// since is how long ago something was, for people: 5s, 3m, 2d.
func since(t *metav1.Time, now time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(t.Time), 0))
}

// names of the rows, each once, sorted.
func (g grid) names() []string {
	var out []string
	for _, row := range g.rows {
		out = append(out, row.name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
