package apitest

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// c is an object and what the server says to it; it is accepted where nothing is wanted.
type c struct {
	name   string // of the case
	object string // its name, if it matters
	spec   string
	want   string
}

// check asks the server about each object, without keeping it.
func check(t *testing.T, kind, name string, cases []c) {
	t.Helper()
	b := setup(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.object == "" {
				c.object = name
			}
			_, err := b.create(t, object(t, kind, c.object, c.spec), metav1.DryRunAll)
			if (c.want == "") != (err == nil) || !strings.Contains(text(err), c.want) {
				t.Errorf("the server says %q, want %q", text(err), c.want)
			}
		})
	}
}

func TestKyma(t *testing.T) {
	t.Parallel()
	check(t, "Kyma", "one", []c{
		{name: "Minimal", spec: `{channel: regular}`},
		{name: "Full", spec: `{channel: regular, suspend: true, skipMaintenanceWindows: true, modules: [
			{name: web, channel: fast, managed: false, customResourcePolicy: Ignore, values: {replicas: 2, nested: {a: [1]}},
			 valuesFrom: [{kind: Secret, name: s, key: k.yaml, optional: true}, {kind: ConfigMap, name: c}]},
			{name: db, version: v1.2.3-rc.1+build.5}]}`},
		{name: "NoSpec", want: `spec: Required value`},
		{name: "NoChannel", spec: `{modules: []}`, want: `spec.channel: Required value`},
		{name: "ChannelInUpperCase", spec: `{channel: Regular}`, want: `spec.channel: Invalid value: "Regular": a channel's name has lower-case letters only`},
		{name: "ChannelTooShort", spec: `{channel: x}`, want: `spec.channel in body should be at least 3 chars long`},
		{name: "ModuleTwice", spec: `{channel: regular, modules: [{name: web}, {name: web, channel: fast}]}`, want: `spec.modules[1]: Duplicate value: {"name":"web"}`},
		{name: "ModuleWithoutName", spec: `{channel: regular, modules: [{channel: fast}]}`, want: `spec.modules[0].name: Required value`},
		{name: "ModuleNameNotALabel", spec: `{channel: regular, modules: [{name: My_Module}]}`, want: `spec.modules[0].name: Invalid value: "My_Module": a module's name has lower-case letters, digits and dashes`},
		{name: "ChannelAndVersion", spec: `{channel: regular, modules: [{name: web, channel: fast, version: 1.0.0}]}`, want: `spec.modules[0]: Invalid value: set channel or version, not both`},
		{name: "VersionNotSemantic", spec: `{channel: regular, modules: [{name: web, version: "1.2"}]}`, want: `spec.modules[0].version: Invalid value: "1.2": a version has three numbers, such as 1.2.3`},
		{name: "UnknownPolicy", spec: `{channel: regular, modules: [{name: web, customResourcePolicy: Keep}]}`, want: `spec.modules[0].customResourcePolicy: Unsupported value: "Keep": supported values: "CreateAndDelete", "Ignore"`},
		{name: "ValuesAList", spec: `{channel: regular, modules: [{name: web, values: [1]}]}`, want: `spec.modules[0].values in body must be of type object: "array"`},
		{name: "ValuesFromPod", spec: `{channel: regular, modules: [{name: web, valuesFrom: [{kind: Pod, name: p}]}]}`, want: `spec.modules[0].valuesFrom[0].kind: Unsupported value: "Pod": supported values: "Secret", "ConfigMap"`},
		{name: "ValuesFromNothing", spec: `{channel: regular, modules: [{name: web, valuesFrom: [{kind: Secret}]}]}`, want: `spec.modules[0].valuesFrom[0].name: Required value`},
		{name: "ValuesFromBadKey", spec: `{channel: regular, modules: [{name: web, valuesFrom: [{kind: Secret, name: s, key: a/b}]}]}`, want: `spec.modules[0].valuesFrom[0].key: Invalid value: "a/b": a key has letters, digits, dots, dashes and underscores only`},
		{name: "UnknownField", spec: `{channel: regular, modules: [{name: web, replicas: 3}]}`, want: `unknown field "spec.modules[0].replicas"`},
		{name: "TooManyModules", spec: `{channel: regular, modules: [` + modules(1025) + `]}`, want: `spec.modules: Too many: 1025: must have at most 1024 items`},
		{name: "ManyModules", spec: `{channel: regular, modules: [` + modules(1024) + `]}`},
	})
}

