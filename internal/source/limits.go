package source

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits bound what a source may hold. A field that is zero or less means its default.
type Limits struct {
	// Bytes of the whole unpacked source; for an archive also of its stream, headers and padding included. Default
	// 64 MiB.
	Bytes int64
	// FileBytes of one file. Default 16 MiB.
	FileBytes int64
	// Files is the number of entries, folders included. Default 10,000.
	Files int
	// Download is the number of bytes that are read from a server, from standard input or from an archive on disk,
	// before unpacking. Default 32 MiB.
	Download int64
	// PathLength is the length of an entry's path in bytes. Default 1,024.
	PathLength int
	// Depth is how many folders may be inside of each other. Default 32.
	Depth int
}

// withDefaults fills in what is not set.
func (l Limits) withDefaults() Limits {
	l.Bytes = orDefault(l.Bytes, 64<<20)
	l.FileBytes = orDefault(l.FileBytes, 16<<20)
	l.Files = orDefault(l.Files, 10_000)
	l.Download = orDefault(l.Download, 32<<20)
	l.PathLength = orDefault(l.PathLength, 1024)
	l.Depth = orDefault(l.Depth, 32)
	return l
}

func orDefault[N int | int64](n, fallback N) N {
	if n > 0 {
		return n
	}
	return fallback
}

// Check says whether a tree keeps the promises of Fetcher within the limits: files sorted by clean paths, each path
// once, bounded, a well-formed digest, and a root that holds at least one file. It does not recompute the digest.
func (l Limits) Check(t *Tree) error {
	l = l.withDefaults()
	if t == nil || len(t.Files) == 0 {
		return refuse(ErrInvalid, "", "holds no files")
	}
	if err := checkDigest(t.Digest); err != nil {
		return err
	}
	b := budget{limits: l}
	for i, f := range t.Files {
		name, err := l.cleanName(f.Path)
		if err != nil {
			return err
		}
		if name != f.Path || i > 0 && t.Files[i-1].Path >= f.Path {
			return refuse(ErrInvalid, f.Path, "is not sorted, not unique or not clean")
		}
		if err := b.entry(); err != nil {
			return err
		}
		if err := b.content(f.Path, int64(len(f.Data))); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(t.Files, func(f File) bool { return under(t.Root, f.Path) }) {
		return refuse(ErrNotFound, t.Root, "is not in the source")
	}
	return nil
}

// cleanName checks the name of an entry as somebody else wrote it and returns its clean form; "." is the top folder.
func (l Limits) cleanName(raw string) (string, error) {
	switch {
	case raw == "":
		return "", refuse(ErrUnsafe, "(nameless)", "has no name: refused")
	case len(raw) > l.PathLength:
		return "", refuse(ErrTooLarge, raw, "has a path of %d bytes, the limit is %d", len(raw), l.PathLength)
	case !utf8.ValidString(raw):
		return "", refuse(ErrUnsafe, raw, "has a name that is not UTF-8: refused")
	case strings.ContainsFunc(raw, isControl):
		return "", refuse(ErrUnsafe, raw, "has a control character in its name: refused")
	case strings.Contains(raw, `\`):
		return "", refuse(ErrUnsafe, raw, "has a backslash in its name: refused")
	case strings.HasPrefix(raw, "/"):
		return "", refuse(ErrUnsafe, raw, "is absolute: refused")
	case hasDrive(raw):
		return "", refuse(ErrUnsafe, raw, "names a drive: refused")
	case slices.Contains(strings.Split(raw, "/"), ".."):
		return "", refuse(ErrUnsafe, raw, "leaves the archive: refused")
	}
	name := path.Clean(raw)
	if strings.Count(name, "/") >= l.Depth {
		return "", refuse(ErrTooLarge, raw, "is more than %d folders deep", l.Depth)
	}
	return name, nil
}

// isControl says whether a character moves terminals or ends lines.
func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// hasDrive says whether a name begins like "C:", which some systems take for a place of its own.
func hasDrive(name string) bool {
	return len(name) >= 2 && name[1] == ':' && (name[0]|0x20) >= 'a' && (name[0]|0x20) <= 'z'
}

// under says whether a file is in a folder; "." is the top.
func under(folder, file string) bool {
	return folder == "." || strings.HasPrefix(file, folder+"/")
}

// budget counts what a source has used of its limits. It is not safe for concurrent use.
type budget struct {
	limits  Limits
	bytes   int64
	entries int
}

// entry counts one entry.
func (b *budget) entry() error {
	b.entries++
	if b.entries > b.limits.Files {
		return refuse(ErrTooLarge, "", "holds more than %d entries", b.limits.Files)
	}
	return nil
}

// content counts the bytes of a file before they are kept.
func (b *budget) content(name string, size int64) error {
	if size < 0 {
		return refuse(ErrInvalid, name, "has a negative size")
	}
	if size > b.limits.FileBytes {
		return refuse(ErrTooLarge, name, "is larger than the limit of %d bytes", b.limits.FileBytes)
	}
	if size > b.limits.Bytes-b.bytes {
		return tooManyBytes(b.limits.Bytes)
	}
	b.bytes += size
	return nil
}

func tooManyBytes(limit int64) error {
	return refuse(ErrTooLarge, "", "unpacks to more than the limit of %d bytes", limit)
}
