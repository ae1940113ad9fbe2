package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/kyma-project/mothership"
)

// comparisonTable is what a comparison found, object by object and field by field.
func (a *app) comparisonTable(c *mothership.Comparison) string {
	paint := a.palette(a.p.Stdout)
	var b strings.Builder
	for _, change := range c.Changes {
		b.WriteString(changeText(paint, change))
	}
	fmt.Fprintf(&b, "%s in %s: %s\n", c.Module, c.Namespace, comparisonSummary(c))
	return b.String()
}

// verbs of a comparison's summary, in its order.
var verbs = []struct {
	action mothership.Action
	verb   string
}{
	{mothership.ActionCreate, "to create"}, {mothership.ActionUpdate, "to update"}, {mothership.ActionRepair, "to repair"},
	{mothership.ActionAdopt, "to take over"}, {mothership.ActionPrune, "to prune"}, {mothership.ActionRefuse, "refused"},
}

func comparisonSummary(c *mothership.Comparison) string {
	if c.Equal() {
		return fmt.Sprintf("nothing differs, %s, %s, %s", count(c.Unchanged, "object"), seconds(c.Duration), count(total(c.Requests), "request"))
	}
	counts := map[mothership.Action]int{}
	for _, change := range c.Changes {
		counts[change.Action]++
	}
	var parts []string
	for _, v := range verbs {
		if n := counts[v.action]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v.verb))
		}
	}
	return strings.Join(append(parts, fmt.Sprintf("%d unchanged", c.Unchanged), seconds(c.Duration), count(total(c.Requests), "request")), ", ")
}

// marks stand before the objects of a comparison.
var marks = map[mothership.Action]string{
	mothership.ActionCreate: "+", mothership.ActionUpdate: "~", mothership.ActionRepair: "~",
	mothership.ActionAdopt: "^", mothership.ActionPrune: "-", mothership.ActionDelete: "-", mothership.ActionRefuse: "!",
}

func changeText(paint palette, c mothership.Change) string {
	var b strings.Builder
	b.WriteString(paint.action(c.Action, marks[c.Action]+" "+oneLine(c.Object.String())))
	switch {
	case c.Action == mothership.ActionRefuse:
		b.WriteString(" refused: " + oneLine(c.Reason))
	case c.Action == mothership.ActionAdopt:
		b.WriteString(strings.TrimSuffix(" taken over: "+oneLine(c.Reason), ": "))
	case c.Reason != "":
		b.WriteString(" " + oneLine(c.Reason))
	}
	b.WriteByte('\n')
	for _, f := range c.Fields {
		b.WriteString(fieldText(paint, f))
	}
	return b.String()
}

// fieldText is one field: its path, both values, and who owns it now.
func fieldText(paint palette, f mothership.FieldChange) string {
	by := paint.dim(owner(" (", f.Manager, ")"))
	path := "    " + oneLine(f.Path)
	from, isText := f.From.(string)
	to, isTextToo := f.To.(string)
	switch {
	case f.From == nil && f.To == nil && f.Manager == "":
		return path + " was removed\n"
	case f.From == nil && f.To == nil:
		return path + " was changed" + owner(" by ", f.Manager, "") + "\n"
	case isText && isTextToo && strings.Contains(strings.TrimSpace(from+to), "\n"):
		return path + ":" + by + "\n" + unified(paint, from, to)
	}
	before, after := shorten(valueText(f.From), valueText(f.To))
	return fmt.Sprintf("%s: %s → %s%s\n", path, before, after, by)
}

// owner is a manager's name between two others, or nothing where nobody is named.
func owner(before, manager, after string) string {
	if manager == "" {
		return ""
	}
	return before + oneLine(manager) + after
}

// valueText is a value on one line. A string is quoted only where it could be mistaken for something else.
func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return "(none)"
	case string:
		if isPlain(v) {
			return v
		}
		return strconv.Quote(v)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return "(cannot be shown)"
	}
	return clean(string(data))
}

func isPlain(s string) bool {
	if s == "" || s != strings.TrimSpace(s) || s != oneLine(s) || strings.ContainsRune(`"'{[`, rune(s[0])) {
		return false
	}
	if s == "(none)" || json.Valid([]byte(s)) {
		return false // a number, true, null
	}
	return true
}

const (
	// maxValue is the longest value that is shown whole, in characters.
	maxValue = 80
	// around is how much of what both values share is shown beside their difference.
	around = 12
)

// shorten cuts two values so that what differs is seen.
func shorten(from, to string) (before, after string) {
	a, b := []rune(from), []rune(to)
	if max(len(a), len(b)) > maxValue {
		if same := commonPrefix(a, b); same > around+1 && from != "(none)" && to != "(none)" {
			a = append([]rune("…"), a[same-around:]...)
			b = append([]rune("…"), b[same-around:]...)
		}
	}
	return cut(string(a), maxValue), cut(string(b), maxValue)
}

func commonPrefix(a, b []rune) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
