// Command reference writes docs/reference.md: the fields of the custom resources from their definitions in api/crd, and the
// names that Mothership uses from the constants of api/v1beta2.
//
//	reference ROOT
//
// ROOT is the folder of the repository. It may import the definitions, a YAML parser and the standard library.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kyma-project/mothership/api/crd"
)

//go:generate go run . ../..

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "error: use reference ROOT")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	text, err := page(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "docs", "reference.md"), []byte(text), 0o644)
}

// page is the whole reference.
func page(root string) (string, error) {
	kinds, err := decode(crd.All())
	if err != nil {
		return "", err
	}
	groups, err := constants(filepath.Join(root, "api", "v1beta2"))
	if err != nil {
		return "", err
	}
	return render(kinds, groups), nil
}
