package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// terminal is what is known of the terminal behind a stream.
type terminal struct {
	// on says that there is one.
	on bool
	// size is its width and height in cells, asked anew each time.
	size func() (width, height int)
}

// terminalOf finds the terminal behind a stream. One that calls itself dumb counts as none.
func (a *app) terminalOf(w io.Writer) terminal {
	f, ok := w.(*os.File)
	if !ok || a.p.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return terminal{}
	}
	return terminal{on: true, size: func() (int, int) {
		width, height, err := term.GetSize(int(f.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			return 80, 24
		}
		return width, height
	}}
}

// palette paints text, or does not.
type palette struct{ on bool }

// palette decides for a stream by --color, NO_COLOR (no-color.org) and whether it is a terminal.
func (a *app) palette(w io.Writer) palette {
	switch a.color {
	case "always":
		return palette{on: true}
	case "never":
		return palette{}
	}
	return palette{on: a.p.Getenv("NO_COLOR") == "" && a.terminalOf(w).on}
}

func (p palette) paint(code int, s string) string {
	if !p.on || s == "" {
		return s
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", code, s)
}

func (p palette) red(s string) string    { return p.paint(31, s) }
func (p palette) green(s string) string  { return p.paint(32, s) }
func (p palette) yellow(s string) string { return p.paint(33, s) }
func (p palette) cyan(s string) string   { return p.paint(36, s) }
func (p palette) dim(s string) string    { return p.paint(2, s) }

// clean makes text safe for a terminal: what comes from clusters and sources may hold control characters. Line breaks
// stay.
func clean(s string) string {
	bad := func(r rune) bool { return r != '\n' && (r == utf8.RuneError || !unicode.IsPrint(r)) }
	if strings.IndexFunc(s, bad) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\t':
			b.WriteString("    ")
		case bad(r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// cut shortens a line to a number of cells.
func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(width-1, 0)]) + "…"
}
