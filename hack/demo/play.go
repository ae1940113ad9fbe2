package main

import "strings"

// act is one thing that a person does, and what must come of it.
type act struct {
	// title says what is shown.
	title string
	// commands are typed one after the other: "mothership …" or "kubectl …".
	commands []string
	// code is the exit code that the last command must have.
	code int
	// note is said afterwards.
	note string
}

// source flags of the modules, as they are typed again and again.
const (
	web    = "--name web --namespace web --set greeting=Welcome"
	shop   = "--name shop --namespace shop --kustomize examples/shop/overlays/prod"
	backup = "--name backup --namespace backup -f examples/backup"
)

// play is the whole demo, in order.
func play(chart string) []act {
	certManager := "--name cert-manager --namespace cert-manager --chart " + chart + " --set crds.enabled=true --set crds.keep=false"
	return []act{
		{
			title:    "Install cert-manager's real chart and wait until it is ready",
			commands: []string{"mothership install " + certManager + " --wait"},
			note:     "Pods are simulated here, and simulated pods answer no webhook: no Certificate is made in this demo.",
		},
		{title: "Install a chart with values", commands: []string{"mothership install --chart examples/web " + web + " --wait"}},
		{title: "Install a kustomization: an overlay over a base beside it", commands: []string{"mothership install " + shop + " --wait"}},
		{title: "Install plain YAML: a definition and a custom resource of it", commands: []string{"mothership install " + backup + " --wait"}},
		{
			title:    "Install again: nothing differs, nothing is written",
			commands: []string{"mothership install " + certManager},
		},
		{
			title: "Damage what is managed, behind its back",
			commands: []string{
				"kubectl -n web set image deployment/web web=docker.io/library/nginx:evil",
				"kubectl -n web delete service web-metrics",
				"kubectl -n web patch secret web-status --type merge -p {\"stringData\":{\"password\":\"stolen\"}}",
			},
		},
		{title: "See what differs: values of Secrets are masked", commands: []string{"mothership diff --chart examples/web " + web}, code: 3},
		{title: "Repair it", commands: []string{"mothership install --chart examples/web " + web + " --wait"}},
		{title: "See that it is whole again", commands: []string{"mothership verify --chart examples/web " + web}},
		{
			title:    "Upgrade it: the next version has a new image and no metrics Service, which is pruned",
			commands: []string{"mothership install --chart examples/web-v2 " + web + " --wait"},
		},
		{
			title:    "Give it a value that its schema refuses",
			commands: []string{"mothership install --chart examples/web " + web + " --set replicas=many"},
			code:     1,
		},
		{
			title: "Uninstall everything: custom resources first, definitions last",
			commands: []string{
				"mothership uninstall --name backup --namespace backup",
				"mothership uninstall --name shop --namespace shop",
				"mothership uninstall --name web --namespace web",
				"mothership uninstall --name cert-manager --namespace cert-manager",
			},
		},
	}
}

// words splits a command as it is typed; the play needs no quotes.
func words(command string) []string { return strings.Fields(command) }
