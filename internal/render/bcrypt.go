package render

import (
	"encoding/base64"
	"errors"
	"fmt"

	"golang.org/x/crypto/blowfish" //nolint:staticcheck // bcrypt is defined on it
)

// bcryptEncoding is bcrypt's own base64.
var bcryptEncoding = base64.NewEncoding("./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789").WithPadding(base64.NoPadding)

const bcryptCost = 10

// bcrypt hashes a password as golang.org/x/crypto/bcrypt does at its default cost, but with a salt of the session's:
// that package draws its own. (Provos and Mazières, "A Future-Adaptable Password Scheme", USENIX 1999; version 2a.)
func (s *session) bcrypt(password string) (string, error) {
	return bcryptHash(password, s.draw("bcrypt").bytes(16))
}

func bcryptHash(password string, salt []byte) (string, error) {
	if len(password) > 72 {
		return "", errors.New("bcrypt takes at most 72 bytes")
	}
	key := append([]byte(password), 0)
	cipher, err := blowfish.NewSaltedCipher(key, salt)
	if err != nil {
		return "", errors.New("bcrypt takes no such password")
	}
	for range 1 << bcryptCost {
		blowfish.ExpandKey(key, cipher)
		blowfish.ExpandKey(salt, cipher)
	}
	text := []byte("OrpheanBeholderScryDoubt")
	for i := 0; i < len(text); i += blowfish.BlockSize {
		for range 64 {
			cipher.Encrypt(text[i:i+blowfish.BlockSize], text[i:i+blowfish.BlockSize])
		}
	}
	// The last byte is left out, as every implementation does.
	return fmt.Sprintf("$2a$%02d$%s%s", bcryptCost, bcryptEncoding.EncodeToString(salt), bcryptEncoding.EncodeToString(text[:23])), nil
}
