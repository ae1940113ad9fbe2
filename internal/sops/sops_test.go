package sops

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The files of testdata were made by the real program (sops 3.10.2, age-keygen 1.3.1), and *.want.json is what it decrypts them to.

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func keys(t testing.TB, names ...string) *Keys {
	t.Helper()
	var files [][]byte
	for _, n := range names {
		files = append(files, read(t, n))
	}
	k, err := ParseKeys(files...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestDecryptsWhatSopsWrites(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"values.yaml":            "values.want.json",
		"json.json":              "json.want.json",
		"regex.yaml":             "regex.want.json", // two recipients, encrypted_regex, mac_only_encrypted
		"unencrypted-regex.yaml": "unencrypted-regex.want.json",
		"suffix.yaml":            "suffix.want.json",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := read(t, name)
			if !Encrypted(data) {
				t.Error("it does not count as encrypted")
			}
			got, err := keys(t, "key.txt").Decrypt(data)
			if err != nil {
				t.Fatal(err)
			}
			var w, g any
			if err := errors.Join(json.Unmarshal(read(t, want), &w), json.Unmarshal(got, &g)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(w, g); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// swap changes a file at one place.
func swap(t *testing.T, data []byte, from, to string) []byte {
	t.Helper()
	out := strings.Replace(string(data), from, to, 1)
	if out == string(data) {
		t.Fatalf("there is no %q", from)
	}
	return []byte(out)
}

// line is the line of a file that begins with a key.
func line(t *testing.T, data []byte, key string) string {
	t.Helper()
	for l := range strings.Lines(string(data)) {
		if strings.HasPrefix(strings.TrimSpace(l), key+":") {
			return strings.TrimSuffix(l, "\n")
		}
	}
	t.Fatalf("there is no %s", key)
	return ""
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	values, regex := read(t, "values.yaml"), read(t, "regex.yaml")
	mac := line(t, values, "mac")
	text := strings.TrimPrefix(line(t, values, "text"), "text: ")
	for name, tc := range map[string]struct {
		data []byte
		keys *Keys
		kind error
		want string
	}{
		"NoKeys":         {values, nil, ErrKey, "no age key is given"},
		"OtherKey":       {values, keys(t, "other.txt"), ErrKey, `it is encrypted for "age1`},
		"ForSomeoneElse": {read(t, "other.yaml"), keys(t, "key.txt"), ErrKey, `it is encrypted for "age1`},

		"Moved":       {swap(t, values, "password: ", "passwort: "), nil, ErrChanged, `"passwort": it is not what was encrypted at this place`},
		"Exchanged":   {swap(t, values, line(t, values, "password"), "password: "+text), nil, ErrChanged, `"password": it is not what`},
		"Bits":        {swap(t, values, "password: ENC[AES256_GCM,data:b", "password: ENC[AES256_GCM,data:c"), nil, ErrChanged, `"password"`},
		"Removed":     {swap(t, values, line(t, values, "password")+"\n", ""), nil, ErrChanged, "its MAC differs"},
		"Added":       {swap(t, values, "note_unencrypted", "added_unencrypted: true\nnote_unencrypted"), nil, ErrChanged, "its MAC differs"},
		"ClearText":   {swap(t, values, "in clear", "changed"), nil, ErrChanged, "its MAC differs"},
		"InClear":     {swap(t, values, line(t, values, "password"), "password: 12345"), nil, ErrChanged, `"password": it is not encrypted`},
		"InClearText": {swap(t, values, line(t, values, "password"), "password: hunter2hunter2"), nil, ErrFormat, `"password": it is not as SOPS writes it`},
		"OtherTime":   {swap(t, values, "lastmodified: \"20", "lastmodified: \"19"), nil, ErrChanged, "sops.mac does not belong to it"},
		"OtherMAC":    {swap(t, values, mac, line(t, regex, "mac")), nil, ErrChanged, "sops.mac"},
		"OnlyLess":    {swap(t, regex, "mac_only_encrypted: true", "mac_only_encrypted: false"), nil, ErrChanged, "its MAC differs"},
		"Selector":    {swap(t, regex, "encrypted_regex: ^(password|token)$", "encrypted_regex: ^token$"), nil, ErrChanged, "its MAC differs"},

		"NoMAC":         {swap(t, values, mac, "    x: y"), nil, ErrFormat, "sops.mac are needed"},
		"NoTime":        {swap(t, values, "lastmodified", "modified"), nil, ErrFormat, "sops.lastmodified and sops.mac"},
		"NotForAge":     {swap(t, values, "    age:", "    pgp:"), nil, ErrFormat, "not encrypted for any age key"},
		"Groups":        {read(t, "groups.yaml"), nil, ErrFormat, "sops.key_groups are not supported"},
		"Comments":      {read(t, "comment.yaml"), nil, ErrFormat, "comment_regex is not supported"},
		"NoMetadata":    {[]byte("a: 1\n"), nil, ErrFormat, `there is no map "sops"`},
		"Metadata":      {[]byte("sops: [1]\n"), nil, ErrFormat, `there is no map "sops"`},
		"Regex":         {swap(t, regex, "^(password|token)$", "^(password"), nil, ErrFormat, "sops.encrypted_regex is no regular expression"},
		"Malformed":     {[]byte("a: [\n"), nil, ErrFormat, "not YAML or JSON"},
		"Several":       {append(append([]byte{}, values...), "---\na: 1\n"...), nil, ErrFormat, "several documents"},
		"List":          {[]byte("- a\n"), nil, ErrFormat, "a map at its top"},
		"Twice":         {swap(t, values, "none: null", "none: null\nnone: null"), nil, ErrFormat, "a key is set twice"},
		"Alias":         {swap(t, values, "none: null", "none: &a null\nalso: *a"), nil, ErrFormat, `"also": an alias is not accepted`},
		"Deep":          {swap(t, values, "none: null", "none: "+strings.Repeat("[", 200)+strings.Repeat("]", 200)), nil, ErrFormat, "nested in more than 100 levels"},
		"KeyIsNoString": {swap(t, values, "none: null", "1: null"), nil, ErrFormat, "is no text"},
		"Large":         {make([]byte, maxBytes+1), nil, ErrFormat, "more than 8 MiB"},
		"Nonce":         {swap(t, values, strings.Split(text, "iv:")[1], "iv:,tag:AA==,type:str]"), nil, ErrFormat, "it is not as SOPS writes it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := tc.keys
			if k == nil && name != "NoKeys" {
				k = keys(t, "key.txt")
			}
			got, err := k.Decrypt(tc.data)
			if got != nil || !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%s, %v, want %v with %q", got, err, tc.kind, tc.want)
			}
			for _, secret := range []string{"hunter2", "12345", "AGE-SECRET"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error shows %s: %v", secret, err)
				}
			}
		})
	}
}

func TestEncrypted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"sops: {mac: x}": true, `{"a": 1, "sops": {"mac": "x"}}`: true, "a: {sops: {mac: x}}": false, "sops: mac": false, "sops: {mac: x": false,
		"- sops\n- mac": false, "": false, "sops: &a\n  mac: *a\n": true, "a: sops mac\n": false,
	} {
		if got := Encrypted([]byte(text)); got != want {
			t.Errorf("Encrypted(%q) = %t", text, got)
		}
	}
}

