package cli

import (
	"context"
	"fmt"
	"io"
)

// readStdin reads all of a stream, which is bounded, until a context ends.
func readStdin(ctx context.Context, r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(interruptible(ctx, r), maxValues+1))
	if err == nil && len(data) > maxValues {
		err = fmt.Errorf("it is larger than %d MiB", maxValues>>20)
	}
	return data, err
}

// stdin reads a stream that may not say anything for ever, such as a terminal, until a context ends.
type stdin struct {
	r     io.Reader
	done  <-chan struct{}
	cause func() error
}

func interruptible(ctx context.Context, r io.Reader) *stdin {
	return &stdin{r: r, done: ctx.Done(), cause: func() error { return context.Cause(ctx) }}
}

// Read implements io.Reader. Nothing can take back a read that has begun: after the context has ended, it goes on until
// something comes or the process ends, into a buffer that nobody looks at.
func (s *stdin) Read(p []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	read := make(chan result, 1)
	buffer := make([]byte, len(p))
	go func() {
		n, err := s.r.Read(buffer)
		read <- result{n, err}
	}()
	select {
	case r := <-read:
		return copy(p, buffer[:r.n]), r.err
	case <-s.done:
		return 0, s.cause()
	}
}
