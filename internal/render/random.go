package render

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"text/template"
)

// stream is a deterministic stream of random bytes: ChaCha8 under a key that nobody can guess without the secret.
type stream struct{ *rand.ChaCha8 }

// draw opens the stream of one call. It depends on the runtime, the module and the position of the call: the template
// file, the function and how often the file has called it before. So a rendering can be repeated, which keeps, for
// instance, the CA bundle of a webhook in step with the certificate in a Secret that is created only once.
func (s *session) draw(function string) stream {
	s.drew[s.template] = true
	position := s.template + "\x00" + function
	n := s.calls[position]
	s.calls[position]++
	mac := hmac.New(sha256.New, s.request.Secret)
	for _, part := range []string{"mothership/render/random/v1", s.request.PerRuntime, s.request.Module, s.request.Namespace, s.template, function} {
		writeSized(mac, part)
	}
	_ = binary.Write(mac, binary.BigEndian, uint64(n))
	return stream{rand.NewChaCha8([32]byte(mac.Sum(nil)))}
}

// below returns a number in [0, n), without bias.
func (r stream) below(n int) int { return rand.New(r.ChaCha8).IntN(n) }

func (r stream) bytes(n int) []byte {
	b := make([]byte, n)
	_, _ = r.Read(b) // never fails
	return b
}

const (
	digits  = "0123456789"
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// printable are the characters that sprig's randAscii draws from.
var printable = func() string {
	var b strings.Builder
	for c := byte(32); c < 127; c++ {
		b.WriteByte(c)
	}
	return b.String()
}()

// maxDraw bounds what one call may draw, in bytes.
const maxDraw = 1 << 20

var errDraw = errors.New("draws more than 1 MiB, or less than nothing")

func (r stream) text(alphabet string, n int) (string, error) {
	if n < 0 || n > maxDraw {
		return "", errDraw
	}
	out := make([]byte, n)
	source := rand.New(r.ChaCha8)
	for i := range out {
		out[i] = alphabet[source.IntN(len(alphabet))]
	}
	return string(out), nil
}

// randomFunctions are those of the class random and cluster for a request with PerRuntime.
func (s *session) randomFunctions() template.FuncMap {
	text := func(name, alphabet string) func(int) (string, error) {
		return func(n int) (string, error) { return s.draw(name).text(alphabet, n) }
	}
	funcs := template.FuncMap{
		"randAlpha":    text("randAlpha", letters),
		"randAlphaNum": text("randAlphaNum", letters+digits),
		"randNumeric":  text("randNumeric", digits),
		"randAscii":    text("randAscii", printable),
		"randBytes":    s.randBytes,
		"randInt":      s.randInt,
		"shuffle":      s.shuffle,
		"uuidv4":       s.uuid,
		"bcrypt":       s.bcrypt,
		"htpasswd":     s.htpasswd,
		"encryptAES":   s.encryptAES,
		"lookup":       func(_, _, _, _ string) map[string]any { return map[string]any{} },
	}
	for name, f := range s.certificateFunctions() {
		funcs[name] = f
	}
	return funcs
}

func (s *session) randBytes(n int) (string, error) {
	if n < 0 || n > maxDraw {
		return "", errDraw
	}
	return base64.StdEncoding.EncodeToString(s.draw("randBytes").bytes(n)), nil
}

func (s *session) randInt(low, high int) (int, error) {
	if high <= low {
		return 0, fmt.Errorf("randInt of an empty range: %d is not above %d", high, low)
	}
	return low + s.draw("randInt").below(high-low), nil
}

func (s *session) shuffle(text string) string {
	runes := []rune(text)
	rand.New(s.draw("shuffle").ChaCha8).Shuffle(len(runes), func(i, j int) { runes[i], runes[j] = runes[j], runes[i] })
	return string(runes)
}

func (s *session) uuid() string {
	b := s.draw("uuidv4").bytes(16)
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// encryptAES is sprig's: AES-256-CBC under the password padded with zeros, PKCS#7 padding, the IV first.
func (s *session) encryptAES(password, plain string) (string, error) {
	if plain == "" {
		return "", nil
	}
	key := make([]byte, 32)
	copy(key, password)
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	padding := aes.BlockSize - len(plain)%aes.BlockSize
	padded := plain + strings.Repeat(string(rune(padding)), padding)
	out := append(s.draw("encryptAES").bytes(aes.BlockSize), padded...)
	cipher.NewCBCEncrypter(block, out[:aes.BlockSize]).CryptBlocks(out[aes.BlockSize:], out[aes.BlockSize:])
	return base64.StdEncoding.EncodeToString(out), nil
}

func (s *session) htpasswd(user, password string) (string, error) {
	if strings.Contains(user, ":") {
		return "", errors.New("a user name for htpasswd holds a colon")
	}
	hash, err := s.bcrypt(password)
	return user + ":" + hash, err
}
