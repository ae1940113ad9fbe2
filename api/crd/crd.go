// Package crd holds the definitions of the custom resources, as controller-gen makes them from the types of api/v1beta2:
// what a control plane installs, and what `kubectl apply -f` takes.
//
// It imports the standard library only.
package crd

import (
	"bytes"
	"embed"
	"fmt"
)

// FS has one YAML file per definition, named <group>_<plural>.yaml.
//
//go:embed *.yaml
var FS embed.FS

// all are the files of FS; they are part of the program, so reading them cannot go wrong at run time.
var all = read()

// All returns the definitions as YAML, sorted by the plural of their kind. The caller may change what it gets.
func All() [][]byte {
	out := make([][]byte, len(all))
	for i, file := range all {
		out[i] = bytes.Clone(file)
	}
	return out
}

func read() [][]byte {
	entries, err := FS.ReadDir(".") // sorted by name
	if err != nil {
		panic(fmt.Errorf("reading the embedded definitions: %w", err))
	}
	files := make([][]byte, 0, len(entries))
	for _, entry := range entries {
		file, err := FS.ReadFile(entry.Name())
		if err != nil {
			panic(fmt.Errorf("reading the embedded definitions: %w", err))
		}
		files = append(files, file)
	}
	return files
}
