package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kyma-project/mothership/bench/internal/child"
	"github.com/kyma-project/mothership/controlplane"
)

// planeKind is what this program can be beside the benchmark: a control plane.
const planeKind = "controlplane"

var kinds = child.Kinds{planeKind: runPlane}

// childConfig says what a control plane shall be.
type childConfig struct {
	Dir string
	// Profiles is the folder for profiles; none if empty.
	Profiles string
}

// runPlane runs a control plane until its standard input ends, which it does when the parent does.
func runPlane(config string) (err error) {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return fmt.Errorf("reading what the control plane shall be: %w", err)
	}
	stopProfile, err := child.Profile(c.Profiles)
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
	if err := child.Serve(cp.Address(), cp.Err()); err != nil {
		return err
	}
	return child.WriteHeap(c.Profiles)
}