func TestParseKeys(t *testing.T) {
	t.Parallel()
	key := string(read(t, "key.txt"))
	for text, want := range map[string]string{
		"":                               "there is none",
		"# a comment\n\n":                "there is none",
		"# a\nAGE-SECRET-KEY-1HUNTER2\n": "file 1, line 2: it is no secret key",
		"age1hunter2":                    "file 1, line 1: it is no secret key",
		strings.Repeat(key, 65):          "more than 64 of them",
	} {
		k, err := ParseKeys([]byte(text))
		if k != nil || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(strings.ToLower(err.Error()), "hunter2") {
			t.Errorf("ParseKeys = %v, %v, want %q", k, err, want)
		}
	}
	k := keys(t, "other.txt", "key.txt")
	if text := k.String() + k.GoString(); strings.Contains(text, "AGE") {
		t.Error(text)
	}
	if _, err := k.Decrypt(read(t, "other.yaml")); err != nil {
		t.Error(err)
	}
}

// FuzzDecrypt checks that no file, however it was changed, makes decrypting panic, and that whatever is decrypted is one JSON
// document; no error quotes what was encrypted.
func FuzzDecrypt(f *testing.F) {
	k := keys(f, "key.txt")
	for _, name := range []string{"values.yaml", "json.json", "regex.yaml", "unencrypted-regex.yaml", "suffix.yaml", "other.yaml", "groups.yaml", "comment.yaml"} {
		f.Add(read(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		encrypted := Encrypted(data)
		out, err := k.Decrypt(data)
		switch {
		case err != nil:
			if out != nil || !errors.Is(err, ErrKey) && !errors.Is(err, ErrChanged) && !errors.Is(err, ErrFormat) {
				t.Fatalf("%s, %v", out, err)
			}
		case !encrypted:
			t.Fatalf("it was decrypted, but does not count as encrypted")
		case !json.Valid(out):
			t.Fatalf("not JSON: %s", out)
		}
	})
}
