package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kyma-project/mothership/sim"
)

// timeout of one request: cloning ten thousand clusters takes seconds.
const timeout = 10 * time.Minute

// call asks the administration, and copies its answer. body nil: none.
func call(cmd *cobra.Command, method, admin, path string, body any) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	var in io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+admin+path, in)
	if err != nil {
		return fmt.Errorf("asking the simulator: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("asking the simulator (is it running there?): %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // the code says enough
		return fmt.Errorf("the simulator answers %s: %s", resp.Status, strings.TrimSpace(string(text)))
	}
	_, err = io.Copy(cmd.OutOrStdout(), resp.Body)
	return err
}

func kubeconfig(admin *string) *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig NAME", Short: "Print the kubeconfig of a cluster", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return call(cmd, http.MethodGet, *admin, "/runtimes/"+url.PathEscape(args[0])+"/kubeconfig", nil)
		},
	}
}

func add(admin *string) *cobra.Command {
	var q sim.AddRequest
	cmd := &cobra.Command{
		Use: "add [NAME]", Short: "Make one cluster, or with --count many, new or cloned", Args: cobra.MaximumNArgs(1),
		Example: "  mothership-sim add template\n  mothership-sim add --prefix runtime- --count 10000 --from template",
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (q.Count > 0) {
				return errors.New("give either a NAME or --count")
			}
			if len(args) == 1 {
				q.Name = args[0]
			}
			return call(cmd, http.MethodPost, *admin, "/runtimes", q)
		},
	}
	cmd.Flags().StringVar(&q.Prefix, "prefix", "runtime-", "`NAME` that clusters' names begin with; a number follows")
	cmd.Flags().IntVar(&q.Count, "count", 0, "`NUMBER` of clusters")
	cmd.Flags().StringVar(&q.From, "from", "", "cluster to clone, by `NAME`; default: new clusters")
	return cmd
}

func remove(admin *string) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "End a cluster", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return call(cmd, http.MethodDelete, *admin, "/runtimes/"+url.PathEscape(args[0]), nil)
		},
	}
}

func show(admin *string, use, path, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return call(cmd, http.MethodGet, *admin, path, nil) },
	}
}

func requests(admin *string) *cobra.Command {
	var reset, sum bool
	cmd := &cobra.Command{
		Use: "requests", Short: "Print how many requests clusters were asked, by verb and user agent", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			method := http.MethodGet
			if reset {
				method = http.MethodDelete
			}
			return call(cmd, method, *admin, "/requests?sum="+strconv.FormatBool(sum), nil)
		},
	}
	cmd.Flags().BoolVar(&sum, "sum", false, "of all clusters together")
	cmd.Flags().BoolVar(&reset, "reset", false, "and begin to count anew")
	return cmd
}

const aboutDial = `Sets what is wrong with clusters. What is not given is well again: without any dial, the clusters are healthy.

Dials: latencyMillis, throttle (share of requests answered with 429), retryAfterSeconds, fail (share answered with failCode, 503),
failCode, refuse, blackHole, unauthorized, forbidden, halfDiscovery, slowWatchMillis, otherCertificate.`

func dialCommand(admin *string) *cobra.Command {
	var q sim.DialRequest
	cmd := &cobra.Command{
		Use: "dial [DIAL=VALUE ...]", Short: "Make clusters sick, or well again", Long: aboutDial,
		Example: "  mothership-sim dial --name runtime-7 throttle=0.5 retryAfterSeconds=2\n  mothership-sim dial --prefix runtime-1 blackHole=true",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := parse(&q, args); err != nil {
				return err
			}
			if len(q.Names) == 0 && q.Prefix == "" {
				return errors.New("which clusters? give --name or --prefix")
			}
			return call(cmd, http.MethodPut, *admin, "/dials", q)
		},
	}
	cmd.Flags().StringSliceVar(&q.Names, "name", nil, "`NAME` of a cluster; may be repeated")
	cmd.Flags().StringVar(&q.Prefix, "prefix", "", "beginning of the `NAMES` of clusters")
	return cmd
}

// parse reads dials as DIAL=VALUE.
func parse(q *sim.DialRequest, args []string) error {
	dials := map[string]json.RawMessage{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q: a dial is set by DIAL=VALUE", arg)
		}
		dials[name] = json.RawMessage(value)
	}
	encoded, err := json.Marshal(dials)
	if err != nil {
		return fmt.Errorf("the values of dials are numbers, true and false: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(encoded))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&q.Dials); err != nil {
		return fmt.Errorf("reading dials: %w", err)
	}
	return nil
}
