package source

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	gitmemory "github.com/go-git/go-git/v5/storage/memory"
)

// gitObjects are the objects of a pack. Each was hashed as it was read, so what is found by a hash has that hash.
type gitObjects struct{ storage *gitmemory.Storage }

// How much a pack may unpack to, in multiples of the limits: the folder that is wanted is only a part of it.
const (
	packBytes   = 4
	packObjects = 20
)

// readPack unpacks a pack, after it was weighed: the library bounds an object by the size that it declares itself.
func readPack(data []byte, limits Limits) (_ *gitObjects, err error) {
	defer func() {
		if recover() != nil { // the library is not ours, and what it reads is hostile
			err = refuse(ErrInvalid, "", "pack is malformed")
		}
	}()
	if err := weigh(data, limits); err != nil {
		return nil, err
	}
	storage := gitmemory.NewStorage()
	parser, err := packfile.NewParserWithStorage(packfile.NewScanner(bytes.NewReader(data)), storage)
	if err == nil {
		_, err = parser.Parse()
	}
	if err != nil {
		return nil, malformedPack(err)
	}
	return &gitObjects{storage}, nil
}

func malformedPack(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Problem: "pack is malformed", Reason: ErrInvalid, Err: shortened(err)}
}

// weigh adds up what the objects of a pack will take, without keeping them.
func weigh(data []byte, limits Limits) error {
	s := packfile.NewScanner(bytes.NewReader(data))
	_, count, err := s.Header()
	if err != nil {
		return malformedPack(err)
	}
	if int64(count) > int64(limits.Files)*packObjects {
		return refuse(ErrTooLarge, "", "commit has more than %d objects", limits.Files*packObjects)
	}
	left := limits.Bytes * packBytes
	for range count {
		size, err := objectSize(s)
		if err != nil {
			return malformedPack(err)
		}
		if size < 0 || size > limits.Bytes || size > left {
			return refuse(ErrTooLarge, "", "commit unpacks to more than the limit of %d bytes", limits.Bytes*packBytes)
		}
		left -= size
	}
	return nil
}

// objectSize is the size of the next object: its own, or that of what a delta makes, whichever is larger.
func objectSize(s *packfile.Scanner) (int64, error) {
	h, err := s.NextObjectHeader()
	if err != nil {
		return 0, err
	}
	start := &limited{most: 20}
	if _, _, err := s.NextObject(start); err != nil {
		return 0, err
	}
	if !h.Type.IsDelta() {
		return h.Length, nil
	}
	_, rest := varint(start.data)
	made, _ := varint(rest)
	return max(h.Length, made), nil
}

// varint reads a number as deltas begin with two of (gitformat-pack); one that is too large is negative.
func varint(data []byte) (int64, []byte) {
	n := int64(0)
	for i, b := range data {
		if i > 8 {
			return -1, nil
		}
		n |= int64(b&0x7f) << (7 * i)
		if b&0x80 == 0 {
			return n, data[i+1:]
		}
	}
	return -1, nil
}

// get reads an object of a type.
func (o *gitObjects) get(kind plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	obj, err := o.storage.EncodedObject(kind, h)
	if err != nil {
		return nil, refuse(ErrInvalid, "", "server left out %s %s", kind, h)
	}
	r, err := obj.Reader()
	if err != nil {
		return nil, malformedPack(err)
	}
	defer r.Close()
	return io.ReadAll(r)
}

// maxTags bounds how many tags may lead to each other.
const maxTags = 5

// peel follows tags to a commit, and the commit to its tree.
func (o *gitObjects) peel(h plumbing.Hash) (commit, tree plumbing.Hash, err error) {
	for range maxTags {
		data, err := o.get(plumbing.TagObject, h)
		if err != nil {
			break
		}
		if h, err = header(data, "object"); err != nil {
			return commit, tree, err
		}
	}
	data, err := o.get(plumbing.CommitObject, h)
	if err != nil {
		return commit, tree, err
	}
	tree, err = header(data, "tree")
	return h, tree, err
}

// header reads the hash that an object begins with, after a name.
func header(data []byte, name string) (plumbing.Hash, error) {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	digits, ok := bytes.CutPrefix(line, []byte(name+" "))
	if !ok || !isCommit(string(digits)) {
		return plumbing.ZeroHash, refuse(ErrInvalid, "", "repository has a malformed object")
	}
	return plumbing.NewHash(string(digits)), nil
}

// gitEntry is one entry of a folder.
type gitEntry struct {
	name, mode string
	hash       plumbing.Hash
}

// The modes of entries.
const (
	modeFolder    = "40000"
	modeLink      = "120000"
	modeSubmodule = "160000"
)

// entries of a folder: mode, space, name, zero, 20 bytes of hash.
func (o *gitObjects) entries(h plumbing.Hash) ([]gitEntry, error) {
	data, err := o.get(plumbing.TreeObject, h)
	if err != nil {
		return nil, err
	}
	var all []gitEntry
	for len(data) > 0 {
		mode, rest, ok := bytes.Cut(data, []byte(" "))
		name, rest, ok2 := bytes.Cut(rest, []byte{0})
		if !ok || !ok2 || len(rest) < 20 || len(name) == 0 || bytes.ContainsRune(name, '/') {
			return nil, refuse(ErrInvalid, "", "repository has a malformed folder")
		}
		e := gitEntry{name: string(name), mode: string(bytes.TrimLeft(mode, "0"))}
		copy(e.hash[:], rest)
		all, data = append(all, e), rest[20:]
	}
	return all, nil
}

// packTree makes a tar archive of files, the same for the same files.
func packTree(files []File) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Mode: 0o644, Size: int64(len(f.Data)), Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// done ends with the context.
func done(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
