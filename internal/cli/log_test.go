package cli

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"
)

func TestLogForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		console, on   bool
		level         zapcore.Level
		info, failure string
	}{
		{"JSON", false, false, zapcore.InfoLevel, `^\{"level":"info","time":"[^"]+","msg":"Working","runtime":"eu-1"\}$`, `^\{"level":"error",.*"msg":"Working","error":"boom"\}$`},
		{"Console", true, false, zapcore.InfoLevel, `^\d\d:\d\d:\d\d\.\d{3}\tINFO\tWorking\t\{"runtime": "eu-1"\}$`, `\tERROR\tWorking\t\{"error": "boom"\}$`},
		{"Coloured", true, true, zapcore.InfoLevel, "\t\x1b\\[34mINFO\x1b\\[0m\tWorking\t", "\x1b\\[31mERROR"},
		{"ErrorsOnly", false, false, zapcore.ErrorLevel, "", `"level":"error"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			log := newLog(&out, c.console, palette{on: c.on}, c.level)
			log.V(1).Info("Only for those who debug")
			log.Info("Working", "runtime", "eu-1")
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if len(lines) != 1 || !regexp.MustCompile(c.info).MatchString(lines[0]) {
				t.Errorf("info reads %q", lines)
			}
			out.Reset()
			log.Error(errors.New("boom"), "Working")
			if got := strings.TrimSpace(out.String()); strings.Contains(got, "\n") || !regexp.MustCompile(c.failure).MatchString(got) {
				t.Errorf("an error reads %q", got)
			}
		})
	}
}
