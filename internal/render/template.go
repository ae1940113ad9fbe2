package render

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	// place is a template's file and line in the messages of Go's template package and of Helm: at the start of a
	// line, in brackets, or after "template: ".
	placeForm = regexp.MustCompile(`(?m)(?:^\s*|\(|template: )([^\s():"<>]+):(\d+)(?::\d+)?(?:\)|:|$)`)
	// quoted is the text that `tpl` was given: it is a value and may hold secrets.
	quotedForm = regexp.MustCompile(`(cannot parse template|error during tpl function execution for) "(?:[^"\\]|\\.)*"`)
	// executing is how Go's template package says what it was doing.
	executingForm = regexp.MustCompile(`executing "[^"]*" at <([^\n]*?)>:\s*`)
	// calling repeats what executing said.
	callingForm = regexp.MustCompile(`^error calling \w+: ?`)
	markerForm  = regexp.MustCompile(`(?s)HELM_ERR_START(.*?)HELM_ERR_END`)
)

// templateError makes one line of what Helm's engine reports as a chain of calls: the innermost template and line, the
// expression, the problem, and where it was included from.
func templateError(err error, s *session) error {
	message := quotedForm.ReplaceAllString(err.Error(), "$1 its argument")
	out := &Error{Problem: problemOf(message), Err: ErrTemplate}
	var from string
	if places := placeForm.FindAllStringSubmatch(message, -1); len(places) > 0 {
		first, last := places[0], places[len(places)-1]
		out.Origin = last[1]
		out.Line, _ = strconv.Atoi(last[2])
		if first[1] != last[1] {
			from = fmt.Sprintf(" (from %s, line %s)", first[1], first[2])
		}
	}
	if out.Origin == "" {
		out.Origin = s.template
	}
	if s.refused != nil {
		out.Problem, out.Err = s.refused.Error(), ErrRandom
	}
	out.Problem = scrub(out.Problem, s.request.Values) + from
	return out
}

// problemOf is the end of the chain: what `fail` or `required` said, or the expression and what went wrong in it.
func problemOf(message string) string {
	if m := markerForm.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	if _, said, ok := strings.Cut(message, "execution error at ("); ok {
		if _, said, ok = strings.Cut(said, "): "); ok {
			return said
		}
	}
	if _, said, ok := strings.Cut(message, "parse error at ("); ok {
		_, said, _ = strings.Cut(said, "): ")
		return "the template cannot be parsed: " + said
	}
	at := executingForm.FindAllStringSubmatchIndex(message, -1)
	if len(at) == 0 {
		return message
	}
	last := at[len(at)-1]
	said := strings.TrimSpace(message[last[1]:])
	said = strings.TrimSpace(callingForm.ReplaceAllString(said, ""))
	return fmt.Sprintf("{{%s}}: %s", message[last[2]:last[3]], said)
}

// sensitive are words in the path of a value that is not to be shown.
var sensitive = regexp.MustCompile(`(?i)pass|pwd|secret|token|cred|key|cert|private|auth|license|dsn|connection`)

const mask = "***"

// scrub removes the values with a sensitive name from a message: charts print values with `fail`, and Go's functions
// quote their arguments.
func scrub(message string, values map[string]any) string {
	visitStrings(values, "", func(path, value string) {
		if len(value) >= 4 && sensitive.MatchString(path) {
			message = strings.ReplaceAll(message, value, mask)
		}
	})
	return message
}

// visitStrings calls f for each string in a value. Values are bounded in depth when they are cloned.
func visitStrings(v any, path string, f func(path, value string)) {
	switch v := v.(type) {
	case string:
		f(path, v)
	case map[string]any:
		for k, item := range v {
			visitStrings(item, path+"/"+k, f)
		}
	case []any:
		for _, item := range v {
			visitStrings(item, path, f)
		}
	}
}
