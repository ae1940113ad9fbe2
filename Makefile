# Everything a developer or CI runs. `make help` lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# Go modules of this repository. kube has commands without code of ours in them, so it is vetted, never linted or tested.
MODULES := . api bench kube
TESTED  := . api bench

# Packages tested at once. Each may start an API server of 400 MiB, so more is not faster on a small machine.
JOBS     ?= 2
TIMEOUT  ?= 15m
FUZZTIME ?= 1m

# Runtimes of make bench-fleet; FLEETFLAGS are further flags, as -quick.
CLUSTERS   ?= 100
FLEETFLAGS ?=
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GOLANGCI := go tool -modfile=$(CURDIR)/go.tools.mod golangci-lint

##@ Use

.PHONY: demo
demo: kube ## Run a fleet of real API servers: install, damage, repair, upgrade, remove, kill, restart (less than a minute)
	go run ./hack/demo

.PHONY: up
up: kube build ## Start a control plane with three runtimes that stays (make down removes it)
	bin/mothership up --detach --runtimes 3

.PHONY: down
down: build ## Stop what make up started, and remove its state
	bin/mothership down

.PHONY: build
build: ## Build bin/mothership, stamped with the version that git describes
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/mothership ./cmd/mothership

.PHONY: sim
sim: ## Build bin/mothership-sim, the simulator of fleets
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/mothership-sim ./cmd/mothership-sim

.PHONY: kube
kube: ## Build kube-apiserver, kube-controller-manager, etcd and kubectl from source, once (KUBEBUILDER_ASSETS is used instead where set)
	@kube/build.sh >/dev/null

.PHONY: kube-path
kube-path: ## Print the folder of the Kubernetes binaries and nothing else (make -s kube-path)
	@kube/build.sh path

##@ Check

.PHONY: test
test: kube ## Run all tests of all modules; the last line counts them
	go run ./hack/testsum $(addprefix -dir ,$(TESTED)) -- -timeout $(TIMEOUT) -p $(JOBS) $(TESTFLAGS) ./...

.PHONY: lint
lint: ## Run the linters of .golangci.yml (the first run compiles them: about a minute)
	@for dir in $(TESTED); do \
	  echo "lint $$dir"; (cd $$dir && $(GOLANGCI) run --config $(CURDIR)/.golangci.yml ./...); \
	done

.PHONY: verify
verify: ## Check modules, format, vet, lint; regenerate what is generated, and fail if the work tree is dirty
	@hack/verify.sh

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME (default one minute)
	@hack/fuzz.sh $(FUZZTIME)

.PHONY: soak
soak: kube ## Kill a control plane with -9 at ten random moments of installations (two in make test)
	go test ./cmd/mothership -run TestKill -count 1 -v -kills 10

.PHONY: bench-apply
bench-apply: kube build ## Compare installing with Helm, kubectl, fluxcd/pkg/ssa and a bare loop; writes bench/results/apply.json
	cd bench && go run ./apply

.PHONY: bench-control
bench-control: kube ## Measure the control plane: latencies, 1,000 modules, a restart; writes bench/results/control.json
	cd bench && go run ./control

.PHONY: bench-fleet
bench-fleet: kube ## Measure a fleet of CLUSTERS simulated runtimes (default 100); writes bench/results/fleet-CLUSTERS.json
	cd bench && go run ./fleet -clusters $(CLUSTERS) -out results/fleet-$(CLUSTERS).json $(FLEETFLAGS)

##@ Change

.PHONY: generate
generate: ## Regenerate what is generated, and the golden lists
	cd api && go generate ./...
	go generate ./...
	go test ./internal/archtest -update

.PHONY: fmt
fmt: ## Format all Go files
	gofmt -s -w $$(git ls-files --cached --others --exclude-standard '*.go')

.PHONY: clean
clean: ## Remove what was built in this folder; the Kubernetes binaries stay in their cache
	rm -rf bin coverage.* *.test *.out *.pprof

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
