package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const aboutRoot = `Installs, compares, repairs, upgrades and removes modules on Kubernetes clusters: Helm charts, kustomizations and
plain manifests, without any control plane.

A module is known by its name and namespace. What belongs to it is an ApplySet, which kubectl shows too:

  kubectl get all,configmaps -A -l applyset.kubernetes.io/part-of
`

const aboutExit = `
Exit codes:
  0    done; or nothing differs (diff, verify)
  1    failed
  2    the command line is wrong; nothing was tried
  3    something differs (diff, verify), or is not ready or gone in time (--wait, uninstall)
  130  interrupted by Ctrl-C; 143: by SIGTERM. A second signal ends the program at once. What was applied stays, and the
       same command goes on from there.
`

// root makes the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "mothership", Short: "Install, compare, repair and remove modules on Kubernetes clusters",
		Long: aboutRoot + aboutExit, SilenceErrors: true, SilenceUsage: true, DisableSuggestions: true,
		SuggestionsMinimumDistance: 2,
	}
	root.SetIn(a.p.Stdin)
	root.SetOut(a.p.Stdout)
	root.SetErr(a.p.Stderr)
	root.SetArgs(a.p.Args)
	root.PersistentFlags().StringVar(&a.color, "color", "auto", "`WHEN` to use colours: auto, always or never; auto heeds NO_COLOR")
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "print errors only, and the data of -o json|yaml")
	root.AddCommand(a.install(), a.diff(), a.verify(), a.uninstall(), a.render(), a.version())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(a.p.Args...)
	complete(root, "color", "auto", "always", "never")
	return root
}

// command makes one command out of what all have in common.
func (a *app) command(use, short, long, example string, run func(*cobra.Command) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: short + ".\n\n" + strings.TrimSpace(long) + "\n", Example: strings.Trim(example, "\n"),
		Args: noArguments, DisableFlagsInUseLine: true, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains([]string{"auto", "always", "never"}, a.color) {
				return usage(cmd, "--color %q: it is auto, always or never", a.color)
			}
			a.started = true
			return run(cmd)
		},
	}
}

// noArguments refuses arguments that are no flags: all of them have names here.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage(cmd, "unexpected argument %q: everything is given by flags", args[0])
}

// complete completes a flag's values.
func complete(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(fmt.Sprintf("completing --%s: %v", flag, err)) // a flag that was never defined
	}
}
