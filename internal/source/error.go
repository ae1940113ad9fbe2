package source

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// The reasons of errors, matched by errors.Is. A caller may try again later after ErrUnavailable; the others need a
// change, here or at the source.
var (
	// ErrInvalid: the reference, the archive or the kustomization is malformed.
	ErrInvalid = errors.New("source is invalid")
	// ErrTooLarge: a limit was reached.
	ErrTooLarge = errors.New("source is too large")
	// ErrUnsafe: the source reaches for something that is not its own, such as a path outside of the archive.
	ErrUnsafe = errors.New("source is unsafe")
	// ErrDigest: the content is not what the reference's digest says. The error is a *DigestError.
	ErrDigest = errors.New("source has another digest")
	// ErrSignature: the content is not signed by a key that the reference names.
	ErrSignature = errors.New("source is not signed as it must be")
	// ErrNotFound: there is nothing at the place that the reference names.
	ErrNotFound = errors.New("source not found")
	// ErrDenied: the server refused access (401, 403).
	ErrDenied = errors.New("access to source denied")
	// ErrUnsupported: a kind of address, archive or entry that is not known.
	ErrUnsupported = errors.New("source is not supported")
	// ErrUnavailable: the server could not be reached, or answered 429 or 5xx, or did not end in time.
	ErrUnavailable = errors.New("source is unavailable")
)

// Error says what is wrong with a source, where, and what to do. It matches its Reason and its cause by errors.Is.
// It holds no credentials: Source is redacted.
type Error struct {
	// Op is what was being done, such as "reading archive".
	Op string
	// Source is the address or path without user, query and fragment.
	Source string
	// Entry is the file within the source, where one is to blame.
	Entry string
	// Problem is what is wrong, and what to do.
	Problem string
	// Status is the HTTP status that the server answered, or 0.
	Status int
	// Reason is one of the sentinels, or nil where only the cause says why.
	Reason error
	// Err is the cause, or nil.
	Err error
}

// Error is "<op> <source>: entry <entry> <problem>: <cause>", without what is empty.
func (e *Error) Error() string {
	var parts []string
	if head := strings.TrimSpace(e.Op + " " + e.Source); head != "" {
		parts = append(parts, head)
	}
	body := e.Problem
	if e.Entry != "" {
		body = strings.TrimSpace("entry " + quote(e.Entry) + " " + body)
	}
	if body != "" {
		parts = append(parts, body)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the reason and the cause.
func (e *Error) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Reason, e.Err} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// DigestError says that a source is not what its digest promises. It matches ErrDigest.
type DigestError struct {
	// Want is the digest of the reference, Got that of the content.
	Want, Got string
	// Source is the redacted address or path.
	Source string
}

// Error names both digests.
func (e *DigestError) Error() string {
	return fmt.Sprintf("verifying %s: digest is %s, expected %s: the source was changed, or the digest is of another version",
		e.Source, e.Got, e.Want)
}

// Is matches ErrDigest.
func (e *DigestError) Is(target error) bool { return target == ErrDigest }

// IsError says whether an error is about a source, and not about what is made of it.
func IsError(err error) bool {
	_, digest := errors.AsType[*DigestError](err)
	_, other := errors.AsType[*Error](err)
	return digest || other
}

// refuse makes an error of a reason; entry may be empty. Op and Source are added by at.
func refuse(reason error, entry, format string, args ...any) *Error {
	return &Error{Entry: entry, Reason: reason, Problem: fmt.Sprintf(format, args...)}
}

// at adds what was being done to which source, unless the error says so already.
func at(op, source string, err error) error {
	if err == nil {
		return nil
	}
	if d, ok := errors.AsType[*DigestError](err); ok {
		return d
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return &Error{Op: op, Source: source, Err: err}
	}
	if e.Source != "" {
		return err
	}
	located := *e
	located.Op, located.Source = op, source
	return &located
}

// Redact returns an address without user, query and fragment, which may carry credentials, for messages.
func Redact(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" {
		return "(unreadable address)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// quote quotes a name that may be hostile, shortened to what a person reads.
func quote(name string) string {
	const most = 200
	if len(name) > most {
		return fmt.Sprintf("%q…", name[:most])
	}
	return fmt.Sprintf("%q", name)
}
