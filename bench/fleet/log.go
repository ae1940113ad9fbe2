package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
)

// log is the file that the control plane's log is in.
func (b *bench) log() string { return filepath.Join(b.folder, "controlplane.log") }

// logSize is where the log ends.
func (b *bench) logSize() (int64, error) {
	info, err := os.Stat(b.log())
	if err != nil {
		return 0, fmt.Errorf("looking at the log: %w", err)
	}
	return info.Size(), nil
}

// mentioned finds names of runtimes in a line.
var mentioned = regexp.MustCompile(runtimePrefix + `\d+`)

// logLines counts the lines from a place on that have any of the names in them.
func (b *bench) logLines(from int64, names []string) (n int, err error) {
	file, err := os.Open(b.log())
	if err != nil {
		return 0, fmt.Errorf("reading the log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return 0, fmt.Errorf("reading the log: %w", err)
	}
	return linesOf(file, names)
}

// longestLine bounds a line of the log.
const longestLine = 1 << 20

func linesOf(log io.Reader, names []string) (int, error) {
	is := map[string]bool{}
	for _, name := range names {
		is[name] = true
	}
	n, lines := 0, bufio.NewScanner(log)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		for _, name := range mentioned.FindAllString(lines.Text(), -1) {
			if is[name] {
				n++
				break
			}
		}
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("reading the log: %w", err)
	}
	return n, nil
}
