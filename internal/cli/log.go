package cli

import (
	"io"
	stdlog "log"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kyma-project/mothership/internal/statedir"
)

// levels of --log-level.
var levels = map[string]zapcore.Level{"debug": zapcore.DebugLevel, "info": zapcore.InfoLevel, "error": zapcore.ErrorLevel}

// levelNames are those of levels, from much to little.
var levelNames = []string{"debug", "info", "error"}

// logFlags say what a control plane logs, and where to.
type logFlags struct {
	level string
	file  bool
}

func (f *logFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.level, "log-level", "info", "what is logged to stderr: `debug|info|error`")
	complete(cmd, "log-level", levelNames...)
}

func (f *logFlags) check(cmd *cobra.Command) error {
	if _, known := levels[f.level]; !known {
		return usage(cmd, "--log-level %q: it is %s", f.level, either(levelNames))
	}
	return nil
}

// openLog is the log of a control plane: for people on a terminal, JSON elsewhere. Everything that libraries log goes there too.
func (a *app) openLog(f *logFlags, dir string) (logr.Logger, func() error, error) {
	w := a.p.Stderr
	closeIt := func() error { return nil }
	console := a.terminalOf(w).on
	if f.file {
		file, err := os.OpenFile(filepath.Join(dir, statedir.Log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return logr.Discard(), closeIt, err
		}
		w, closeIt, console = file, file.Close, false
	}
	out := newLog(w, console, a.palette(w), levels[f.level])
	klog.SetLogger(out.WithName("kubernetes"))
	log.SetLogger(out)
	stdlog.SetFlags(0)                                //nolint:forbidigo // nobody here logs to it: it is for what Go itself says
	stdlog.SetOutput(standardLog{out.WithName("go")}) //nolint:forbidigo // the same
	return out, closeIt, nil
}

// standardLog takes what Go's own packages write to the standard logger, without what net/http quotes of a server that speaks without
// being asked: that may be anything, credentials included.
type standardLog struct{ logr.Logger }

// Write logs a line.
func (l standardLog) Write(line []byte) (int, error) {
	text, _, _ := strings.Cut(strings.TrimSpace(string(line)), " starting with ")
	l.Info(text)
	return len(line), nil
}

func newLog(w io.Writer, console bool, paint palette, level zapcore.Level) logr.Logger {
	o := zap.NewProductionEncoderConfig()
	o.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	o.TimeKey = "time"
	encoder := zapcore.NewJSONEncoder(o)
	if console {
		o.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		if o.EncodeLevel = zapcore.CapitalLevelEncoder; paint.on {
			o.EncodeLevel = zapcore.CapitalColorLevelEncoder
		}
		encoder = zapcore.NewConsoleEncoder(o)
	}
	return zapr.NewLogger(zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level)))
}
