package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

// class says how a template function is treated.
type class int

const (
	// pure functions are Helm's own.
	pure class = iota
	// pinned functions are pure, but Helm's own depend on the machine in a corner: the local time zone, the clock
	// when given something that is no date, or the order of Go's maps. Ours do not.
	pinned
	// random functions draw randomness: refused, or derived per runtime.
	random
	// clock functions read the time: always refused.
	clock
	// ambient functions read the environment or the network: always refused.
	ambient
	// cluster functions read a cluster: refused, or finding nothing per runtime, as with `helm template`.
	cluster
)

// classes classifies every function that Helm's engine offers. A test compares it with Helm's sources, so that a
// function that comes with an upgrade is classified before it is used.
var classes = func() map[string]class {
	c := map[string]class{}
	for cl, names := range map[class][]string{
		pure: {
			"abbrev", "abbrevboth", "add", "add1", "add1f", "addf", "adler32sum", "all", "any", "append", "atoi",
			"b32dec", "b32enc", "b64dec", "b64enc", "base", "biggest", "camelcase", "cat", "ceil", "chunk", "clean",
			"coalesce", "compact", "concat", "contains", "dateModify", "date_modify", "decryptAES", "deepCopy",
			"deepEqual", "default", "derivePassword", "dict", "dig", "dir", "div", "divf", "duration",
			"durationDays", "durationHours", "durationMicroseconds", "durationMilliseconds", "durationMinutes",
			"durationNanoseconds", "durationRoundTo", "durationSeconds", "durationTruncateTo", "durationWeeks",
			"empty", "ext", "fail", "first", "float64", "floor", "fromJson", "fromJsonArray", "fromToml",
			"fromYaml", "fromYamlArray", "get", "has", "hasKey", "hasPrefix", "hasSuffix", "hello", "include",
			"indent", "initial", "initials", "int", "int64", "isAbs", "join", "kebabcase", "kindIs", "kindOf",
			"last", "list", "lower", "max", "maxf", "merge", "mergeOverwrite", "min", "minf", "mod", "mul", "mulf",
			"mustAppend", "mustChunk", "mustCompact", "mustDateModify", "must_date_modify", "mustDeepCopy",
			"mustFirst", "mustFromJson", "mustHas", "mustInitial", "mustLast", "mustMerge", "mustMergeOverwrite",
			"mustPrepend", "mustPush", "mustRegexFind", "mustRegexFindAll", "mustRegexMatch",
			"mustRegexReplaceAll", "mustRegexReplaceAllLiteral", "mustRegexSplit", "mustRest", "mustReverse",
			"mustSlice", "mustToDuration", "mustToJson", "mustToPrettyJson", "mustToRawJson", "mustToToml",
			"mustToYaml", "mustUniq", "mustWithout", "nindent", "nospace", "omit", "osBase", "osClean", "osDir",
			"osExt", "osIsAbs", "pick", "pluck", "plural", "prepend", "push", "quote", "regexFind",
			"regexFindAll", "regexMatch", "regexQuoteMeta", "regexReplaceAll", "regexReplaceAllLiteral",
			"regexSplit", "repeat", "replace", "required", "rest", "reverse", "round", "semver", "semverCompare",
			"seq", "set", "sha1sum", "sha256sum", "sha512sum", "slice", "snakecase", "sortAlpha", "split",
			"splitList", "splitn", "squote", "sub", "subf", "substr", "swapcase", "ternary", "title", "toDecimal",
			"toJson", "toPrettyJson", "toRawJson", "toString", "toStrings", "toToml", "toYaml", "toYamlPretty",
			"tpl", "trim", "trimAll", "trimPrefix", "trimSuffix", "trimall", "trunc", "tuple", "typeIs",
			"typeIsLike", "typeOf", "uniq", "unixEpoch", "unset", "until", "untilStep", "untitle", "upper",
			"urlJoin", "urlParse", "without", "wrap", "wrapWith",
		},
		pinned: {
			"date", "dateInZone", "date_in_zone", "durationRound", "htmlDate", "htmlDateInZone", "keys",
			"mustToDate", "toDate", "values", "buildCustomCert",
		},
		random: {
			"bcrypt", "encryptAES", "genCA", "genCAWithKey", "genPrivateKey", "genSelfSignedCert",
			"genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "htpasswd", "randAlpha",
			"randAlphaNum", "randAscii", "randBytes", "randInt", "randNumeric", "shuffle", "uuidv4",
		},
		clock:   {"ago", "now"},
		ambient: {"env", "expandenv", "getHostByName"},
		cluster: {"lookup"},
	} {
		for _, name := range names {
			c[name] = cl
		}
	}
	return c
}()

// session is the state of one execution of a chart's templates. It is used by one goroutine.
type session struct {
	request  *Request
	now      func() time.Time
	template string // file that is being rendered
	discard  bool   // its output is thrown away (NOTES.txt): nothing is refused
	calls    map[string]int
	drew     map[string]bool // templates that drew randomness
	refused  error           // first refusal: the engine keeps only the text of errors
}

func newSession(r *Request) *session {
	return &session{request: r, now: time.Now, calls: map[string]int{}, drew: map[string]bool{}}
}

