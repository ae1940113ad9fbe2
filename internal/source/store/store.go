// Package store keeps what was downloaded in a folder on disk, by its digest.
//
// # Invariants
//
// Several processes may share a folder: a file appears by rename, whole or not at all, and nobody ever changes one. What
// is read is compared with its digest each time; what does not match (a torn write, a bad disk, a curious person) is
// dropped and is as if it had never been there. The folder is bounded: what was used least recently leaves first.
//
// # Trade-offs
//
// It is a cache: when it cannot be read or written it is silent, and everything is downloaded as if there were none.
// There is no lock. Two processes that make room at the same time remove the same files, the oldest.
//
// The package may import the standard library only.
package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Store is a folder of content. A nil Store is empty and keeps nothing. It is safe for concurrent use, also by several
// processes.
type Store struct {
	dir string
	max int64
}

// New is the store in a folder, which is made when something is kept, of at most maxBytes.
func New(dir string, maxBytes int64) *Store { return &Store{dir: dir, max: maxBytes} }

// The folders in a store.
const (
	blobs     = "blobs"
	names     = "names"
	temporary = "tmp"
)

// leftover is the age of a temporary file of a process that must have been killed.
const leftover = time.Hour

// Get returns the content with a digest ("sha256:<hex>"). The caller must not change it.
func (s *Store) Get(digest string) ([]byte, bool) {
	file, ok := s.blob(digest)
	if !ok {
		return nil, false
	}
	data, ok := s.read(file)
	if ok && Digest(data) != digest {
		_ = os.Remove(file)
		return nil, false
	}
	return data, ok
}

// Put keeps content, if there is room for it, and returns its digest.
func (s *Store) Put(data []byte) string {
	digest := Digest(data)
	file, ok := s.blob(digest)
	if !ok || int64(len(data)) > s.max {
		return digest
	}
	if _, err := os.Stat(file); err == nil && s.intact(file, digest) {
		return digest
	}
	s.write(file, data)
	s.shrink()
	return digest
}

// intact says whether a file is what its name says.
func (s *Store) intact(file, digest string) bool {
	data, ok := s.read(file)
	return ok && Digest(data) == digest
}

// named is what a name leads to.
type named struct {
	Digest string `json:"digest"`
	Note   string `json:"note,omitempty"`
}

// Name remembers that a key (any text) leads to content that was Put, with a note of the caller's.
func (s *Store) Name(key, digest, note string) {
	if s == nil {
		return
	}
	payload, err := json.Marshal(named{Digest: digest, Note: note})
	if err != nil {
		return
	}
	s.write(s.nameOf(key), append([]byte(Digest(payload)+"\n"), payload...))
}

// Find returns the content that a key leads to, and the note.
func (s *Store) Find(key string) (data []byte, note string, ok bool) {
	if s == nil {
		return nil, "", false
	}
	file := s.nameOf(key)
	record, ok := s.read(file)
	if !ok {
		return nil, "", false
	}
	digest, payload, _ := bytes.Cut(record, []byte("\n"))
	var n named
	if string(digest) != Digest(payload) || json.Unmarshal(payload, &n) != nil {
		_ = os.Remove(file)
		return nil, "", false
	}
	data, ok = s.Get(n.Digest)
	return data, n.Note, ok
}

// Digest is "sha256:" and the SHA-256 of data in hex.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// blob is the file of a digest; there is none for what is no digest.
func (s *Store) blob(digest string) (string, bool) {
	digits, ok := strings.CutPrefix(digest, "sha256:")
	if s == nil || !ok || len(digits) != 64 || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", false
	}
	return filepath.Join(s.dir, blobs, digits), true
}

// nameOf is the file of a key.
func (s *Store) nameOf(key string) string {
	return filepath.Join(s.dir, names, strings.TrimPrefix(Digest([]byte(key)), "sha256:"))
}

// read reads a file and marks it as used.
func (s *Store) read(file string) ([]byte, bool) {
	f, err := os.Open(file)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > s.max {
		return nil, false
	}
	data, err := io.ReadAll(io.LimitReader(f, info.Size()))
	if err != nil {
		return nil, false
	}
	now := time.Now()
	_ = os.Chtimes(file, now, now)
	return data, true
}

// write makes a file appear with its whole content, or not at all.
func (s *Store) write(file string, data []byte) {
	for _, dir := range []string{filepath.Join(s.dir, temporary), filepath.Dir(file)} {
		if os.MkdirAll(dir, 0o700) != nil {
			return
		}
	}
	f, err := os.CreateTemp(filepath.Join(s.dir, temporary), "")
	if err != nil {
		return
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err != nil || cerr != nil || os.Rename(f.Name(), file) != nil {
		_ = os.Remove(f.Name())
	}
}

// aged is a file and when it was used.
type aged struct {
	path string
	size int64
	used time.Time
}

// shrink removes what was used least recently until there is room, and what killed processes left behind.
func (s *Store) shrink() {
	for _, f := range s.list(temporary) {
		if time.Since(f.used) > leftover {
			_ = os.Remove(f.path)
		}
	}
	files := append(s.list(blobs), s.list(names)...)
	total := int64(0)
	for _, f := range files {
		total += f.size
	}
	slices.SortFunc(files, func(a, b aged) int { return cmp.Or(a.used.Compare(b.used), strings.Compare(a.path, b.path)) })
	for _, f := range files {
		if total <= s.max {
			return
		}
		_ = os.Remove(f.path)
		total -= f.size
	}
}

// list is what is in a folder now.
func (s *Store) list(folder string) []aged {
	entries, err := os.ReadDir(filepath.Join(s.dir, folder))
	if err != nil {
		return nil
	}
	files := make([]aged, 0, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode()&fs.ModeType != 0 {
			continue // it has just gone, or is not ours
		}
		files = append(files, aged{filepath.Join(s.dir, folder, e.Name()), info.Size(), info.ModTime()})
	}
	return files
}
