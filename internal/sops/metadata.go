package sops

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// metadata is what SOPS keeps beside the values.
type metadata struct {
	Age          []recipient `yaml:"age"`
	LastModified string      `yaml:"lastmodified"`
	MAC          string      `yaml:"mac"`

	// At most one of these says which values are encrypted; those below certain keys, or those that are not.
	UnencryptedSuffix string `yaml:"unencrypted_suffix"`
	EncryptedSuffix   string `yaml:"encrypted_suffix"`
	UnencryptedRegex  string `yaml:"unencrypted_regex"`
	EncryptedRegex    string `yaml:"encrypted_regex"`
	MACOnlyEncrypted  bool   `yaml:"mac_only_encrypted"`

	// What is not supported.
	UnencryptedCommentRegex string      `yaml:"unencrypted_comment_regex"`
	EncryptedCommentRegex   string      `yaml:"encrypted_comment_regex"`
	KeyGroups               []yaml.Node `yaml:"key_groups"`

	modified            time.Time
	unencrypted, chosen *regexp.Regexp
}

// readMetadata reads and checks what SOPS keeps.
func readMetadata(root *yaml.Node) (*metadata, error) {
	var m metadata
	node := lookup(root, metadataKey)
	if node == nil || node.Decode(&m) != nil {
		return nil, fmt.Errorf("%w: there is no map %q as SOPS writes it", ErrFormat, metadataKey)
	}
	var err error
	m.modified, err = time.Parse(time.RFC3339, m.LastModified)
	switch {
	case err != nil || m.MAC == "":
		return nil, fmt.Errorf("%w: sops.lastmodified and sops.mac are needed", ErrFormat)
	case m.UnencryptedCommentRegex != "" || m.EncryptedCommentRegex != "":
		return nil, fmt.Errorf("%w: sops.*_comment_regex is not supported: select by key", ErrFormat)
	case len(m.KeyGroups) > 0:
		return nil, fmt.Errorf("%w: sops.key_groups are not supported: encrypt it for age keys alone", ErrFormat)
	case len(m.Age) == 0:
		return nil, fmt.Errorf("%w: it is not encrypted for any age key, and no other kind of key is supported: run sops updatekeys", ErrFormat)
	case len(m.Age) > maxKeys:
		return nil, fmt.Errorf("%w: it is encrypted for more than %d keys", ErrFormat, maxKeys)
	}
	for _, r := range []struct {
		field, text string
		into        **regexp.Regexp
	}{{"unencrypted_regex", m.UnencryptedRegex, &m.unencrypted}, {"encrypted_regex", m.EncryptedRegex, &m.chosen}} {
		if r.text == "" {
			continue
		}
		if *r.into, err = regexp.Compile(r.text); err != nil {
			return nil, fmt.Errorf("%w: sops.%s is no regular expression", ErrFormat, r.field)
		}
	}
	return &m, nil
}

// isEncrypted says whether the values at a path are encrypted, by the rules of SOPS in their order.
func (m *metadata) isEncrypted(path []string) bool {
	some := func(f func(string) bool) bool { return slices.ContainsFunc(path, f) }
	encrypted := true
	if m.UnencryptedSuffix != "" {
		encrypted = !some(func(k string) bool { return strings.HasSuffix(k, m.UnencryptedSuffix) })
	}
	if m.EncryptedSuffix != "" {
		encrypted = some(func(k string) bool { return strings.HasSuffix(k, m.EncryptedSuffix) })
	}
	if m.unencrypted != nil && some(m.unencrypted.MatchString) {
		encrypted = false
	}
	if m.chosen != nil {
		encrypted = some(m.chosen.MatchString)
	}
	return encrypted
}
