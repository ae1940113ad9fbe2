package v1beta2

// Types of conditions.
const (
	// ConditionReady of a Kyma: all its modules are ready. Of a Runtime: it can be worked on.
	ConditionReady = "Ready"
	// ConditionReachable of a Kyma: its runtime answers.
	ConditionReachable = "RuntimeReachable"
)

// Reasons of the condition Ready of a Kyma.
const (
	// ReasonAllReady: every module is ready, or left alone on request.
	ReasonAllReady = "AllModulesReady"
	// ReasonProcessing: modules are being installed, changed or waited for.
	ReasonProcessing = "ModulesProcessing"
	// ReasonModuleWarning: a module works, but a person should look.
	ReasonModuleWarning = "ModuleWarning"
	// ReasonModuleError: a module cannot go on without a change by a person.
	ReasonModuleError = "ModuleError"
	// ReasonDeleting: the Kyma is being deleted, and its modules with it.
	ReasonDeleting = "Deleting"
	// ReasonSuspended: spec.suspend is true, and nothing is done.
	ReasonSuspended = "Suspended"
)

// Reasons of the condition RuntimeReachable of a Kyma.
const (
	// ReasonReachable: the runtime answers.
	ReasonReachable = "Reachable"
	// ReasonUnknown: the runtime was not asked yet.
	ReasonUnknown = "Unknown"
	// ReasonUnreachable: no answer comes.
	ReasonUnreachable = "Unreachable"
	// ReasonUnauthorized: the runtime answers 401.
	ReasonUnauthorized = "Unauthorized"
	// ReasonForbidden: the runtime answers 403 to what everything needs.
	ReasonForbidden = "Forbidden"
	// ReasonUnavailable: the runtime answers 429 or 5xx.
	ReasonUnavailable = "Unavailable"
	// ReasonRuntimeMissing: there is no Runtime of the Kyma's name.
	ReasonRuntimeMissing = "RuntimeMissing"
	// ReasonRuntimeNotReady: the Runtime has no kubeconfig yet.
	ReasonRuntimeNotReady = "RuntimeNotReady"
	// ReasonKubeconfigInvalid: the kubeconfig cannot be used.
	ReasonKubeconfigInvalid = "KubeconfigInvalid"
	// ReasonClusterTaken: another Kyma manages the same cluster.
	ReasonClusterTaken = "ClusterTaken"
)

// Reasons of the condition Ready of a Runtime.
const (
	// ReasonProvisioned: the cluster is there and has a kubeconfig.
	ReasonProvisioned = "Provisioned"
	// ReasonProvisioning: the provider is making the cluster.
	ReasonProvisioning = "Provisioning"
	// ReasonProvisionFailed: the provider cannot make the cluster; the message says why.
	ReasonProvisionFailed = "ProvisionFailed"
	// ReasonStopped: the cluster exists and does not run.
	ReasonStopped = "Stopped"
)

// Finalizer keeps Kymas and Runtimes until what they stand for is removed.
const Finalizer = Group + "/mothership"

// ReconcileAnnotation on a Kyma, with a new value, makes everything be checked now, and sources be read again.
const ReconcileAnnotation = Group + "/reconcile"
