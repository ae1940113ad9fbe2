package sops

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"
)

// sealedForm is how SOPS writes a value.
var sealedForm = regexp.MustCompile(`^ENC\[AES256_GCM,data:([^,]+),iv:([^,]+),tag:([^,]+),type:([a-z]+)\]$`)

var errSealed = errors.New("it is not as SOPS writes it")

// maxNonce bounds the nonce, which SOPS makes 32 bytes long.
const maxNonce = 64

// open decrypts a value that is bound to a place. An empty one stands for itself: SOPS does not encrypt those.
func open(key []byte, sealed, place string) (any, error) {
	if sealed == "" {
		return "", nil
	}
	parts := sealedForm.FindStringSubmatch(sealed)
	if parts == nil {
		return nil, errSealed
	}
	var raw [3][]byte // data, nonce, tag
	for i := range raw {
		var err error
		if raw[i], err = base64.StdEncoding.DecodeString(parts[i+1]); err != nil {
			return nil, errSealed
		}
	}
	block, err := aes.NewCipher(key)
	if err != nil || len(raw[1]) == 0 || len(raw[1]) > maxNonce {
		return nil, errSealed
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, len(raw[1]))
	if err != nil {
		return nil, errSealed
	}
	text, err := gcm.Open(nil, raw[1], append(raw[0], raw[2]...), []byte(place))
	if err != nil {
		return nil, ErrChanged
	}
	return typed(string(text), parts[4])
}

// typed gives a decrypted text the type that it had.
func typed(text, as string) (any, error) {
	var v any
	var err error
	switch as {
	case "str", "bytes":
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("it is not UTF-8")
		}
		return text, nil
	case "int":
		v, err = strconv.Atoi(text)
	case "float":
		v, err = strconv.ParseFloat(text, 64)
	case "bool":
		v, err = strconv.ParseBool(text)
	case "time":
		var t time.Time
		err = t.UnmarshalText([]byte(text))
		v = t
	default:
		return nil, fmt.Errorf("its type %q is not known", as)
	}
	if err != nil {
		return nil, fmt.Errorf("it is no %s", as) // the error would quote it
	}
	return v, nil
}

// plain is what of a value goes into the MAC.
func plain(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int:
		return strconv.Itoa(v), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case bool:
		if v {
			return "True", nil
		}
		return "False", nil
	case time.Time:
		text, err := v.MarshalText()
		return string(text), err
	}
	return "", fmt.Errorf("a value of type %T is not accepted", v)
}
