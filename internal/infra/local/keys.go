package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// keysTimeout bounds a question about keys, the start of etcd included.
	keysTimeout = 30 * time.Second
	// answerSize bounds what is read of an answer, which is a few numbers.
	answerSize = 64 << 10
	// longestSocket is how long the path of a socket may be everywhere (unix(7): 108 on Linux, 104 on macOS).
	longestSocket = 100
)

// CountPrefix returns how many keys a server with the prefix has in etcd ("/eu-1" has those below "/eu-1/"). It waits for
// etcd's start, by the context and for half a minute at most.
func (e *Etcd) CountPrefix(ctx context.Context, prefix string) (int, error) {
	got, err := e.ask(ctx, "range", keyRange{Key: []byte(prefix + "/"), End: []byte(prefix + "0"), CountOnly: true})
	if err != nil {
		return 0, fmt.Errorf("counting the keys of %s: %w", prefix, err)
	}
	return got.Count, nil
}

// DeletePrefix deletes all keys of a server with the prefix, in one transaction, and returns how many there were. The
// server must have been closed before. It waits like CountPrefix.
func (e *Etcd) DeletePrefix(ctx context.Context, prefix string) (int, error) {
	got, err := e.ask(ctx, "deleterange", keyRange{Key: []byte(prefix + "/"), End: []byte(prefix + "0")})
	if err != nil {
		return 0, fmt.Errorf("deleting the keys of %s: %w", prefix, err)
	}
	return got.Deleted, nil
}

// keyRange is a question about the keys from Key to before End, as etcd's JSON gateway reads it: '0' follows '/'.
type keyRange struct {
	Key       []byte `json:"key"`
	End       []byte `json:"range_end"`
	CountOnly bool   `json:"count_only,omitempty"`
}

// keyAnswer is what is read of the answers to such questions. Zeros are left out by etcd.
type keyAnswer struct {
	Count   int `json:"count,string"`
	Deleted int `json:"deleted,string"`
}

// ask sends a question to etcd's JSON gateway. gRPC would bring a dozen modules for these two.
func (e *Etcd) ask(ctx context.Context, method string, question keyRange) (keyAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, keysTimeout)
	defer cancel()
	body, err := json.Marshal(question)
	if err != nil {
		return keyAnswer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/kv/"+method, bytes.NewReader(body))
	if err != nil {
		return keyAnswer{}, err
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return e.dial(ctx) },
	}}
	resp, err := client.Do(req)
	if err != nil {
		return keyAnswer{}, err
	}
	defer resp.Body.Close()
	return decodeKeys(resp)
}

func decodeKeys(resp *http.Response) (keyAnswer, error) {
	data, err := io.ReadAll(io.LimitReader(resp.Body, answerSize))
	if err != nil {
		return keyAnswer{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return keyAnswer{}, fmt.Errorf("status %s: %s", resp.Status, strings.TrimSpace(string(data)))
	}
	var got keyAnswer
	return got, json.Unmarshal(data, &got)
}

// dial connects to etcd's socket, and tries again while etcd starts.
func (e *Etcd) dial(ctx context.Context) (net.Conn, error) {
	path, remove, err := shortPath(e.Dir(), socket)
	if err != nil {
		return nil, err
	}
	defer remove()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		case <-e.process.done:
			return nil, e.process.exitError()
		case <-tick.C:
		}
	}
}

// shortPath returns a path to a file of the folder that fits into a socket address, by way of a link where the folder's
// own is too long, and what removes the link.
func shortPath(dir, name string) (path string, remove func(), err error) {
	if path = filepath.Join(dir, name); len(path) <= longestSocket {
		return path, func() {}, nil
	}
	links, err := os.MkdirTemp("", "mothership-dial-")
	if err != nil {
		return "", nil, fmt.Errorf("making a link to %s: %w", dir, err)
	}
	remove = func() { _ = os.RemoveAll(links) } // of a folder that was just made
	link := filepath.Join(links, "d")
	if err := os.Symlink(dir, link); err != nil {
		remove()
		return "", nil, fmt.Errorf("making a link to %s: %w", dir, err)
	}
	return filepath.Join(link, name), remove, nil
}
