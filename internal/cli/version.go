package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"
)

// versionInfo is what `mothership version` prints.
type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) version() *cobra.Command {
	f := &flags{}
	cmd := a.command("version [flags]", "Print the version of this program", "Asks no cluster.", "  mothership version -o json",
		func(cmd *cobra.Command) error {
			if !slices.Contains([]string{asTable, asJSON, asYAML}, f.output) {
				return usage(cmd, "--output %q: it is table, json or yaml", f.output)
			}
			v := versionOf(a.p.Version)
			return a.print(f, v, func() string { return v.text() })
		})
	cmd.Flags().StringVarP(&f.output, "output", "o", asTable, "`FORMAT`: table, json or yaml")
	complete(cmd, "output", asTable, asJSON, asYAML)
	return cmd
}

// versionOf completes a stamped version from the build information.
func versionOf(stamped string) versionInfo {
	v := versionInfo{Version: stamped, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if v.Version == "" {
		v.Version = build.Main.Version
	}
	for _, s := range build.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value
		}
	}
	return v
}

func (v versionInfo) text() string {
	commit := ""
	if v.Commit != "" {
		commit = "commit " + v.Commit[:min(12, len(v.Commit))] + ", "
	}
	return fmt.Sprintf("mothership %s (%s%s, %s)\n", v.Version, commit, v.Go, v.Platform)
}
