package local

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// listener takes a port of 127.0.0.1.
func listener(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func TestChoosePort(t *testing.T) {
	t.Parallel()
	if port, err := choosePort(0); err != nil || port < lowestPort || port >= highestPort {
		t.Errorf("chose %d: %v; want one of %d to %d", port, err, lowestPort, highestPort)
	}
	if _, err := choosePort(listener(t)); !errors.Is(err, ErrPortTaken) {
		t.Errorf("a taken port: %v; want ErrPortTaken", err)
	}
}

func TestRememberedPort(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content string
		want    int
	}{
		"Written": {"20123", 20123},
		"Torn":    {"2012", 0},
		"Empty":   {"", 0},
		"Other":   {"65000", 0}, // others may have been given it
		"Garbage": {"20123 ", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if got := rememberedPort(dir); got != 0 {
				t.Errorf("of an empty folder: %d", got)
			}
			if err := os.WriteFile(filepath.Join(dir, filePort), []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := rememberedPort(dir); got != test.want {
				t.Errorf("port %d; want %d", got, test.want)
			}
		})
	}
}

func TestPortConflict(t *testing.T) {
	t.Parallel()
	free, err := choosePort(0)
	if err != nil {
		t.Fatal(err)
	}
	server := &process{command: command{name: binAPIServer}}
	ended := func(name string) error { return &ExitError{Name: name, How: "exit status 1"} }
	for name, test := range map[string]struct {
		err  error
		port int
		want bool
	}{
		"EndedAndTaken": {ended(binAPIServer), listener(t), true},
		"EndedButFree":  {ended(binAPIServer), free, false},
		"EtcdEnded":     {ended(binEtcd), listener(t), false},
		"TimedOut":      {errors.New("timed out"), listener(t), false},
		"Started":       {nil, listener(t), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := portConflict(test.err, test.port, server)
			if got := errors.Is(err, ErrPortTaken); got != test.want {
				t.Errorf("%v is ErrPortTaken: %t; want %t", err, got, test.want)
			}
			if !errors.Is(err, test.err) {
				t.Errorf("%v hides %v", err, test.err)
			}
		})
	}
}
