package render

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/bcrypt"
)

// helmFunctions are the names of all functions that Helm's engine offers: sprig's, and those in the engine's sources.
func helmFunctions(t *testing.T) []string {
	t.Helper()
	names := map[string]bool{}
	for name := range sprig.TxtFuncMap() {
		names[name] = true
	}
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "helm.sh/helm/v4/pkg/engine").Output()
	if err != nil {
		t.Fatalf("finding Helm's engine: %v", err)
	}
	for _, file := range []string{"funcs.go", "engine.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(out)), file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			for _, name := range functionNames(n) {
				names[name] = true
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(names))
}

// functionNames are the names in a template.FuncMap literal, or in an assignment funcMap["name"] = ….
func functionNames(n ast.Node) []string {
	var out []string
	add := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			name, _ := strconv.Unquote(lit.Value)
			out = append(out, name)
		}
	}
	switch n := n.(type) {
	case *ast.CompositeLit:
		if sel, ok := n.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "FuncMap" {
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					add(kv.Key)
				}
			}
		}
	case *ast.AssignStmt:
		if index, ok := n.Lhs[0].(*ast.IndexExpr); ok {
			if id, ok := index.X.(*ast.Ident); ok && id.Name == "funcMap" {
				add(index.Index)
			}
		}
	}
	return out
}

// TestEveryFunctionIsClassified fails when an upgrade of Helm or sprig brings a function: put it into the class that it
// belongs to, after reading what it does.
func TestEveryFunctionIsClassified(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(helmFunctions(t), slices.Sorted(maps.Keys(classes))); diff != "" {
		t.Errorf("functions of Helm (-) and classes (+): %s", diff)
	}
}

// calls is a call of each impure function, with the arguments that it needs.
var impureCalls = map[string]string{
	"bcrypt": `bcrypt "pw"`, "encryptAES": `encryptAES "pw" "text"`, "genCA": `(genCA "ca" 365).Cert`,
	"genCAWithKey":             `(genCAWithKey "ca" 365 (genPrivateKey "ecdsa")).Cert`,
	"genPrivateKey":            `genPrivateKey "ed25519"`,
	"genSelfSignedCert":        `(genSelfSignedCert "cn" (list "10.0.0.1") (list "a.b") 365).Cert`,
	"genSelfSignedCertWithKey": `(genSelfSignedCertWithKey "cn" nil nil 365 (genPrivateKey "ecdsa")).Cert`,
	"genSignedCert":            `(genSignedCert "cn" nil nil 365 (genCA "ca" 365)).Cert`,
	"genSignedCertWithKey":     `(genSignedCertWithKey "cn" nil nil 365 (genCA "ca" 365) (genPrivateKey "ed25519")).Cert`,
	"htpasswd":                 `htpasswd "user" "pw"`, "randAlpha": `randAlpha 12`, "randAlphaNum": `randAlphaNum 12`,
	"randAscii": `randAscii 12`, "randBytes": `randBytes 12`, "randInt": `randInt 0 1000000000`, "randNumeric": `randNumeric 12`,
	"shuffle": `shuffle "abcdefghijklmnop"`, "uuidv4": `uuidv4`,
	"ago": `ago 0`, "now": `now`, "env": `env "HOME"`, "expandenv": `expandenv "$HOME"`, "getHostByName": `getHostByName "localhost"`,
	"lookup": `lookup "v1" "Secret" "default" "x"`,
}

const valueTemplate = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: s\ndata:\n  v: {{ %CALL% | toString | quote }}\n"

func callChart(call string) string {
	return chartYAML + "-- templates/s.yaml --\n" + strings.ReplaceAll(valueTemplate, "%CALL%", call)
}

func TestImpureFunctionsAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range classes {
		if c == pure || c == pinned {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call, ok := impureCalls[name]
			if !ok {
				t.Fatalf("no call of %s in the table", name)
			}
			_, err := New(Options{}).Render(context.Background(), request(Chart, callChart(call)))
			wantError(t, err, ErrRandom, "demo/templates/s.yaml, line 6: function ")
			wantError(t, err, ErrRandom, "set the value explicitly in values")
			if (c == random || c == cluster) != strings.Contains(err.Error(), "perRuntime: true") {
				t.Errorf("wrong advice: %v", err)
			}
		})
	}
}

func perRuntime(archive, uid string) Request {
	r := request(Chart, archive)
	r.PerRuntime, r.Secret = uid, []byte("0123456789abcdef")
	return r
}

