package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// Kinds are what the executable can be beside the benchmark, by name. Each reads its configuration from JSON.
type Kinds map[string]func(config string) error

// Asked is what the arguments, with the program's name, ask for; nil if that is the benchmark.
func (k Kinds) Asked(args []string) func() error {
	if len(args) != 3 || k[args[1]] == nil {
		return nil
	}
	return func() error { return k[args[1]](args[2]) }
}

// Serve says that the child works, at an address, and returns when it shall end: nil when its standard input has ended, or what failed
// says.
func Serve(address string, failed <-chan error) error {
	if err := json.NewEncoder(os.Stdout).Encode(ready{Address: address}); err != nil {
		return fmt.Errorf("saying that it works: %w", err)
	}
	ended := make(chan struct{})
	go func() { // ends with standard input, and this process with it
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case err := <-failed:
		return err
	}
}

// Profile takes a processor profile of this process into a folder until it is stopped; none if that is empty.
func Profile(folder string) (stop func() error, err error) {
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

// WriteHeap writes what is in use, and what was allocated, into a folder; nothing if that is empty.
func WriteHeap(folder string) error {
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

// ProfileFolder makes the folder that was asked for, and its path absolute; empty stays empty.
func ProfileFolder(folder string) (string, error) {
	if folder == "" {
		return "", nil
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("finding the folder of profiles: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("making the folder of profiles: %w", err)
	}
	return folder, nil
}