// modules are n modules with different names.
func modules(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("{name: m%d}", i)
	}
	return strings.Join(names, ", ")
}

func TestModuleTemplate(t *testing.T) {
	t.Parallel()
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	minimal := func(more string) string {
		return `{moduleName: web, version: 1.0.0, source: {chart: {path: charts/web}}` + more + `}`
	}
	source := func(s string) string { return `{moduleName: web, version: 1.0.0, source: ` + s + `}` }
	named := func(module, version string) string {
		return `{moduleName: ` + module + `, version: ` + version + `, source: {chart: {path: web}}}`
	}
	check(t, "ModuleTemplate", "web-1.0.0", []c{
		{name: "Minimal", spec: minimal("")},
		{name: "Kustomize", spec: source(`{kustomize: {url: "https://example.com/web.tgz", path: base, digest: "` + digest + `"}}`)},
		{name: "Manifests", spec: source(`{manifests: {url: "http://127.0.0.1:8080/web.yaml"}}`)},
		{name: "Full", spec: minimal(`, namespace: shop, reconciler: special, values: {a: {b: [1, {c: d}]}}, adopt: true, perRuntime: true, needs: [module.istio, network.vnetName],
			data: {apiVersion: example.com/v1, kind: Web, metadata: {name: default, labels: {a: b}}, spec: {size: 3}},
			manager: {group: example.com, version: v1, kind: Web, name: default, namespace: shop},
			health: [{group: example.com, kind: Web, ready: "self.status.ok", failed: "self.status.broken"}, {kind: Pod, ready: "true"}],
			yield: [{paths: [/spec/replicas]}, {group: apps, kind: Deployment, name: web, paths: ["/spec/template/metadata/annotations/*"]}]`)},
		{name: "PrereleaseInName", object: "my-web-v1.0.0-rc.1", spec: named("my-web", "v1.0.0-rc.1")},
		{name: "OtherName", object: "web", spec: minimal(""), want: `metadata: Invalid value: name must be <moduleName>-<version>: web-1.0.0`},
		{name: "NoSpec", want: `spec: Required value`},
		{name: "NoModuleName", spec: `{version: 1.0.0, source: {chart: {path: web}}}`, want: `spec.moduleName: Required value`},
		{name: "NoVersion", spec: `{moduleName: web, source: {chart: {path: web}}}`, want: `spec.version: Required value`},
		{name: "ModuleNameNotALabel", object: "we.b-1.0.0", spec: named("we.b", "1.0.0"), want: `spec.moduleName: Invalid value: "we.b": a module's name has`},
		{name: "VersionNotSemantic", object: "web-latest", spec: named("web", "latest"), want: `a template's version has three numbers and lower-case letters only, such as 1.2.3`},
		{name: "VersionWithBuild", object: "web-1.0.0", spec: named("web", "1.0.0+5"), want: `a template's version has three numbers and lower-case letters only, such as 1.2.3`},
		{name: "VersionInUpperCase", object: "web-1.0.0", spec: named("web", "1.0.0-RC1"), want: `a template's version has three numbers and lower-case letters only, such as 1.2.3`},
		{name: "NoSource", spec: `{moduleName: web, version: 1.0.0}`, want: `spec.source: Required value`},
		{name: "EmptySource", spec: source(`{}`), want: `spec.source: Invalid value: set exactly one of chart, kustomize and manifests`},
		{name: "TwoSources", spec: source(`{chart: {path: a}, manifests: {path: b}}`), want: `spec.source: Invalid value: set exactly one of chart, kustomize and manifests`},
		{name: "Git", spec: source(`{kustomize: {git: {url: "https://example.com/org/repo.git", ref: refs/heads/feature/one, path: config/default}, credentialsRef: {name: git.token}}}`)},
		{name: "GitBySSH", spec: source(`{chart: {git: {url: "ssh://git@example.com:2222/org/repo.git"}, digest: "` + digest + `"}}`)},
		{name: "HelmRepository", spec: source(`{chart: {helm: {repository: "https://charts.example.com", chart: web, version: ">=1.2.0 <2"}, caBundle: "-----BEGIN CERTIFICATE-----"}}`)},
		{name: "OCITag", spec: source(`{chart: {oci: {url: "oci://localhost:5000/charts/web", tag: v1.0.0_1}}}`)},
		{name: "OCIDigest", spec: source(`{manifests: {oci: {url: "oci://registry.example.com/web", digest: "` + digest + `", path: deploy}}}`)},
		{name: "SourceWithoutPlace", spec: source(`{chart: {digest: "` + digest + `"}}`), want: `spec.source.chart: Invalid value: set exactly one of path, url, git, helm and oci`},
		{name: "TwoPlaces", spec: source(`{chart: {path: web, git: {url: "https://example.com/x"}}}`), want: `spec.source.chart: Invalid value: set exactly one of path, url, git, helm and oci`},
		{name: "CredentialsForADisk", spec: source(`{chart: {path: web, credentialsRef: {name: x}}}`), want: `credentialsRef and caBundle are for servers`},
		{name: "CredentialsWithoutName", spec: source(`{chart: {url: "https://example.com/x.tgz", credentialsRef: {}}}`), want: `credentialsRef.name: Required value`},
		{name: "SignedChart", spec: source(`{chart: {helm: {repository: "https://charts.example.com", chart: web}, verify: {keyring: "-----BEGIN PGP PUBLIC KEY BLOCK-----"}}}`)},
		{name: "SignedArtifact", spec: source(`{manifests: {oci: {url: "oci://example.com/web", tag: v1}, verify: {cosignKey: "-----BEGIN PUBLIC KEY-----"}}}`)},
		{name: "NoKeyAtAll", spec: source(`{manifests: {oci: {url: "oci://example.com/web", tag: v1}, verify: {}}}`), want: `set keyring, cosignKey or both`},
		{name: "KeyringNotArmored", spec: source(`{chart: {url: "https://example.com/x.tgz", verify: {keyring: x}}}`), want: `keyring holds armored public keys`},
		{name: "CosignKeyNotPEM", spec: source(`{manifests: {oci: {url: "oci://example.com/web", tag: v1}, verify: {cosignKey: x}}}`), want: `cosignKey is a PEM public key`},
		{name: "KeyringForGit", spec: source(`{chart: {git: {url: "https://example.com/org/repo.git"}, verify: {keyring: "-----BEGIN PGP PUBLIC KEY BLOCK-----"}}}`), want: `verify.keyring is for charts of helm, oci and url`},
		{name: "CosignKeyForHelm", spec: source(`{chart: {helm: {repository: "https://charts.example.com", chart: web}, verify: {cosignKey: "-----BEGIN PUBLIC KEY-----"}}}`), want: `verify.cosignKey is for oci`},
		{name: "CABundleNotPEM", spec: source(`{chart: {url: "https://example.com/x.tgz", caBundle: x}}`), want: `caBundle holds PEM certificates`},
		{name: "GitByHTTP", spec: source(`{chart: {git: {url: "http://example.com/x"}}}`), want: `the url of a Git repository begins with https:// or ssh://`},
		{name: "GitLikeSCP", spec: source(`{chart: {git: {url: "git@example.com:org/repo"}}}`), want: `git@host:org/repo is ssh://git@host/org/repo`},
		{name: "GitWithoutURL", spec: source(`{chart: {git: {ref: main}}}`), want: `git.url: Required value`},
		{name: "GitBadRef", spec: source(`{chart: {git: {url: "https://example.com/x", ref: "-o a"}}}`), want: `ref is the name of a branch or tag`},
		{name: "HelmOfKustomize", spec: source(`{kustomize: {helm: {repository: "https://example.com", chart: web}}}`), want: `a Helm repository holds charts only: set chart`},
		{name: "HelmByOCI", spec: source(`{chart: {helm: {repository: "oci://example.com", chart: web}}}`), want: `a chart in a registry is set as oci`},
		{name: "HelmBadChart", spec: source(`{chart: {helm: {repository: "https://example.com", chart: ../web}}}`), want: `a chart's name has letters`},
		{name: "OCIWithoutTag", spec: source(`{chart: {oci: {url: "oci://example.com/web"}}}`), want: `spec.source.chart.oci: Invalid value: set exactly one of tag and digest`},
		{name: "OCITagInURL", spec: source(`{chart: {oci: {url: "oci://example.com/web:1", tag: "1"}}}`), want: `url is oci://HOST/REPOSITORY, without tag or digest`},
		{name: "OCIBadTag", spec: source(`{chart: {oci: {url: "oci://example.com/web", tag: "1+2"}}}`), want: `a tag has letters`},
		{name: "SourceOnStdin", spec: source(`{manifests: {path: "-"}}`), want: `a template cannot be read from standard input`},
		{name: "SourceByFTP", spec: source(`{chart: {url: "ftp://example.com/web.tgz"}}`), want: `spec.source.chart.url: Invalid value: "ftp://example.com/web.tgz": url begins with http:// or https://`},
		{name: "ShortDigest", spec: source(`{chart: {path: web, digest: "sha256:0123"}}`), want: `a digest is sha256: and 64 hex digits in lower case`},
		{name: "DigestOfOtherKind", spec: source(`{chart: {path: web, digest: "md5:0123456789abcdef0123456789abcdef"}}`), want: `a digest is sha256: and 64 hex digits in lower case`},
		{name: "NamespaceNotALabel", spec: minimal(`, namespace: Kyma_System`), want: `spec.namespace: Invalid value: "Kyma_System": a namespace's name has`},
		{name: "DataWithoutKind", spec: minimal(`, data: {apiVersion: example.com/v1, metadata: {name: x}}`), want: `spec.data.kind: Required value`},
		{name: "DataWithoutAPIVersion", spec: minimal(`, data: {kind: Web, metadata: {name: x}}`), want: `spec.data.apiVersion: Required value`},
		{name: "DataWithoutName", spec: minimal(`, data: {apiVersion: example.com/v1, kind: Web, metadata: {labels: {a: b}}}`), want: `data needs metadata.name`},
		{name: "DataWithoutMetadata", spec: minimal(`, data: {apiVersion: example.com/v1, kind: Web}`), want: `spec.data: Invalid value: data needs metadata.name`},
		{name: "ManagerWithoutKind", spec: minimal(`, manager: {group: example.com, version: v1}`), want: `spec.manager.kind: Required value`},
		{name: "HealthWithoutReady", spec: minimal(`, health: [{kind: Web}]`), want: `spec.health[0].ready: Required value`},
		{name: "YieldWithoutPaths", spec: minimal(`, yield: [{paths: []}]`), want: `spec.yield[0].paths`},
		{name: "YieldNotAPointer", spec: minimal(`, yield: [{paths: [spec.replicas]}]`), want: `spec.yield[0].paths[0]: Invalid value: "spec.replicas": a JSON pointer begins with /`},
		{name: "NeedTwice", spec: minimal(`, needs: [module.a, module.a]`), want: `spec.needs[1]: Duplicate value: "module.a"`},
		{name: "NeedNotAKey", spec: minimal(`, needs: ["module istio"]`), want: `spec.needs[0]: Invalid value: "module istio": the key of a fact has`},
		{name: "UnknownField", spec: minimal(`, descriptor: {}`), want: `unknown field "spec.descriptor"`},
	})
}