func TestPerRuntimeIsDeterministic(t *testing.T) {
	t.Parallel()
	for name, c := range classes {
		if c != random {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive := callChart(impureCalls[name])
			first := bytesOf(t, mustRender(t, perRuntime(archive, "uid-1")), "s")
			if again := bytesOf(t, mustRender(t, perRuntime(archive, "uid-1")), "s"); again != first {
				t.Errorf("two renderings differ: %s", cmp.Diff(first, again))
			}
			if other := bytesOf(t, mustRender(t, perRuntime(archive, "uid-2")), "s"); other == first {
				t.Error("two runtimes have the same")
			}
			r := perRuntime(archive, "uid-1")
			r.Secret = []byte("another secret 16")
			if bytesOf(t, mustRender(t, r), "s") == first {
				t.Error("two secrets give the same")
			}
		})
	}
}

func TestClockStaysRefusedPerRuntime(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"now", "ago", "env", "getHostByName"} {
		_, err := New(Options{}).Render(context.Background(), perRuntime(callChart(impureCalls[name]), "uid"))
		wantError(t, err, ErrRandom, strconv.Quote(name))
	}
}

func TestCreatedOnce(t *testing.T) {
	t.Parallel()
	r := perRuntime(chartYAML+
		"-- templates/_helpers.tpl --\n{{ define \"pw\" }}{{ randAlphaNum 8 }}{{ end }}\n"+
		"-- templates/drawn.yaml --\napiVersion: v1\nkind: Secret\nmetadata: {name: drawn}\nstringData: {v: {{ include \"pw\" . }}}\n---\n"+
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: drawn}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: drawn}\n"+
		"-- templates/tpl.yaml --\napiVersion: v1\nkind: Secret\nmetadata: {name: tpl}\nstringData: {v: {{ tpl .Values.text . }}}\n"+
		"-- templates/plain.yaml --\napiVersion: v1\nkind: Secret\nmetadata: {name: plain}\n", "uid")
	r.Values = map[string]any{"text": "{{ randAlphaNum 8 }}"}
	got := map[string]bool{}
	for _, o := range mustRender(t, r).Objects {
		got[o.Kind+" "+o.Name] = o.Once
	}
	want := map[string]bool{"Secret drawn": true, "ConfigMap drawn": true, "Service drawn": false, "Secret tpl": true, "Secret plain": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestCertificateOfWebhook is the pattern of many charts: a CA in a Secret that is created once must match the bundle
// in a webhook that is rendered again and again.
func TestCertificateOfWebhook(t *testing.T) {
	t.Parallel()
	b := mustRender(t, perRuntime(chartYAML+`-- templates/s.yaml --
{{- $ca := genCA "ca" 365 }}{{ $cert := genSignedCert "svc" (list "10.0.0.1") (list "svc.ns.svc") 365 $ca }}
apiVersion: v1
kind: ConfigMap
metadata: {name: s}
data: {ca: {{ $ca.Cert | quote }}, crt: {{ $cert.Cert | quote }}, key: {{ $cert.Key | quote }}}
`, "uid"))
	var s struct{ Data struct{ CA, Crt, Key string } }
	if err := json.Unmarshal([]byte(bytesOf(t, b, "s")), &s); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(s.Data.CA)) {
		t.Fatal("no CA")
	}
	block, _ := pem.Decode([]byte(s.Data.Crt))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "svc.ns.svc"}); err != nil {
		t.Error(err)
	}
	if left := time.Until(cert.NotAfter); left < 182*24*time.Hour || left > 365*24*time.Hour {
		t.Errorf("valid for %s", left)
	}
	if _, err := parseKey(s.Data.Key); err != nil {
		t.Error(err)
	}
}

