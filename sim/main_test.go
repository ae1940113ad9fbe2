package sim_test

import (
	"os"
	"testing"

	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

func TestMain(m *testing.M) { os.Exit(localtest.Main(m)) }
