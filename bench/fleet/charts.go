package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// charts is a server that has the one chart that all modules are of, pinned by its digest: as fleets have it.
type charts struct {
	server      *http.Server
	url, digest string
	ended       chan error
}

// serveCharts serves the chart on a free port of this machine, until it is closed.
func serveCharts(ctx context.Context) (*charts, error) {
	archive, err := packChart()
	if err != nil {
		return nil, fmt.Errorf("packing a chart: %w", err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serving charts: %w", err)
	}
	const name = "/bench-1.0.0.tgz"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+name, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/gzip")
		_, _ = w.Write(archive) // a client that does not get it says so
	})
	c := &charts{
		server: &http.Server{Handler: mux, ReadHeaderTimeout: callTimeout}, url: "http://" + l.Addr().String() + name,
		digest: fmt.Sprintf("sha256:%x", sha256.Sum256(archive)), ended: make(chan error, 1),
	}
	go func() { c.ended <- c.server.Serve(l) }() // ended by close
	return c, nil
}

func (c *charts) close() error {
	if c == nil {
		return nil
	}
	err := c.server.Close()
	if ended := <-c.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// packChart makes the chart, as helm package does.
func packChart() ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	for _, file := range []struct{ name, content string }{
		{"Chart.yaml", "apiVersion: v2\nname: bench\nversion: 1.0.0\n"},
		{"values.yaml", "text: " + original + "\nrelease: none\nmore: 0\n"},
		{"templates/all.yaml", chart},
	} {
		header := &tar.Header{Name: "bench/" + file.name, Mode: 0o644, Size: int64(len(file.content)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg}
		if err := packed.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := packed.Write([]byte(file.content)); err != nil {
			return nil, err
		}
	}
	err := errors.Join(packed.Close(), zipped.Close())
	return out.Bytes(), err
}
