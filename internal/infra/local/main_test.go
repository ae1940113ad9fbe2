package local_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

// childDir is the variable that makes the test binary a parent to be killed: it starts a server in the folder, says so
// on stdout and waits for the end of its stdin.
const childDir = "MOTHERSHIP_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(serve(dir))
	}
	os.Exit(localtest.Main(m))
}

func serve(dir string) int {
	_, err := local.Start(context.Background(), local.Options{Dir: dir, Controllers: local.DefaultControllers})
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}
