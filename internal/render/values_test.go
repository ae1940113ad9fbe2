package render

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/cli/values"
	"helm.sh/helm/v4/pkg/getter"
)

func TestMergeValues(t *testing.T) {
	t.Parallel()
	got, err := MergeValues([]NamedBytes{
		{"base.yaml", []byte("a: {x: 1, w: 2}\nlist: [1, 2]\nkind: AllowList\nitems: [a]\n")},
		{"over.yaml", []byte("# empty\n")},
		{"prod.yaml", []byte("a: {w: 3}\nlist: [3]\n---\nb: yes\n")},
	}, Sets{
		JSON:     []string{`{"j": {"k": [1]}}`, `j.l={"m": 1}`},
		Values:   []string{"a.z=5,c=true", "d={x,y}", "e[1].f=g", "a.x=null"},
		Strings:  []string{"port=80"},
		Files:    []string{"cert=ca.pem"},
		Literals: []string{"raw=a,b={c}"},
		ReadFile: func(name string) ([]byte, error) { return []byte("content of " + name), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"a": map[string]any{"x": nil, "w": 3.0, "z": int64(5)}, "list": []any{3.0}, "b": true, "c": true, "d": []any{"x", "y"},
		"e": []any{nil, map[string]any{"f": "g"}}, "port": "80", "cert": "content of ca.pem", "raw": "a,b={c}",
		"j": map[string]any{"k": []any{1.0}, "l": map[string]any{"m": 1.0}}, "kind": "AllowList", "items": []any{"a"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMergeValuesErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file string
		sets Sets
		want string
	}{
		"Duplicate":   {"a: 1\na: 2\n", Sets{}, `values.yaml, document 1, line 2: key "a" is set twice`},
		"Syntax":      {"a:\n\tb: 1\n", Sets{}, "values.yaml, document 1, line 2: a tab is used"},
		"NotAMap":     {"- a\n", Sets{}, "values.yaml, document 1: not an object but a list"},
		"NoValue":     {"", Sets{Values: []string{"name"}}, `--set "name": has no value`},
		"BadIndex":    {"", Sets{Values: []string{"a[x]=hunter2"}}, "--set a[x]: "},
		"HugeIndex":   {"", Sets{Values: []string{"a[99999999]=hunter2"}}, "--set a[99999999]: "},
		"Unfinished":  {"", Sets{Values: []string{"a={hunter2"}}, "--set a: "},
		"String":      {"", Sets{Strings: []string{"a[-1]=hunter2"}}, "--set-string a[-1]: "},
		"JSON":        {"", Sets{JSON: []string{"a={hunter2"}}, "--set-json a: "},
		"JSONObject":  {"", Sets{JSON: []string{`{"hunter2": `}}, "--set-json: unexpected end"},
		"File":        {"", Sets{Files: []string{"a=gone"}, ReadFile: os.ReadFile}, "--set-file a: "},
		"FileRefused": {"", Sets{Files: []string{"a=b"}}, "--set-file a: files cannot be read here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := MergeValues([]NamedBytes{{"values.yaml", []byte(tc.file)}}, tc.sets)
			wantError(t, err, ErrValues, tc.want)
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the value: %v", err)
			}
		})
	}
}

// FuzzMergeValues compares with Helm's own merging: the same result, or an error where Helm has one. Panics of Helm's
// parsers are errors.
func FuzzMergeValues(f *testing.F) {
	for _, s := range [][4]string{
		{"a: 1\n", "a.b=c", "x=1", `{"a": 1}`}, {"a: {b: [1]}\n", "a.b[0]=2,c=null", "a=1", "a.b[1]=true"}, {"", "a={1,2}", "b\\.c=1", "x=[1]"},
		{"a: ~\n", "a[0][1]=1", "", ""}, {"---\na: 1\n---\nb: 2\n", "=", "a=", "a=1e9"},
	} {
		f.Add(s[0], s[1], s[2], s[3])
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, file, set, setString, setJSON string) {
		got, err := MergeValues([]NamedBytes{{"f.yaml", []byte(file)}}, Sets{JSON: []string{setJSON}, Values: []string{set}, Strings: []string{setString}})
		if err != nil {
			if !errors.Is(err, ErrValues) {
				t.Fatalf("not ErrValues: %v", err)
			}
			return
		}
		path := dir + "/f.yaml"
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		o := values.Options{ValueFiles: []string{path}, JSONValues: []string{setJSON}, Values: []string{set}, StringValues: []string{setString}}
		want, err := o.MergeValues(getter.Providers{})
		if err != nil {
			t.Fatalf("Helm refuses what is accepted: %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}
