package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/kyma-project/mothership/controlplane"
	"github.com/kyma-project/mothership/sim"
)

// Arguments that make this program another; what it shall be follows as JSON.
const (
	planeArgument     = "controlplane"
	simulatorArgument = "simulator"
)

// children are what this program can be, beside the benchmark.
var children = map[string]func(config string) error{planeArgument: runPlane, simulatorArgument: runSimulator}

// planeConfig says what a control plane shall be.
type planeConfig struct {
	// Kubeconfig is the file of the control plane's API.
	Kubeconfig string
	// Profiles is the folder for profiles; none if empty.
	Profiles string
}

// ready is what a child prints once it works.
type ready struct {
	// Address of metrics, or of the simulator's administration.
	Address string
}

// runPlane runs a control plane until its standard input ends, which it does when the parent does.
func runPlane(config string) (err error) {
	var c planeConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return fmt.Errorf("reading what the control plane shall be: %w", err)
	}
	stopProfile, err := profile(c.Profiles)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopProfile()) }()
	cluster, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	debug.SetGCPercent(controlplane.GCPercent) // as the command does
	cp, err := controlplane.Start(context.Background(), controlplane.Config{Cluster: cluster, SourceRoot: "/"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	select {
	case <-cp.Ready():
	case err := <-cp.Err():
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(ready{Address: cp.Address()}); err != nil {
		return fmt.Errorf("saying that it works: %w", err)
	}
	select {
	case <-inputEnds():
		return writeHeap(c.Profiles)
	case err := <-cp.Err():
		return err
	}
}

// runSimulator runs a simulator until its standard input ends: that of mothership-sim, on free ports.
func runSimulator(string) error {
	s, err := sim.Start(context.Background(), sim.Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := json.NewEncoder(os.Stdout).Encode(ready{Address: s.AdminURL()}); err != nil {
		return fmt.Errorf("saying that it works: %w", err)
	}
	select {
	case <-inputEnds():
		return nil
	case <-s.Done():
		return s.Err()
	}
}

// inputEnds is closed when standard input ends.
func inputEnds() <-chan struct{} {
	ended := make(chan struct{})
	go func() { // ends with standard input, and this process with it
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	return ended
}

// profile takes a processor profile until it is stopped.
func profile(folder string) (stop func() error, err error) {
	if folder == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(filepath.Join(folder, fmt.Sprintf("cpu-%d.pprof", os.Getpid())))
	if err != nil {
		return nil, fmt.Errorf("profiling: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("profiling: %w", err), file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}

// writeHeap writes what is in use, and what was allocated, while the control plane still works.
func writeHeap(folder string) error {
	if folder == "" {
		return nil
	}
	file, err := os.Create(filepath.Join(folder, fmt.Sprintf("heap-%d.pprof", os.Getpid())))
	if err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	runtime.GC()
	return errors.Join(pprof.WriteHeapProfile(file), file.Close())
}