// enterFunc is the function that each template calls first, to say which file is being rendered.
const enterFunc = "mothershipEnterTemplate"

// functions are those that replace Helm's.
func (s *session) functions() template.FuncMap {
	funcs := template.FuncMap{enterFunc: s.enter}
	for name, c := range classes {
		switch {
		case c == random && s.request.PerRuntime == "", c == clock, c == ambient:
			funcs[name] = s.refuser(name, c)
		case c == cluster && s.request.PerRuntime == "":
			funcs[name] = s.refuser(name, c)
		}
	}
	maps.Copy(funcs, s.pinnedFunctions())
	if s.request.PerRuntime != "" {
		maps.Copy(funcs, s.randomFunctions())
	}
	return funcs
}

func (s *session) enter(name string, discard bool) string {
	s.template, s.discard = name, discard
	return ""
}

const perRuntimeHint = "set the value explicitly in values, or set perRuntime: true on the template"

var refusals = map[class]string{
	random:  "draws randomness, so that every rendering would differ: " + perRuntimeHint,
	clock:   "reads the clock, so that every rendering would differ: set the value explicitly in values",
	ambient: "reads the environment or the network of the machine that renders: set the value explicitly in values",
	cluster: "reads a cluster, but a module is rendered once for all: " + perRuntimeHint +
		" (lookup finds nothing then, as with helm template)",
}

// refuser makes a function of any signature that fails, but in NOTES.txt, whose output nobody reads.
func (s *session) refuser(name string, c class) func(...any) (any, error) {
	return func(...any) (any, error) {
		if s.discard {
			return discarded(name), nil
		}
		return nil, s.refuse(fmt.Sprintf("function %q %s", name, refusals[c]))
	}
}

func (s *session) refuse(problem string) error {
	err := &Error{Problem: problem, Err: ErrRandom}
	if s.refused == nil {
		s.refused = err
	}
	return err
}

// discarded is the result of an impure function in a template whose output is thrown away: of the type that Helm's
// own function has, and empty.
func discarded(name string) any {
	switch {
	case name == "now":
		return time.Unix(0, 0).UTC()
	case name == "lookup":
		return map[string]any{}
	case name == "randInt":
		return 0
	case strings.HasPrefix(name, "gen") && name != "genPrivateKey":
		return certificate{}
	}
	return ""
}

// pinnedFunctions are Helm's functions without their dependence on the machine.
func (s *session) pinnedFunctions() template.FuncMap {
	inZone := func(layout string, date any, zone string) (string, error) {
		t, err := s.instant(date)
		if err != nil {
			return "", err
		}
		loc, err := time.LoadLocation(zone)
		if err != nil {
			loc = time.UTC
		}
		return t.In(loc).Format(layout), nil
	}
	return template.FuncMap{
		"date":            func(layout string, date any) (string, error) { return inZone(layout, date, "UTC") },
		"dateInZone":      inZone,
		"date_in_zone":    inZone,
		"htmlDate":        func(date any) (string, error) { return inZone(time.DateOnly, date, "UTC") },
		"htmlDateInZone":  func(date any, zone string) (string, error) { return inZone(time.DateOnly, date, zone) },
		"toDate":          func(layout, s string) time.Time { t, _ := time.Parse(layout, s); return t },
		"mustToDate":      time.Parse,
		"durationRound":   s.durationRound,
		"keys":            sortedKeys,
		"values":          sortedValues,
		"buildCustomCert": buildCustomCert,
	}
}

// instant reads a date as sprig does. What is no date means the current time there; it is refused here.
func (s *session) instant(date any) (time.Time, error) {
	switch d := date.(type) {
	case time.Time:
		return d, nil
	case *time.Time:
		return *d, nil
	case int64:
		return time.Unix(d, 0), nil
	case int:
		return time.Unix(int64(d), 0), nil
	case int32:
		return time.Unix(int64(d), 0), nil
	}
	if s.discard {
		return time.Unix(0, 0), nil
	}
	return time.Time{}, s.refuse(fmt.Sprintf("a date function was given %s, for which Helm takes the current time: give it a date", typeName(date)))
}

var sprigDurationRound = sprig.TxtFuncMap()["durationRound"].(func(any) string)

func (s *session) durationRound(d any) (string, error) {
	if _, ok := d.(time.Time); ok && !s.discard {
		return "", s.refuse(`function "durationRound" of a date reads the clock: set the value explicitly in values`)
	}
	return sprigDurationRound(d), nil
}

// sortedKeys are the keys of all maps, in the order of the maps, each sorted. Sprig's order is Go's, which is random.
func sortedKeys(dicts ...map[string]any) []string {
	out := []string{}
	for _, m := range dicts {
		out = append(out, sortedKeysOf(m)...)
	}
	return out
}

func sortedValues(m map[string]any) []any {
	out := make([]any, 0, len(m))
	for _, k := range sortedKeysOf(m) {
		out = append(out, m[k])
	}
	return out
}

func sortedKeysOf(m map[string]any) []string {
	return slices.Sorted(maps.Keys(m))
}
