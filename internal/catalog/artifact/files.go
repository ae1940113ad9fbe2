package artifact

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// File is one regular file of a catalogue.
type File struct {
	// Path is relative to the catalogue's folder, slash-separated and clean.
	Path string
	// Data is the file's content. It must not be changed.
	Data []byte
}

// Files are all files of a catalogue, sorted by path.
type Files []File

// Bounds of a catalogue: of its files as they are, and of what a registry sends.
const (
	maxFiles  = 20_000
	maxBytes  = 256 << 20
	maxPacked = 64 << 20
)

// ErrTooLarge says that a catalogue is larger than any that is meant to be.
var ErrTooLarge = errors.New("the catalogue is too large")

// ErrUnsafe says that a catalogue reaches for what is not its own.
var ErrUnsafe = errors.New("the catalogue is unsafe")

// Read reads the files of a folder and of those below it. Links are refused; .git is left out.
func Read(dir string) (Files, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the catalogue: %w", err)
	}
	defer root.Close()
	var out Files
	left := int64(maxBytes)
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == ".git":
			return fs.SkipDir
		case e.IsDir():
			return nil
		case !e.Type().IsRegular():
			return fmt.Errorf("%w: %s is a link or no regular file: copy what it leads to", ErrUnsafe, name)
		}
		data, err := readFile(root, name, left)
		if left -= int64(len(data)); err == nil && (left < 0 || len(out) == maxFiles) {
			err = fmt.Errorf("%w: at most %d files and %d MiB", ErrTooLarge, maxFiles, maxBytes>>20)
		}
		out = append(out, File{name, data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading catalogue %s: %w", dir, err)
	}
	out.sort()
	return out, nil
}

func readFile(root *os.Root, name string, most int64) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// Write makes a folder, which must not exist or be empty, and writes the files into it.
func (f Files) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("writing the catalogue: %w", err)
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("writing the catalogue: %w", err)
	}
	if len(there) > 0 {
		return fmt.Errorf("writing the catalogue: folder %s is not empty: name one that does not exist yet", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("writing the catalogue: %w", err)
	}
	defer root.Close()
	for _, file := range f {
		if _, err := writeFile(root, file); err != nil {
			return fmt.Errorf("writing catalogue %s: %w", dir, err)
		}
	}
	return nil
}

// writeFile replaces a file, as a whole or not at all, and says whether it did: one that is the same is left alone.
func writeFile(root *os.Root, file File) (wrote bool, err error) {
	if there, err := readFile(root, file.Path, int64(len(file.Data))); err == nil && string(there) == string(file.Data) {
		return false, nil
	}
	if err := root.MkdirAll(path.Dir(file.Path), 0o750); err != nil {
		return false, err
	}
	part := file.Path + ".part"
	if err := root.WriteFile(part, file.Data, 0o600); err != nil {
		return false, err
	}
	return true, root.Rename(part, file.Path)
}

func (f Files) sort() {
	slices.SortFunc(f, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
}
