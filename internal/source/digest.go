package source

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"strings"
)

// BytesDigest is the digest of an archive or of a single file: "sha256:" and the SHA-256 of its bytes in hex, as
// `sha256sum FILE` prints it.
func BytesDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// TreeDigest is the digest of a folder: "sha256:" and the SHA-256 in hex of one line per file, sorted by path in byte
// order, each being the SHA-256 of the content in hex, two spaces, the path relative to the tree's root, and a line
// feed. Names with control characters or backslashes are refused before, so the lines are unambiguous. Anyone can
// recompute it:
//
//	find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
//
// for a folder without .git and without files that the kind of source leaves out (those in .helmignore; in a folder of
// manifests all but *.yaml, *.yml and *.json). Modes, times and empty folders do not count.
func TreeDigest(files []File) string {
	all := sha256.New()
	for _, f := range files {
		sum := sha256.Sum256(f.Data)
		writeLine(all, hex.EncodeToString(sum[:])+"  "+f.Path)
	}
	return "sha256:" + hex.EncodeToString(all.Sum(nil))
}

// writeLine relies on hashes never returning errors.
func writeLine(h hash.Hash, line string) { _, _ = io.WriteString(h, line+"\n") }

// checkDigest says whether a digest is well-formed: "sha256:" and 64 lower-case hex digits.
func checkDigest(digest string) error {
	digits, ok := strings.CutPrefix(digest, "sha256:")
	if !ok || len(digits) != 64 || strings.Trim(digits, "0123456789abcdef") != "" {
		return refuse(ErrInvalid, "", "digest %s is not sha256:<64 lower-case hex digits>", quote(digest))
	}
	return nil
}

// verify compares the digest of the content with the one of the reference, if it has one.
func verify(ref Ref, got string) error {
	if ref.Digest == "" || ref.Digest == got {
		return nil
	}
	return &DigestError{Want: ref.Digest, Got: got, Source: ref.String()}
}
