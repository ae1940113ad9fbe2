// Command unwrap makes the descriptions in CustomResourceDefinitions read well in `kubectl explain`: it joins the lines of
// each paragraph, so that they are wrapped to the reader's width and not to that of the Go comments which they come from,
// and drops the descriptions of list items, which are those of Go types: the list's own field is described already.
//
//	unwrap DIR
//
// It rewrites all YAML files in the folder. It may import a YAML parser and the standard library.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "error: use unwrap DIR")
		os.Exit(2)
	}
	files, err := filepath.Glob(filepath.Join(os.Args[1], "*.yaml"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no definitions in %s", os.Args[1])
	}
	for _, file := range files {
		err = errors.Join(err, rewrite(file))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// rewrite unwraps the descriptions of a file in place.
func rewrite(file string) error {
	in, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	out, err := unwrap(in)
	if err != nil {
		return fmt.Errorf("rewriting %s: %w", file, err)
	}
	return os.WriteFile(file, out, 0o644)
}

func unwrap(in []byte) ([]byte, error) {
	var document map[string]any
	if err := yaml.Unmarshal(in, &document); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	walk(document)
	out, err := yaml.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	return append([]byte("---\n"), out...), nil
}

// walk goes through every schema of a decoded document. A property that is called description or items is known from a
// keyword by what it is next to.
func walk(node any) {
	switch node := node.(type) {
	case map[string]any:
		if text, ok := node["description"].(string); ok {
			node["description"] = join(text)
		}
		if items, ok := node["items"].(map[string]any); ok && node["type"] == "array" {
			delete(items, "description")
		}
		for _, value := range node {
			walk(value)
		}
	case []any:
		for _, value := range node {
			walk(value)
		}
	}
}

// join puts each paragraph on one line. Blank lines end paragraphs.
func join(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.Join(paragraphs, "\n\n")
}
