package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// verb makes a command that takes arguments. needs are their names as the usage has them: NAME is needed, [NAME] may be left out,
// and NAME... takes the rest.
func (a *app) verb(use, short, long, example string, needs []string, run func(*cobra.Command, []string) error) *cobra.Command {
	cmd := a.command(use, short, long, example, nil)
	cmd.Args = func(cmd *cobra.Command, args []string) error { return checkArguments(cmd, args, needs) }
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.checkColor(cmd); err != nil {
			return err
		}
		a.started = true
		return run(cmd, args)
	}
	return cmd
}

func checkArguments(cmd *cobra.Command, args, needs []string) error {
	needed, most := 0, len(needs)
	for _, need := range needs {
		if !strings.HasPrefix(need, "[") {
			needed++
		}
		if strings.HasSuffix(strings.TrimSuffix(need, "]"), "...") {
			most = len(args)
		}
	}
	if len(args) < needed {
		return usage(cmd, "%s is missing", strings.TrimSuffix(needs[len(args)], "..."))
	}
	if len(args) > most {
		return usage(cmd, "unexpected argument %q", args[most])
	}
	return nil
}

// group makes a command that only has others below it.
func (a *app) group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: short + ".\n\n" + strings.TrimSpace(long) + "\n", DisableSuggestions: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			var names []string
			for _, c := range cmd.Commands() {
				names = append(names, c.Name())
			}
			if len(args) == 0 {
				return usage(cmd, "say which: %s", either(names))
			}
			return usage(cmd, "unknown %q: it is %s", args[0], either(names))
		},
	}
	cmd.AddCommand(commands...)
	return cmd
}

// checkName refuses what cannot be the name of an object.
func checkName(cmd *cobra.Command, what, name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return usage(cmd, "%s %q: %s", what, name, strings.Join(problems, "; "))
	}
	return nil
}

// completionTimeout bounds what a shell waits for names.
const completionTimeout = 2 * time.Second

// completing completes the arguments of a command by what the control plane has: Kymas, Runtimes, modules.
func (a *app) completing(cmd *cobra.Command, f *fleetFlags, each ...client.ObjectList) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(each) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		return a.namesFor(ctx, cmd, f, each[len(args)]), cobra.ShellCompDirectiveNoFileComp
	}
}

// namesFor are the names of a kind's objects, or of the modules that templates and releases have; none where nobody answers.
func (a *app) namesFor(ctx context.Context, cmd *cobra.Command, f *fleetFlags, list client.ObjectList) []string {
	fl, err := a.connect(cmd, f)
	if err != nil || fl.list(ctx, list) != nil {
		return nil
	}
	releases, ok := list.(*v1beta2.ModuleReleaseMetaList)
	if !ok {
		return namesOf(list)
	}
	var out []string
	for _, r := range releases.Items {
		out = append(out, r.Spec.ModuleName)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