func TestModuleReleaseMeta(t *testing.T) {
	t.Parallel()
	check(t, "ModuleReleaseMeta", "web", []c{
		{name: "Channels", spec: `{moduleName: web, channels: [{channel: regular, version: 1.0.0}, {channel: fast, version: 1.1.0-rc1}]}`},
		{name: "Mandatory", spec: `{moduleName: web, mandatory: {version: 1.0.0}, kymaSelector: {matchLabels: {a: b}}}`},
		{name: "NoSpec", want: `spec: Required value`},
		{name: "OtherName", object: "shop", spec: `{moduleName: web, mandatory: {version: 1.0.0}}`, want: `metadata: Invalid value: name must be the same as spec.moduleName`},
		{name: "NoModuleName", spec: `{mandatory: {version: 1.0.0}}`, want: `spec.moduleName: Required value`},
		{name: "Neither", spec: `{moduleName: web}`, want: `spec: Invalid value: set either channels or mandatory`},
		{name: "Both", spec: `{moduleName: web, mandatory: {version: 1.0.0}, channels: [{channel: regular, version: 1.0.0}]}`, want: `spec: Invalid value: set either channels or mandatory`},
		{name: "ChannelTwice", spec: `{moduleName: web, channels: [{channel: regular, version: 1.0.0}, {channel: regular, version: 1.0.1}]}`, want: `spec.channels[1]: Duplicate value: {"channel":"regular"}`},
		{name: "ChannelWithoutVersion", spec: `{moduleName: web, channels: [{channel: regular}]}`, want: `spec.channels[0].version: Required value`},
		{name: "BadChannel", spec: `{moduleName: web, channels: [{channel: Fast-1, version: 1.0.0}]}`, want: `spec.channels[0].channel: Invalid value: "Fast-1": a channel's name has`},
		{name: "BadVersion", spec: `{moduleName: web, channels: [{channel: fast, version: latest}]}`, want: `spec.channels[0].version: Invalid value: "latest": a version has three numbers`},
		{name: "BadMandatoryVersion", spec: `{moduleName: web, mandatory: {version: "1"}}`, want: `spec.mandatory.version: Invalid value: "1": a version has three numbers`},
	})
}

