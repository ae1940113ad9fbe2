package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// group is one declaration of constants: what they are, and each with its value.
type group struct {
	title     string // empty for a constant that stands alone
	constants []constant
}

type constant struct{ name, value, text string }

// constants reads the string constants of a package, in the order of its files and their declarations.
func constants(dir string) ([]group, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	var decls []*ast.GenDecl
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".go" || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("reading constants: %w", err)
		}
		for _, d := range file.Decls {
			if decl, ok := d.(*ast.GenDecl); ok && decl.Tok == token.CONST {
				decls = append(decls, decl)
			}
		}
	}
	values := evaluate(decls)
	groups := make([]group, 0, len(decls))
	for _, decl := range decls {
		groups = append(groups, groupOf(decl, values))
	}
	return groups, nil
}

// evaluate finds the values of all string constants. Those that are made of others come in a later round.
func evaluate(decls []*ast.GenDecl) map[string]string {
	values := map[string]string{}
	for before := -1; before < len(values); {
		before = len(values)
		for _, decl := range decls {
			for _, spec := range decl.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && len(v.Values) == 1 {
					if value, known := text(v.Values[0], values); known {
						values[v.Names[0].Name] = value
					}
				}
			}
		}
	}
	return values
}

// text is the value of an expression of string literals, constants and "+".
func text(e ast.Expr, values map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		s, ok := values[e.Name]
		return s, ok
	case *ast.BinaryExpr:
		x, knownX := text(e.X, values)
		y, knownY := text(e.Y, values)
		return x + y, knownX && knownY && e.Op == token.ADD
	}
	return "", false
}

func groupOf(decl *ast.GenDecl, values map[string]string) group {
	var g group
	if decl.Lparen.IsValid() {
		g.title, _, _ = strings.Cut(line(decl.Doc.Text()), ".")
	}
	for _, spec := range decl.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		doc := v.Doc
		if !decl.Lparen.IsValid() {
			doc = decl.Doc
		}
		name := v.Names[0].Name
		if value, known := values[name]; known && v.Names[0].IsExported() {
			g.constants = append(g.constants, constant{name, value, describe(name, doc.Text(), values)})
		}
	}
	return g
}

var identifier = regexp.MustCompile(`\b[A-Z][A-Za-z]+\b`)

// describe is a constant's comment without its Go name, and with the values of the constants that it mentions.
func describe(name, doc string, values map[string]string) string {
	doc = strings.TrimPrefix(line(doc), name)
	return identifier.ReplaceAllStringFunc(doc, func(word string) string {
		if value, ok := values[word]; ok && word != "Group" {
			return "`" + value + "`"
		}
		return word
	})
}
