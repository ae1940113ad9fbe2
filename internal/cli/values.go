package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kyma-project/mothership/internal/render"
)

// maxValues bounds a file of values. Helm's own releases, which hold theirs, must fit into 1 MiB.
const maxValues = 8 << 20

// valueFlags are the flags by which values are given, as Helm's. Later ones win; files come before sets.
type valueFlags struct {
	files, sets, strings, fromFiles, json, literals []string
}

func (v *valueFlags) addTo(fs *pflag.FlagSet) {
	fs.StringArrayVar(&v.files, "values", nil, "a YAML `FILE` of values for a chart, maybe encrypted by SOPS; repeatable, later ones win")
	fs.StringArrayVar(&v.sets, "set", nil, "a value: `KEY=VALUE`; repeatable")
	fs.StringArrayVar(&v.strings, "set-string", nil, "a value that is a string: `KEY=VALUE`; repeatable")
	fs.StringArrayVar(&v.fromFiles, "set-file", nil, "a value that is a file's content: `KEY=FILE`; repeatable")
	fs.StringArrayVar(&v.json, "set-json", nil, "a value in JSON: `KEY=JSON`; repeatable")
	fs.StringArrayVar(&v.literals, "set-literal", nil, "a string taken as it is: `KEY=VALUE`; repeatable")
}

func (v *valueFlags) any() bool {
	return len(v.files)+len(v.sets)+len(v.strings)+len(v.fromFiles)+len(v.json)+len(v.literals) > 0
}

// merge reads the files, which open opens, and lays the values over each other. A set that cannot be understood is a usage error, a file
// that cannot is not.
func (v *valueFlags) merge(cmd *cobra.Command, open opener) (map[string]any, error) {
	var files []render.NamedBytes
	for _, name := range v.files {
		if name == "-" {
			return nil, usage(cmd, "--values -: values are not read from stdin; write them to a file, or use --set")
		}
		data, err := readFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading values: %w", err)
		}
		if data, err = open(name, data); err != nil {
			return nil, err
		}
		files = append(files, render.NamedBytes{Name: name, Data: data})
	}
	var unreadable error
	sets := render.Sets{JSON: v.json, Values: v.sets, Strings: v.strings, Files: v.fromFiles, Literals: v.literals}
	sets.ReadFile = func(name string) (data []byte, err error) {
		data, err = readFile(name)
		unreadable = errors.Join(unreadable, err)
		return data, err
	}
	values, err := render.MergeValues(files, sets)
	if err == nil {
		return values, nil
	}
	if unreadable != nil {
		return nil, fmt.Errorf("reading values: %w", unreadable)
	}
	if _, err := render.MergeValues(files, render.Sets{}); err != nil {
		return nil, err
	}
	return nil, usage(cmd, "%v", err)
}

// readFile reads a small regular file. Its errors name the file and hold nothing of it.
func readFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return nil, errors.Join(err, &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR})
	}
	data, err := io.ReadAll(io.LimitReader(f, maxValues+1))
	if err == nil && len(data) > maxValues {
		err = fmt.Errorf("%s: is larger than %d MiB", name, maxValues>>20)
	}
	return data, err
}
