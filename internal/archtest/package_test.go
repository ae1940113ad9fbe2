package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	for _, module := range modules {
		for _, p := range list(t, module, "./...") {
			want := "Package " + p.Name + " "
			if p.Name == "main" {
				want = "Command "
			}
			if !strings.HasPrefix(p.Doc, want) {
				t.Errorf("package %s: its doc comment begins with %q, want %q: say what it is for and what it may import", p.ImportPath, firstWords(p.Doc), want)
			}
		}
	}
}

func firstWords(s string) string {
	return strings.Join(strings.Fields(s)[:min(3, len(strings.Fields(s)))], " ")
}

// maxLines is where a file has outgrown its readers.
const maxLines = 500

// longFiles may be longer, for the reason given.
var longFiles = map[string]string{}

func TestNoFileOutgrowsItsReaders(t *testing.T) {
	t.Parallel()
	walk(t, ".go", func(path string, content []byte) {
		lines := bytes.Count(content, []byte("\n"))
		if lines <= maxLines || longFiles[path] != "" || isGenerated(content) {
			return
		}
		t.Errorf("%s has %d lines, more than %d: cut it where a reader would, or give the reason in longFiles", path, lines, maxLines)
	})
}

// isGenerated looks for the line that the Go project defines for generated files.
func isGenerated(content []byte) bool {
	for line := range bytes.Lines(content) {
		line = bytes.TrimSpace(line)
		if bytes.HasPrefix(line, []byte("// Code generated ")) && bytes.HasSuffix(line, []byte(" DO NOT EDIT.")) {
			return true
		}
		if bytes.HasPrefix(line, []byte("package ")) {
			return false
		}
	}
	return false
}

// forbidden are calls that have a better way, and what that is.
var forbidden = map[string]string{
	"time.Sleep": "wait for the event itself, or for a timer beside ctx.Done()",
	"t.Skip":     "a test that cannot run fails and says what is missing",
	"t.Skipf":    "a test that cannot run fails and says what is missing",
	"t.SkipNow":  "a test that cannot run fails and says what is missing",
}

// forbiddenButHere are the files that may do it nevertheless: path and call, and the reason.
var forbiddenButHere = map[string]string{}

func TestNobodySleepsOrSkips(t *testing.T) {
	t.Parallel()
	walk(t, ".go", func(path string, content []byte) {
		file, err := parser.ParseFile(token.NewFileSet(), path, content, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := callee(call)
			if name == "synctest.Test" {
				return false // time is virtual in there
			}
			if why, ok := forbidden[name]; ok && forbiddenButHere[path+" "+name] == "" {
				t.Errorf("%s calls %s: %s", path, name, why)
			}
			return true
		})
	})
}

// callee is the name of a function called as package.Function or variable.Method, or "".
func callee(call *ast.CallExpr) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return x.Name + "." + sel.Sel.Name
}
