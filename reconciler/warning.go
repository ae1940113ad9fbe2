package reconciler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Warning is something that a person should look at although the component works.
type Warning struct {
	// Reason is one of the Warning constants or, of other reconcilers, a CamelCase word of their own.
	Reason string
	// Message says what, of which object, and what to do.
	Message string
}

// Reasons of warnings.
const (
	// WarningFieldContested: a field was lost to another manager again and again, and is left alone for a while.
	WarningFieldContested = "FieldContested"
	// WarningRender: the rendering of the module has something to say.
	WarningRender = "RenderWarning"
	// WarningMore: there are more warnings than are shown.
	WarningMore = "MoreWarnings"
)

// Bounds of BoundWarnings: they end up in a status that is read by everybody.
const (
	maxWarnings     = 10
	maxWarningBytes = 300
)

// String is the reason and the message.
func (w Warning) String() string { return w.Reason + ": " + w.Message }

// BoundWarnings sorts warnings by reason and message, drops what is said twice, shortens each message to 300 bytes and the list
// to 10, the last of which then counts the others (WarningMore).
func BoundWarnings(list []Warning) []Warning {
	out := make([]Warning, len(list))
	for i, w := range list {
		out[i] = Warning{Reason: w.Reason, Message: shorten(w.Message)}
	}
	slices.SortFunc(out, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	if out = slices.Compact(out); len(out) == 0 {
		return nil
	}
	if more := len(out) - maxWarnings + 1; more > 1 {
		out = append(out[:maxWarnings-1], Warning{Reason: WarningMore, Message: fmt.Sprintf("and %d more", more)})
	}
	return out
}

// shorten cuts a message at its bound, between characters.
func shorten(s string) string {
	const end = " …"
	if len(s) <= maxWarningBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxWarningBytes-len(end)], "") + end
}
