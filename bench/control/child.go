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
	"runtime/pprof"

	"github.com/kyma-project/mothership/controlplane"
)

// childArgument makes this program a control plane; what it shall be follows as JSON.
const childArgument = "controlplane"

// childConfig says what a control plane shall be.
type childConfig struct {
	Dir string
	// Profiles is the folder for profiles; none if empty.
	Profiles string
}

// childReady is what it prints once it works.
type childReady struct {
	// Address of its metrics.
	Address string
}

// child runs a control plane until its standard input ends, which it does when the parent does.
func child(config string) (err error) {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return fmt.Errorf("reading what the control plane shall be: %w", err)
	}
	stopProfile, err := profile(c.Profiles)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopProfile()) }()
	cp, err := controlplane.Start(context.Background(), controlplane.Config{Local: &controlplane.Local{Dir: c.Dir}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	select {
	case <-cp.Ready():
	case err := <-cp.Err():
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(childReady{Address: cp.Address()}); err != nil {
		return fmt.Errorf("saying that it works: %w", err)
	}
	ended := make(chan struct{})
	go func() { // ends with standard input, and this process with it
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	select {
	case <-ended:
		return writeHeap(c.Profiles)
	case err := <-cp.Err():
		return err
	}
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
