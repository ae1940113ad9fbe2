package main

import (
	"fmt"
	"strings"
)

const head = `<!-- Written by hack/reference from api: run make generate after a change of the types. -->

# Reference

The custom resources of API group ` + "`operator.kyma-project.io/v1beta2`" + `, and the names that Mothership uses. All kinds are namespaced and in the
category ` + "`mothership`" + `, so ` + "`kubectl get mothership`" + ` lists them. ` + "`kubectl explain`" + ` says the same as the tables.
`

const ignoredHead = `
## Ignored fields

Kyma and ModuleReleaseMeta objects that were written for Kyma's lifecycle-manager can be applied as they are. These fields of
theirs are accepted, kept and not acted on. A status that another operator wrote is not taken over: leave it out, as
` + "`kubectl apply`" + ` refuses fields that the status of ours does not have.

`

func render(kinds []kind, groups []group) string {
	var b strings.Builder
	b.WriteString(head)
	for _, k := range kinds {
		renderKind(&b, k)
	}
	b.WriteString(ignoredHead)
	for _, k := range kinds {
		for _, f := range k.fields {
			if f.ignored {
				fmt.Fprintf(&b, "- %s `%s`\n", k.name, f.path)
			}
		}
	}
	renderNames(&b, groups)
	return b.String()
}

func renderKind(b *strings.Builder, k kind) {
	fmt.Fprintf(b, "\n## %s\n\n%s Short name: `%s`. Columns: %s.\n\n", k.name, k.description,
		strings.Join(k.shortNames, "`, `"), strings.Join(k.columns, ", "))
	b.WriteString("| field | type | meaning |\n|---|---|---|\n")
	for _, f := range k.fields {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.path, f.typ, f.text)
	}
	if len(k.rules) == 0 {
		return
	}
	b.WriteString("\nRefused by the API server, besides wrong types and patterns:\n\n")
	for _, r := range k.rules {
		fmt.Fprintf(b, "- `%s`: %s\n", r.path, r.message)
	}
}

// renderNames writes a section per group, and one of all constants that stand alone.
func renderNames(b *strings.Builder, groups []group) {
	var alone []constant
	for _, g := range groups {
		if g.title == "" {
			alone = append(alone, g.constants...)
			continue
		}
		fmt.Fprintf(b, "\n## %s\n\n", g.title)
		renderConstants(b, g.constants)
	}
	b.WriteString("\n## Other names\n\n")
	renderConstants(b, alone)
}

func renderConstants(b *strings.Builder, constants []constant) {
	for _, c := range constants {
		fmt.Fprintf(b, "- `%s`%s\n", c.value, c.text)
	}
}
