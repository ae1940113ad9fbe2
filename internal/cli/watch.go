package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchView shows a view and its changes until the context ends, which is how it is meant to end.
func (a *app) watchView(cmd *cobra.Command, f *fleet, g *getting) error {
	t := a.terminalOf(a.p.Stdout)
	if t.on && (g.output == asTable || g.output == asWide) {
		return a.watchLive(cmd, f, g, t)
	}
	lines := &lineWatch{a: a, g: g}
	return ended(cmd, f.follow(cmd.Context(), g.view.lists, lines.look))
}

// ended is no error when a watch was interrupted: nobody waits for its end.
func ended(cmd *cobra.Command, err error) error {
	select {
	case <-cmd.Context().Done():
		return nil
	default:
		return err
	}
}

// lineWatch prints a line for each change.
type lineWatch struct {
	a      *app
	g      *getting
	widths []int
	begun  bool
	shown  map[string][]string // cells by key
	said   map[string]string   // documents by key
}

func (w *lineWatch) look(objects []client.Object) (bool, error) {
	rows, err := w.g.rows(objects)
	if err != nil {
		return false, err
	}
	if w.g.output == asJSON || w.g.output == asYAML {
		return false, w.documents(rows)
	}
	return false, w.lines(rows)
}

// lines prints the rows that changed, and those that are gone.
func (w *lineWatch) lines(rows grid) error {
	w.widths = rows.widths(w.widths)
	var b strings.Builder
	if !w.begun {
		b.WriteString(rows.header(w.widths) + "\n")
		w.begun = true
	}
	now := map[string][]string{}
	for _, row := range rows.rows {
		now[row.key] = row.cells
		if rows.changed(w.shown[row.key], row.cells) {
			b.WriteString(rows.line(palette{}, row.cells, w.widths, 0) + "\n")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.shown)) {
		if now[key] == nil {
			gone := slices.Clone(w.shown[key])
			gone[len(gone)-1] = "(gone)"
			b.WriteString(rows.line(palette{}, gone, w.widths, 0) + "\n")
		}
	}
	w.shown = now
	return w.a.write(b.String())
}

// documents prints the data of rows that changed.
func (w *lineWatch) documents(rows grid) error {
	now := map[string]string{}
	var b strings.Builder
	for _, row := range rows.rows {
		text, err := document(w.g.output, row.data)
		if err != nil {
			return fmt.Errorf("printing %s: %w", row.key, err)
		}
		now[row.key] = text
		if w.said[row.key] != text {
			b.WriteString(text)
		}
	}
	w.said = now
	return w.a.write(b.String())
}

// live is a table on a terminal that is drawn over itself.
type live struct {
	w     io.Writer
	term  terminal
	paint palette
	drawn int // lines on the screen
}

// draw shows lines in place of those before, at most as many as fit.
func (l *live) draw(lines func(width int) []string, note string) {
	width, height := l.term.size()
	all := lines(width - 1)
	if most := max(height-reservedRows, 2); len(all) > most {
		all = append(all[:most], l.paint.dim(cut(fmt.Sprintf("… and %d more", len(all)-most), width-1)))
	}
	if note != "" {
		all = append(all, l.paint.dim(cut(note, width-1)))
	}
	var b strings.Builder
	if l.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", l.drawn)
	}
	b.WriteString(strings.Join(all, "\n") + "\n")
	l.drawn = len(all)
	fmt.Fprint(l.w, b.String())
}

// watchLive keeps a table up to date on a terminal.
func (a *app) watchLive(cmd *cobra.Command, f *fleet, g *getting, t terminal) error {
	screen := &live{w: a.p.Stdout, term: t, paint: a.palette(a.p.Stdout)}
	latest := make(chan []client.Object, 1)
	failed := make(chan error, 1)
	go func() { // ends with the context, and is waited for below
		failed <- f.follow(cmd.Context(), g.view.lists, func(objects []client.Object) (bool, error) {
			select {
			case <-latest: // an older one that was not drawn yet
			default:
			}
			latest <- objects
			return false, nil
		})
	}()
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	var objects []client.Object
	for known := false; ; {
		select {
		case err := <-failed:
			return ended(cmd, err)
		case objects = <-latest:
			known = true
		case <-tick.C:
		}
		if known {
			screen.draw(func(width int) []string { return tableLines(g, objects, screen.paint, width) }, liveNote)
		}
	}
}

const liveNote = "(watching; Ctrl-C ends)"

func tableLines(g *getting, objects []client.Object, paint palette, width int) []string {
	rows, err := g.rows(objects)
	if err != nil || len(rows.rows) == 0 {
		return []string{"nothing yet in namespace " + g.namespace}
	}
	return rows.lines(paint, width)
}
