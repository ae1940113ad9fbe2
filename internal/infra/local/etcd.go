package local

import (
	"errors"
	"path/filepath"
	"sync"
	"syscall"
)

// socket of etcd, relative to its folder: a path of any depth would not fit into a socket address, so API servers run
// in that folder. A socket needs no port, and nobody but the folder's owner can open it.
const socket = "etcd.sock"

// The bounds of etcd's file. The API servers forget what was overwritten after five to ten minutes (one of them compacts for
// all), and etcd uses that room again, so the file grows to what ten busy minutes write and stays there. Beyond the quota etcd
// would refuse writes until somebody mends it by hand; at a start it gives room back to the disk that it does not need.
const (
	quota           = "4294967296" // bytes; 2 GiB is the default, 8 GiB what etcd's authors advise at most
	defragThreshold = "100"        // MiB that can be given back
)

// EtcdOptions say what StartEtcd starts.
type EtcdOptions struct {
	// Assets is the folder of the executables; Assets() if empty.
	Assets string
	// Dir is the state folder, for one Etcd at a time. Empty: a temporary one, removed by Close, whose data is not
	// synced to disk.
	Dir string
}

// Etcd is a running etcd, for one API server or, by key prefix, for many. It is safe for concurrent use.
type Etcd struct {
	folder  *folder
	process *process
	close   func() error
}

// StartEtcd starts an etcd. It does not wait until it serves: an API server does that itself while it starts, and its
// start ends when etcd does.
func StartEtcd(o EtcdOptions) (*Etcd, error) {
	if o.Assets == "" {
		dir, err := Assets()
		if err != nil {
			return nil, err
		}
		o.Assets = dir
	}
	if err := checkAssets(o.Assets, binEtcd); err != nil {
		return nil, err
	}
	f, err := openFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	e, err := startEtcd(o.Assets, f)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return e, nil
}

// startEtcd starts an etcd in the folder, which the Etcd owns from then on.
func startEtcd(assets string, f *folder) (*Etcd, error) {
	args := []string{
		"--data-dir=" + filepath.Join(f.path, "data"),
		"--listen-client-urls=unix://" + socket, "--advertise-client-urls=http://localhost:0",
		"--listen-peer-urls=unix://peer.sock", "--initial-advertise-peer-urls=http://localhost:0",
		"--name=local", "--initial-cluster=local=http://localhost:0",
		"--heartbeat-interval=10", "--election-timeout=100", // there is nobody to elect but itself: do not wait for others
		"--log-level=warn",
		"--quota-backend-bytes=" + quota, "--bootstrap-defrag-threshold-megabytes=" + defragThreshold,
	}
	if f.temporary {
		args = append(args, "--unsafe-no-fsync")
	}
	p, err := startProcess(command{assets: assets, name: binEtcd, args: args, dir: f.path, workDir: f.path})
	if err != nil {
		return nil, err
	}
	e := &Etcd{folder: f, process: p}
	e.close = sync.OnceValue(e.stop)
	return e, nil
}

// Dir returns the state folder.
func (e *Etcd) Dir() string { return e.folder.path }

// Done is closed when etcd has ended.
func (e *Etcd) Done() <-chan struct{} { return e.process.done }

// Close stops etcd, waits for its end and removes a temporary state folder. Every API server that uses it must have
// been closed before: without its etcd a server does not end by itself for a long time. It may be called again and
// returns the same error then.
func (e *Etcd) Close() error {
	if e == nil {
		return nil
	}
	return e.close()
}

func (e *Etcd) stop() error {
	sig := syscall.SIGTERM
	if e.folder.temporary {
		sig = syscall.SIGKILL // nothing of it will be read again
	}
	return errors.Join(e.process.stop(sig), e.folder.close())
}
