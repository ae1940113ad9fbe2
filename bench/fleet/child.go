package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/bench/internal/child"
	"github.com/kyma-project/mothership/controlplane"
	"github.com/kyma-project/mothership/sim"
)

// Names of what this program can be, beside the benchmark.
const (
	planeKind     = "controlplane"
	simulatorKind = "simulator"
	fieldKind     = "field"
	renderKind    = "render"
)

var kinds = child.Kinds{planeKind: runPlane, simulatorKind: runSimulator, fieldKind: runField, renderKind: runRender}

// planeConfig says what a control plane shall be.
type planeConfig struct {
	// Kubeconfig is the file of the control plane's API.
	Kubeconfig string
	// Log is the file that its log is added to, as JSON.
	Log string
	// Verify is the interval of verification; the default if 0.
	Verify time.Duration
	// Profiles is the folder for profiles; none if empty.
	Profiles string
}

// runRender renders, as a child process of a control plane.
func runRender(string) error {
	if code := mothership.RenderChild(); code != 0 {
		return fmt.Errorf("%w: code %d", errRender, code)
	}
	return nil
}

var errRender = errors.New("the rendering process failed")

// renderCommand is this program as what runRender is.
func renderCommand() ([]string, error) {
	self, err := os.Executable()
	return []string{self, renderKind, "{}"}, err
}

// runPlane runs a control plane until its standard input ends, which it does when the parent does.
func runPlane(config string) (err error) {
	var c planeConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return fmt.Errorf("reading what the control plane shall be: %w", err)
	}
	stopProfile, err := child.Profile(c.Profiles)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopProfile()) }()
	cluster, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	render, err := renderCommand()
	if err != nil {
		return err
	}
	defer controlplane.TuneGC()() // as the command does
	cp, err := controlplane.Start(context.Background(), controlplane.Config{
		Cluster: cluster, VerifyInterval: c.Verify, RenderCommand: render,
		Log: funcr.NewJSON(func(line string) { _, _ = fmt.Fprintln(log, line) }, funcr.Options{}),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	select {
	case <-cp.Ready():
	case err := <-cp.Err():
		return err
	}
	if err := child.Serve(cp.Address(), cp.Err()); err != nil {
		return err
	}
	return child.WriteHeap(c.Profiles)
}

// runSimulator runs a simulator until its standard input ends: that of mothership-sim, on free ports.
func runSimulator(string) error {
	s, err := sim.Start(context.Background(), sim.Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	failed := make(chan error, 1)
	go func() { // ends with the simulator
		<-s.Done()
		failed <- s.Err()
	}()
	return child.Serve(s.AdminURL(), failed)
}
