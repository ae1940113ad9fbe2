package v1beta2

// Group is the API group of all custom resources.
const Group = "operator.kyma-project.io"

// FieldManager is the one field manager under which Mothership applies objects in runtimes.
const FieldManager = "mothership"

// SystemNamespace is the namespace in every runtime that holds Mothership's own objects: the ApplySet parents.
const SystemNamespace = "mothership-system"

// Names of the ApplySet specification, as kubectl defines them (KEP-3659).
const (
	// ApplySetIDLabel is on the parent; its value is the set's ID.
	ApplySetIDLabel = "applyset.kubernetes.io/id"
	// ApplySetPartOfLabel is on each member; its value is the ID of the set it belongs to.
	ApplySetPartOfLabel = "applyset.kubernetes.io/part-of"
	// ApplySetToolingAnnotation on the parent names the tool that owns the set, as <tool>/<version>.
	ApplySetToolingAnnotation = "applyset.kubernetes.io/tooling"
	// ApplySetGroupKindsAnnotation on the parent lists the members' kinds: Kind.group, comma separated, sorted.
	ApplySetGroupKindsAnnotation = "applyset.kubernetes.io/contains-group-kinds"
	// ApplySetNamespacesAnnotation on the parent lists the members' namespaces other than the parent's own.
	ApplySetNamespacesAnnotation = "applyset.kubernetes.io/additional-namespaces"
	// ApplySetTooling is the value of ApplySetToolingAnnotation for sets of ours.
	ApplySetTooling = "mothership/v1"
)

// Annotations and labels of our own.
const (
	// DigestAnnotation on each applied object is the digest of the object's own bytes, without this annotation.
	DigestAnnotation = Group + "/digest"
	// OwnerAnnotation on an ApplySet parent is the identity of the control plane that owns the set, or
	// EmbeddedOwner.
	OwnerAnnotation = Group + "/control-plane"
	// ModuleAnnotation on an ApplySet parent is "<namespace>/<module>" in clear, for people.
	ModuleAnnotation = Group + "/module"
	// InputDigestAnnotation on an ApplySet parent is the input digest that was last applied to the end.
	InputDigestAnnotation = Group + "/input-digest"
	// BundleDigestAnnotation on an ApplySet parent is the digest of the bundle that was last applied to the end.
	BundleDigestAnnotation = Group + "/bundle-digest"
	// KeepAnnotation with the value "keep" on an object of a module protects it from pruning and from uninstall.
	// Helm's "helm.sh/resource-policy: keep" means the same.
	KeepAnnotation = Group + "/resource-policy"
	// SourceCredentialsLabel with the value "true" on a Secret allows templates to name it as the credentials of a source:
	// whoever writes templates could send any other Secret to a server of his choice.
	SourceCredentialsLabel = Group + "/source-credentials"
)

// EmbeddedOwner is the OwnerAnnotation of sets that `mothership install` or the Go library made without a control
// plane.
const EmbeddedOwner = "embedded"
