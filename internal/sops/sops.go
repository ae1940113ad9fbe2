// Package sops reads files of values that SOPS has encrypted for age keys.
//
// # Overview
//
// SOPS keeps the keys of a YAML or JSON document in clear and encrypts its values, each by AES-GCM under one data key and bound to
// its place; the data key is encrypted for each recipient, and a MAC over all values in their order shows what was added, removed
// or moved. The format is small and has not changed for years, so it is read here: the library of SOPS itself brings the clients
// of five clouds with it, which this program would carry for nothing. What it writes is what the tests read: testdata was made by
// the real program.
//
// # Invariants
//
//   - Nothing is returned of a file whose MAC does not fit.
//   - No value and no key is in any error; the names of fields, which SOPS keeps in clear, may be.
//   - A file is hostile until its MAC is verified: its size, nesting and numbers are bounded, and nothing is fetched or run.
//
// # Trade-offs
//
// Only age is known: no PGP, no key service of a cloud, no key groups (Shamir). Selectors by comment (unencrypted_comment_regex,
// encrypted_comment_regex) are refused. Comments are not kept.
//
// The package may import filippo.io/age and a YAML parser; it knows nothing of values' meaning, files or clusters.
package sops

import (
	"bytes"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// The kinds of failure, for errors.Is.
var (
	// ErrKey says that no key at hand opens the file.
	ErrKey = errors.New("no key at hand opens it")
	// ErrChanged says that the file is not as it was encrypted.
	ErrChanged = errors.New("it was changed after it was encrypted")
	// ErrFormat says that the file is not one of SOPS, or uses what is not supported.
	ErrFormat = errors.New("it is not a file that can be decrypted here")
)

// Bounds of a file.
const (
	maxBytes = 8 << 20
	maxDepth = 100
)

// metadataKey is the key under which SOPS keeps what it needs.
const metadataKey = "sops"

// Encrypted says whether a YAML or JSON document is one that SOPS has encrypted. What cannot be read is not.
func Encrypted(data []byte) bool {
	if len(data) > maxBytes || !bytes.Contains(data, []byte(metadataKey)) || !bytes.Contains(data, []byte("mac")) {
		return false
	}
	root, err := parse(data)
	if err != nil {
		return false
	}
	meta := lookup(root, metadataKey)
	return meta != nil && lookup(meta, "mac") != nil
}

// Decrypt returns a document that SOPS has encrypted as JSON, without what SOPS added. Errors are ErrKey, ErrChanged or ErrFormat.
// A nil *Keys has no keys.
func (k *Keys) Decrypt(data []byte) ([]byte, error) {
	root, err := parse(data)
	if err != nil {
		return nil, err
	}
	meta, err := readMetadata(root)
	if err != nil {
		return nil, err
	}
	key, err := k.dataKey(meta.Age)
	if err != nil {
		return nil, err
	}
	return meta.decrypt(root, key)
}

// parse reads one document with a map at its top.
func parse(data []byte) (*yaml.Node, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%w: it has more than %d MiB", ErrFormat, maxBytes>>20)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%w: it is not YAML or JSON with a map at its top", ErrFormat)
	}
	if dec.Decode(&more) == nil {
		return nil, fmt.Errorf("%w: it has several documents", ErrFormat)
	}
	return doc.Content[0], nil
}

// lookup is the value of a key of a map, or nil.
func lookup(m *yaml.Node, key string) *yaml.Node {
	for i := 0; m.Kind == yaml.MappingNode && i+1 < len(m.Content); i += 2 {
		if m.Content[i].Kind == yaml.ScalarNode && m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}
