package sops

import (
	"bytes"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// onlyEncrypted begins the MAC of files with mac_only_encrypted, so that it is another than without.
var onlyEncrypted = []byte{
	0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b,
	0x0b, 0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
}

// decrypter writes a document in clear, and what its MAC must be.
type decrypter struct {
	m   *metadata
	key []byte
	mac hash.Hash
	out bytes.Buffer
}

// decrypt returns the document as JSON, if its MAC fits.
func (m *metadata) decrypt(root *yaml.Node, key []byte) ([]byte, error) {
	d := &decrypter{m: m, key: key, mac: sha512.New()}
	if m.MACOnlyEncrypted {
		d.mac.Write(onlyEncrypted)
	}
	if err := d.mapping(root, nil); err != nil {
		return nil, err
	}
	want, err := open(key, m.MAC, m.modified.Format(time.RFC3339))
	if err != nil {
		return nil, fmt.Errorf("%w: sops.mac does not belong to it", ErrChanged)
	}
	text, _ := want.(string)
	if subtle.ConstantTimeCompare([]byte(text), fmt.Appendf(nil, "%X", d.mac.Sum(nil))) != 1 {
		return nil, fmt.Errorf("%w: something was added, removed or moved (its MAC differs)", ErrChanged)
	}
	return d.out.Bytes(), nil
}

// at makes an error about the value at a path.
func at(path []string, kind error, problem string) error {
	return fmt.Errorf("%w: %.200q: %s", kind, strings.Join(path, "."), problem)
}

func (d *decrypter) value(n *yaml.Node, path []string, depth int) error {
	if depth > maxDepth {
		return at(path, ErrFormat, fmt.Sprintf("it is nested in more than %d levels", maxDepth))
	}
	switch n.Kind {
	case yaml.MappingNode:
		return d.mappingAt(n, path, depth)
	case yaml.SequenceNode:
		return d.sequence(n, path, depth)
	case yaml.ScalarNode:
		return d.scalar(n, path)
	case yaml.AliasNode, yaml.DocumentNode:
	}
	return at(path, ErrFormat, "an alias is not accepted, and SOPS writes none")
}

// mapping is the map at the top, of which SOPS's own part is left out.
func (d *decrypter) mapping(n *yaml.Node, path []string) error { return d.mappingAt(n, path, 0) }

func (d *decrypter) mappingAt(n *yaml.Node, path []string, depth int) error {
	seen := map[string]bool{}
	d.out.WriteByte('{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := keyOf(n.Content[i])
		if err != nil || seen[key] {
			return at(path, ErrFormat, "a key is set twice, or is no text")
		}
		if depth == 0 && key == metadataKey {
			continue
		}
		if len(seen) > 0 {
			d.out.WriteByte(',')
		}
		seen[key] = true
		d.write(key)
		d.out.WriteByte(':')
		if err := d.value(n.Content[i+1], append(path[:len(path):len(path)], key), depth+1); err != nil {
			return err
		}
	}
	d.out.WriteByte('}')
	return nil
}

func keyOf(n *yaml.Node) (string, error) {
	var v any
	if n.Kind != yaml.ScalarNode || n.Decode(&v) != nil {
		return "", errors.New("no scalar")
	}
	key, ok := v.(string)
	if !ok {
		return "", errors.New("no string")
	}
	return key, nil
}

// sequence writes a list. The place of its items is that of the list. A comment in a list is encrypted as an item of it.
func (d *decrypter) sequence(n *yaml.Node, path []string, depth int) error {
	d.out.WriteByte('[')
	first := true
	for _, item := range n.Content {
		if item.Kind == yaml.ScalarNode && strings.HasSuffix(item.Value, ",type:comment]") && d.m.isEncrypted(path) {
			continue // not part of the MAC, so that nobody knows whose it is
		}
		if !first {
			d.out.WriteByte(',')
		}
		first = false
		if err := d.value(item, path, depth+1); err != nil {
			return err
		}
	}
	d.out.WriteByte(']')
	return nil
}

// scalar writes one value in clear.
func (d *decrypter) scalar(n *yaml.Node, path []string) error {
	var v any
	if n.Decode(&v) != nil {
		return at(path, ErrFormat, "it is no value")
	}
	if v == nil { // never encrypted, and not part of the MAC
		d.out.WriteString("null")
		return nil
	}
	encrypted := d.m.isEncrypted(path)
	if encrypted {
		sealed, ok := v.(string)
		if !ok {
			return at(path, ErrChanged, "it is not encrypted")
		}
		var err error
		if v, err = open(d.key, sealed, strings.Join(path, ":")+":"); errors.Is(err, ErrChanged) {
			return at(path, ErrChanged, "it is not what was encrypted at this place")
		} else if err != nil {
			return at(path, ErrFormat, err.Error())
		}
	}
	text, err := plain(v)
	if err != nil {
		return at(path, ErrFormat, err.Error())
	}
	if encrypted || !d.m.MACOnlyEncrypted {
		d.mac.Write([]byte(text))
	}
	if !d.write(v) {
		return at(path, ErrFormat, "it is no number that JSON has")
	}
	return nil
}

// write writes a value as JSON, and says whether it could.
func (d *decrypter) write(v any) bool {
	data, err := json.Marshal(v)
	d.out.Write(data)
	return err == nil
}
