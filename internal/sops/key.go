package sops

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
)

// Keys are secret keys of age. They are safe for concurrent use and print as nothing.
type Keys struct{ identities []age.Identity }

// String hides the keys.
func (k *Keys) String() string { return "(keys)" }

// GoString hides the keys.
func (k *Keys) GoString() string { return "(keys)" }

// maxKeys bounds how many keys are tried, and for how many recipients.
const maxKeys = 64

// ParseKeys reads files of age-keygen: a key per line, beginning with AGE-SECRET-KEY-; empty lines and those that begin with # do
// not count. Several files are one. An error names the file by its number and the line, and holds nothing of it.
func ParseKeys(files ...[]byte) (*Keys, error) {
	k := &Keys{}
	for i, file := range files {
		n := 0
		for line := range bytes.Lines(file) {
			n++
			line = bytes.TrimSpace(line)
			if len(line) == 0 || line[0] == '#' {
				continue
			}
			ids, err := age.ParseIdentities(bytes.NewReader(line))
			if err != nil || len(k.identities)+len(ids) > maxKeys {
				return nil, fmt.Errorf("reading age keys, file %d, line %d: it is no secret key of age-keygen, or more than %d of them", i+1, n, maxKeys)
			}
			k.identities = append(k.identities, ids...)
		}
	}
	if len(k.identities) == 0 {
		return nil, fmt.Errorf("reading age keys: there is none: each is a line that begins with AGE-SECRET-KEY-")
	}
	return k, nil
}

// recipient is one for whom the data key is encrypted.
type recipient struct {
	Recipient string `yaml:"recipient"`
	Enc       string `yaml:"enc"`
}

// keySize is that of a data key, in bytes.
const keySize = 32

// dataKey opens the data key with any of the keys.
func (k *Keys) dataKey(recipients []recipient) ([]byte, error) {
	if k == nil || len(k.identities) == 0 {
		return nil, fmt.Errorf("%w: no age key is given", ErrKey)
	}
	for _, r := range recipients {
		text, err := age.Decrypt(armor.NewReader(strings.NewReader(r.Enc)), k.identities...)
		if err != nil {
			continue // for somebody else, or malformed: the others may do
		}
		if key, err := io.ReadAll(io.LimitReader(text, keySize+1)); err == nil && len(key) == keySize {
			return key, nil
		}
	}
	return nil, fmt.Errorf("%w: it is encrypted for %s", ErrKey, names(recipients))
}

// maxNamed bounds how many recipients an error names.
const maxNamed = 3

// names are public keys, for people.
func names(recipients []recipient) string {
	var out []string
	for _, r := range recipients[:min(len(recipients), maxNamed)] {
		out = append(out, fmt.Sprintf("%.80q", r.Recipient))
	}
	if more := len(recipients) - maxNamed; more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}
