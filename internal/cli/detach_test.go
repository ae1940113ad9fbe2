package cli

import (
	"slices"
	"strings"
	"testing"
)

// TestBackgroundArgs says that a control plane in the background is given what this command was given.
func TestBackgroundArgs(t *testing.T) {
	t.Parallel()
	a := &app{p: Process{Getenv: func(string) string { return "" }}}
	cmd := a.up()
	given := strings.Fields("--detach --runtimes 2 --catalog ./a --catalog oci://example.com/b:1 --source-mirror docker.io=mirror.local --source-private 10.0.0.0/8,host --ca-file ca.pem")
	if err := cmd.ParseFlags(given); err != nil {
		t.Fatal(err)
	}
	args := a.backgroundArgs(cmd, "/state")
	again := a.up()
	again.Flags().String("color", "", "")
	if err := again.ParseFlags(args[1:]); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"runtimes", "catalog", "source-mirror", "source-private", "ca-file"} {
		if got, want := again.Flag(name).Value.String(), cmd.Flag(name).Value.String(); got != want {
			t.Errorf("--%s is %s, want %s", name, got, want)
		}
	}
	if slices.Contains(args, "--detach=true") {
		t.Errorf("the child detaches, too: %q", args)
	}
}
