package cli

import (
	"bytes"
	stdlog "log"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"
)

// TestStandardLog: what net/http says of a server that speaks without being asked is logged without the server's words.
func TestStandardLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := stdlog.New(standardLog{newLog(&out, false, palette{}, zapcore.InfoLevel)}, "", 0)
	l.Printf("Unsolicited response received on idle HTTP channel starting with %q; err=%v", "HTTP/1.1 200 hunter2", nil)
	if text := out.String(); !strings.Contains(text, "idle HTTP channel") || strings.Contains(text, "hunter2") {
		t.Errorf("logged: %s", text)
	}
}
