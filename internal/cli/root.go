package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const aboutRoot = `Installs, compares, repairs, upgrades and removes modules on Kubernetes clusters: Helm charts, kustomizations and
plain manifests. On one cluster without any control plane (install), or on a fleet of clusters by a control plane, which
mothership up starts on this machine.

A module is known by its name and namespace. What belongs to it is an ApplySet, which kubectl shows too:

  kubectl get all,configmaps -A -l applyset.kubernetes.io/part-of
`

const aboutExit = `
Exit codes:
  0    done; or nothing differs (diff, verify)
  1    failed
  2    the command line is wrong; nothing was tried
  3    something differs (diff, verify), or is not ready or gone in time (--wait, wait, uninstall)
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
	root.AddGroup(&cobra.Group{ID: groupAlone, Title: "Modules on one cluster, without a control plane:"},
		&cobra.Group{ID: groupServe, Title: "Control planes:"}, &cobra.Group{ID: groupFleet, Title: "The fleet of a control plane:"})
	grouped(root, groupAlone, a.install(), a.diff(), a.verify(), a.uninstall(), a.render())
	grouped(root, groupServe, a.up(), a.down(), a.controller())
	grouped(root, groupFleet, a.get(), a.describe(), a.explain(), a.wait(), a.module(), a.reconcile(), a.suspend(), a.resume(), a.runtime(), a.catalog())
	root.AddCommand(a.version())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(a.p.Args...)
	complete(root, "color", "auto", "always", "never")
	return root
}

// The groups of commands in help.
const (
	groupAlone = "alone"
	groupServe = "serve"
	groupFleet = "fleet"
)

func grouped(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, cmd := range commands {
		cmd.GroupID = group
	}
	root.AddCommand(commands...)
}

// command makes one command out of what all have in common.
func (a *app) command(use, short, long, example string, run func(*cobra.Command) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: short + ".\n\n" + strings.TrimSpace(long) + "\n", Example: strings.Trim(example, "\n"),
		Args: noArguments, DisableFlagsInUseLine: true, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.checkColor(cmd); err != nil {
				return err
			}
			a.started = true
			return run(cmd)
		},
	}
}

func (a *app) checkColor(cmd *cobra.Command) error {
	if !slices.Contains([]string{"auto", "always", "never"}, a.color) {
		return usage(cmd, "--color %q: it is auto, always or never", a.color)
	}
	return nil
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
