package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// kind is what the reference says of one custom resource.
type kind struct {
	name, description string
	shortNames        []string
	columns           []string
	fields            []field
	rules             []rule
}

// field is one line: a path from the object's root, and what it means.
type field struct {
	path, typ, text string
	ignored         bool
}

// rule is what the API server says to an object that breaks it.
type rule struct{ path, message string }

// definition is what is read of a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Names struct {
			Kind       string   `json:"kind"`
			ShortNames []string `json:"shortNames"`
		} `json:"names"`
		Versions []struct {
			Columns []struct {
				Name string `json:"name"`
			} `json:"additionalPrinterColumns"`
			Schema struct {
				Root schema `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

type schema struct {
	Type        string            `json:"type"`
	Description string            `json:"description"`
	Format      string            `json:"format"`
	Default     any               `json:"default"`
	Enum        []string          `json:"enum"`
	Required    []string          `json:"required"`
	MaxItems    int               `json:"maxItems"`
	Properties  map[string]schema `json:"properties"`
	Items       *schema           `json:"items"`
	Rules       []struct {
		Message string `json:"message"`
	} `json:"x-kubernetes-validations"`
}

// standard are types of Kubernetes itself, which its own documentation describes.
var standard = []string{"conditions", "kymaSelector"}

func decode(files [][]byte) ([]kind, error) {
	kinds := make([]kind, 0, len(files))
	for _, file := range files {
		var d definition
		if err := yaml.Unmarshal(file, &d); err != nil {
			return nil, fmt.Errorf("decoding a definition: %w", err)
		}
		for _, version := range d.Spec.Versions {
			root := version.Schema.Root
			k := kind{name: d.Spec.Names.Kind, description: line(root.Description), shortNames: d.Spec.Names.ShortNames}
			for _, c := range version.Columns {
				k.columns = append(k.columns, c.Name)
			}
			k.collect("", root, "spec", "status")
			k.fields = slices.DeleteFunc(k.fields, func(f field) bool { return f.path == "spec" || f.path == "status" })
			kinds = append(kinds, k)
		}
	}
	return kinds, nil
}

// collect adds the fields below a schema, those of a level by name, and the rules; only the named fields where names are given.
func (k *kind) collect(path string, s schema, only ...string) {
	for _, r := range s.Rules {
		k.rules = append(k.rules, rule{path: cmp.Or(path, "the object"), message: line(r.Message)})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		k.add(strings.TrimPrefix(path+"."+name, "."), name, s.Properties[name], slices.Contains(s.Required, name))
	}
}

func (k *kind) add(path, name string, s schema, required bool) {
	f := field{path: path, typ: typeOf(s), text: line(s.Description), ignored: strings.Contains(s.Description, " accepted and ignored")}
	if required {
		f.text += " Required."
	}
	if s.Default != nil && !strings.Contains(s.Description, " Default: ") {
		f.text += fmt.Sprintf(" Default: `%v`.", s.Default)
	}
	if s.MaxItems > 0 {
		f.text += fmt.Sprintf(" At most %d.", s.MaxItems)
	}
	k.fields = append(k.fields, f)
	switch {
	case slices.Contains(standard, name):
	case s.Items != nil:
		k.collect(path+"[]", *s.Items)
	default:
		k.collect(path, s)
	}
}

func typeOf(s schema) string {
	switch {
	case s.Items != nil:
		return "list of " + typeOf(*s.Items)
	case len(s.Enum) > 0:
		return "`" + strings.Join(s.Enum, "` `") + "`"
	case s.Format == "date-time":
		return "time"
	}
	return s.Type
}

// special are characters that mean something in Markdown.
var special = strings.NewReplacer("|", `\|`, "<", `\<`)

// line puts a text on one line of a table.
func line(s string) string { return special.Replace(strings.Join(strings.Fields(s), " ")) }
