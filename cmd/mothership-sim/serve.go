package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kyma-project/mothership/sim"
)

// defaultAdmin is where a simulator is administered unless it is told otherwise.
const defaultAdmin = "127.0.0.1:7080"

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use: "mothership-sim", Short: "Simulate a fleet of Kubernetes clusters", SilenceErrors: true, SilenceUsage: true,
	}
	var admin string
	cmd.PersistentFlags().StringVar(&admin, "admin", defaultAdmin, "`ADDRESS` of the administration, which has no authentication")
	cmd.AddCommand(serve(&admin), kubeconfig(&admin), add(&admin), remove(&admin), dialCommand(&admin), show(&admin, "stats", "/stats", "Print figures of the simulator"),
		show(&admin, "list", "/runtimes", "Print the names of all clusters"), requests(&admin))
	return cmd
}

func serve(admin *string) *cobra.Command {
	var c sim.Config
	var runtimes int
	var prefix string
	cmd := &cobra.Command{
		Use: "serve", Short: "Run a simulator until it is interrupted", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Admin = *admin
			s, err := sim.Start(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer s.Close()
			for i := range runtimes {
				if err := s.Add(fmt.Sprintf("%s%d", prefix, i)); err != nil {
					return err
				}
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%d clusters on https://%s, administration on %s\n", runtimes, s.Address(), s.AdminURL())
			<-s.Done()
			return s.Err()
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Listen, "listen", "127.0.0.1:7443", "`ADDRESS` of the clusters")
	f.StringVar(&c.Dir, "dir", "", "`FOLDER` that keeps certificates and tokens, so that kubeconfigs stay good; default: nothing is kept")
	f.IntVar(&runtimes, "runtimes", 1, "`NUMBER` of clusters to begin with")
	f.StringVar(&prefix, "prefix", "runtime-", "`NAME` that clusters' names begin with; a number follows")
	f.DurationVar(&c.World.MinDelay, "min-delay", 20*time.Millisecond, "shortest `TIME` until workloads are ready and definitions established")
	f.DurationVar(&c.World.MaxDelay, "max-delay", 200*time.Millisecond, "longest `TIME` for the same")
	f.IntVar(&c.World.History, "history", 0, "`NUMBER` of changes that a cluster remembers for watches (default 256)")
	return cmd
}