func TestRuntime(t *testing.T) {
	t.Parallel()
	check(t, "Runtime", "eu-1", []c{
		{name: "Local", spec: `{provider: local, driftDetection: Watch}`},
		{name: "ExistingCluster", spec: `{provider: byoc, kubeconfig: {secretRef: {name: eu-1, key: config}}, deletionPolicy: Abandon}`},
		{name: "NoSpec", want: `spec: Required value`},
		{name: "NoProvider", spec: `{}`, want: `spec.provider: Required value`},
		{name: "UnknownProvider", spec: `{provider: moon}`, want: `spec.provider: Unsupported value: "moon": supported values: "local", "byoc"`},
		{name: "ExistingClusterWithoutKubeconfig", spec: `{provider: byoc}`, want: `spec: Invalid value: a byoc runtime needs kubeconfig.secretRef`},
		{name: "KubeconfigWithoutSecret", spec: `{provider: byoc, kubeconfig: {}}`, want: `spec.kubeconfig.secretRef: Required value`},
		{name: "KubeconfigWithoutName", spec: `{provider: byoc, kubeconfig: {secretRef: {key: config}}}`, want: `spec.kubeconfig.secretRef.name: Required value`},
		{name: "KubeconfigInline", spec: `{provider: byoc, kubeconfig: {secretRef: {name: eu-1}, inline: x}}`, want: `unknown field "spec.kubeconfig.inline"`},
		{name: "UnknownDriftDetection", spec: `{provider: local, driftDetection: Agent}`, want: `spec.driftDetection: Unsupported value: "Agent": supported values: "Poll", "Watch"`},
		{name: "UnknownDeletionPolicy", spec: `{provider: local, deletionPolicy: Orphan}`, want: `spec.deletionPolicy: Unsupported value: "Orphan": supported values: "Delete", "Abandon"`},
	})
}
