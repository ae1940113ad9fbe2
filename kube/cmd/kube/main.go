// Command kube is kube-apiserver, kube-controller-manager and etcd in one
// executable: which of them runs is decided by the name it is called by, so
// that the three are linked once instead of three times. `make kube` installs
// it under all three names.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json, as upstream's own main registers it
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go metrics, as upstream's own main registers them
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	name := filepath.Base(os.Args[0])
	switch name {
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "etcd":
		etcdmain.Main(os.Args)
	default:
		fmt.Fprintf(os.Stderr, "error: called as %q: call this executable as kube-apiserver, kube-controller-manager or etcd\n", name)
		os.Exit(2)
	}
}