func TestBcrypt(t *testing.T) {
	t.Parallel()
	hash, err := bcryptHash("correct horse", []byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	if err := bcrypt.CompareHashAndPassword([]byte(hash), []byte("correct horse")); err != nil {
		t.Errorf("%s: %v", hash, err)
	}
	if _, err := bcryptHash(strings.Repeat("x", 73), []byte("0123456789abcdef")); err == nil {
		t.Error("a password of 73 bytes is accepted")
	}
}

func TestEncryptAESCanBeDecrypted(t *testing.T) {
	t.Parallel()
	s := newSession(&Request{PerRuntime: "uid", Secret: []byte("0123456789abcdef")})
	for _, plain := range []string{"", "short", "exactly 16 bytes", strings.Repeat("long ", 100)} {
		text, err := s.encryptAES("pw", plain)
		if err != nil {
			t.Fatal(err)
		}
		got, err := sprig.TxtFuncMap()["decryptAES"].(func(string, string) (string, error))("pw", text)
		if err != nil || got != plain {
			t.Errorf("%q becomes %q, %v", plain, got, err)
		}
	}
}

func TestRandomForms(t *testing.T) {
	t.Parallel()
	for call, form := range map[string]string{
		"uuidv4": `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, "randAlpha 9": `^[A-Za-z]{9}$`,
		"randNumeric 9": `^\d{9}$`, "randAlphaNum 9": `^[A-Za-z0-9]{9}$`, "randInt 5 6": `^5$`,
		`htpasswd "u" "p"`: `^u:\$2a\$10\$[./A-Za-z0-9]{53}$`, `lookup "v1" "Secret" "" "" | len`: `^0$`,
	} {
		var s struct{ Data struct{ V string } }
		if err := json.Unmarshal([]byte(bytesOf(t, mustRender(t, perRuntime(callChart(call), "u")), "s")), &s); err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(form).MatchString(s.Data.V) {
			t.Errorf("%s gives %q", call, s.Data.V)
		}
	}
	for _, call := range []string{"randInt 6 5", "randBytes 99999999", "randAlpha -1", `genPrivateKey "dsa"`, `htpasswd "a:b" "c"`} {
		_, err := New(Options{}).Render(context.Background(), perRuntime(callChart("("+call+")"), "u"))
		wantError(t, err, ErrTemplate, "s.yaml, line 6")
	}
}

func TestPinnedFunctions(t *testing.T) {
	t.Parallel()
	value := func(call string) string {
		var s struct{ Data struct{ V string } }
		b := mustRender(t, request(Chart, callChart(call)))
		if err := json.Unmarshal([]byte(bytesOf(t, b, "s")), &s); err != nil {
			t.Fatal(err)
		}
		return s.Data.V
	}
	for call, want := range map[string]string{
		`date "2006-01-02 15:04" 0`:      "1970-01-01 00:00",
		`htmlDate 86400`:                 "1970-01-02",
		`dateInZone "15:04" 0 "Nowhere"`: "00:00",
		`date "15:04" (toDate "2006-01-02 15:04" "2020-01-01 12:30")`: "12:30",
		`durationRound "2h10m"`:                                 "2h",
		`keys (dict "c" 1 "a" 2 "b" 3) (dict "z" 1) | join ","`: "a,b,c,z",
		`values (dict "c" 1 "a" 2 "b" 3) | join ","`:            "2,3,1",
	} {
		if got := value(call); got != want {
			t.Errorf("%s gives %q, want %q", call, got, want)
		}
	}
	for _, call := range []string{`(date "2006" "today")`, `(durationRound (toDate "2006" "2020"))`} {
		_, err := New(Options{}).Render(context.Background(), request(Chart, callChart(call)))
		wantError(t, err, ErrRandom, "s.yaml, line 6")
	}
	bad := base64.StdEncoding.EncodeToString([]byte("no PEM"))
	_, err := New(Options{}).Render(context.Background(), request(Chart, callChart(`(buildCustomCert "`+bad+`" "`+bad+`").Cert`)))
	wantError(t, err, ErrTemplate, "the certificate is not PEM")
}

func TestNotesMayDoAnything(t *testing.T) {
	t.Parallel()
	var notes strings.Builder
	for _, name := range slices.Sorted(maps.Keys(impureCalls)) {
		notes.WriteString("{{ " + impureCalls[name] + " }}\n")
	}
	b := mustRender(t, request(Chart, chartYAML+"-- templates/a.yaml --\n"+configMap("a")+"-- templates/NOTES.txt --\n"+notes.String()))
	if len(b.Objects) != 1 {
		t.Errorf("objects: %v", refs(b))
	}
	_, err := New(Options{}).Render(context.Background(), request(Chart,
		chartYAML+"-- templates/a.yaml --\n"+configMap("a")+"-- templates/NOTES.txt --\n{{ fail \"wrong values\" }}\n"))
	wantError(t, err, ErrTemplate, "demo/templates/NOTES.txt, line 1: wrong values")
}
