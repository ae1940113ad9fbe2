package local

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// ErrPortTaken says that another process listens on the port that a child should serve on.
var ErrPortTaken = errors.New("the port is taken")

// Ports are chosen below those that kernels give to outgoing connections (from 32768 on Linux, 49152 on macOS), or any
// client of this machine could take one between our choice and the child's start.
const (
	lowestPort  = 20000
	highestPort = 32000
	portChoices = 100
)

// choosePort returns a port of 127.0.0.1 that is free at the moment: the given one, or any if it is zero.
func choosePort(given int) (int, error) {
	if given != 0 {
		return given, checkPort(given)
	}
	for range portChoices {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if checkPort(port) == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("choosing a port: %d of %d to %d were taken", portChoices, lowestPort, highestPort)
}

// filePort of a state folder has the port that was chosen: kubeconfigs name it.
const filePort = "port"

// rememberPort writes down the port of a server that serves from the folder.
func rememberPort(dir string, port int) error {
	if err := os.WriteFile(filepath.Join(dir, filePort), []byte(strconv.Itoa(port)), 0o600); err != nil {
		return fmt.Errorf("remembering the port: %w", err)
	}
	return nil
}

// rememberedPort returns the port of the last start from the folder, or zero where there was none: what is not one of
// those that are chosen from was torn by a crash.
func rememberedPort(dir string) int {
	data, err := os.ReadFile(filepath.Join(dir, filePort))
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(string(data))
	if err != nil || port < lowestPort || port >= highestPort {
		return 0
	}
	return port
}

// checkPort says whether the port can be listened on.
func checkPort(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listening on port %d of 127.0.0.1: %w: %w", port, ErrPortTaken, err)
	}
	return l.Close()
}

// portConflict adds ErrPortTaken to the error of a start when the child ended and somebody else has its port: what
// the child itself said is for people.
func portConflict(err error, port int, p *process) error {
	if exit := (*ExitError)(nil); !errors.As(err, &exit) || exit.Name != p.name {
		return err
	}
	if taken := checkPort(port); taken != nil {
		return errors.Join(taken, err)
	}
	return err
}
