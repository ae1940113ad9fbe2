package cli

import (
	"fmt"
	"strings"
)

const (
	// maxDiffCells bounds the work and memory of comparing two texts line by line.
	maxDiffCells = 1_000_000
	// maxDiffLines is how many lines of one field are shown.
	maxDiffLines = 40
	// contextLines are shown around lines that differ.
	contextLines = 2
)

// edit is one line of a comparison: kept (' '), taken away ('-') or added ('+').
type edit struct {
	op   byte
	line string
}

// unified shows how one text becomes another, line by line, with a little of what stays.
func unified(paint palette, from, to string) string {
	edits := compareLines(lines(from), lines(to))
	var b strings.Builder
	shown, left, skipped := 0, 0, false
	for i, e := range edits {
		switch {
		case e.op == ' ' && !nearChange(edits, i):
			skipped = true
			continue
		case shown == maxDiffLines:
			left++
			continue
		}
		if skipped {
			b.WriteString("      …\n")
			skipped = false
		}
		b.WriteString(paintEdit(paint, e))
		shown++
	}
	if left > 0 {
		fmt.Fprintf(&b, "      … and %s\n", count(left, "more line"))
	} else if skipped {
		b.WriteString("      …\n")
	}
	return b.String()
}

func paintEdit(paint palette, e edit) string {
	text := strings.TrimRight(fmt.Sprintf("      %c %s", e.op, cut(clean(e.line), 2*maxValue)), " ")
	switch e.op {
	case '+':
		text = paint.green(text)
	case '-':
		text = paint.red(text)
	}
	return text + "\n"
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

func nearChange(edits []edit, at int) bool {
	for i := max(0, at-contextLines); i <= min(len(edits)-1, at+contextLines); i++ {
		if edits[i].op != ' ' {
			return true
		}
	}
	return false
}

// compareLines finds the longest common subsequence; of texts too long for that, only what is common at both ends.
func compareLines(a, b []string) []edit {
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	out := marked(' ', a[:head])
	out = append(out, compareMiddle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	return append(out, marked(' ', a[len(a)-tail:])...)
}

func marked(op byte, lines []string) []edit {
	var out []edit
	for _, l := range lines {
		out = append(out, edit{op, l})
	}
	return out
}

func compareMiddle(a, b []string) []edit {
	if len(a)*len(b) > maxDiffCells {
		return append(marked('-', a), marked('+', b)...)
	}
	common := commonLengths(a, b)
	var out []edit
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, edit{' ', a[i]})
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			out = append(out, edit{'-', a[i]})
			i++
		default:
			out = append(out, edit{'+', b[j]})
			j++
		}
	}
	return append(append(out, marked('-', a[i:])...), marked('+', b[j:])...)
}

// commonLengths[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
func commonLengths(a, b []string) [][]int32 {
	table := make([][]int32, len(a)+1)
	for i := range table {
		table[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				table[i][j] = table[i+1][j+1] + 1
			} else {
				table[i][j] = max(table[i+1][j], table[i][j+1])
			}
		}
	}
	return table
}
