package schema

import (
	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// setDefaults fills in what the API server would, for the kinds that modules are made of. Kinds that are not here are kept as
// they are written.
func setDefaults(object runtime.Object) {
	switch o := object.(type) {
	case *core.Secret:
		defaultSecret(o)
	case *core.Service:
		defaultService(o)
	case *core.Namespace:
		defaultNamespace(o)
	case *core.Pod:
		defaultPod(&o.Spec)
		defaultRequests(o.Spec.InitContainers)
		defaultRequests(o.Spec.Containers)
		orDefault(&o.Status.Phase, core.PodPending)
	case *core.PersistentVolumeClaim:
		setIfNil(&o.Spec.VolumeMode, core.PersistentVolumeFilesystem)
		orDefault(&o.Status.Phase, core.ClaimPending)
	case *rbac.RoleBinding:
		defaultBinding(&o.RoleRef, o.Subjects)
	case *rbac.ClusterRoleBinding:
		defaultBinding(&o.RoleRef, o.Subjects)
	case *networking.NetworkPolicy:
		defaultNetworkPolicy(&o.Spec)
	case *scheduling.PriorityClass:
		setIfNil(&o.PreemptionPolicy, core.PreemptLowerPriority)
	case *storage.StorageClass:
		setIfNil(&o.ReclaimPolicy, core.PersistentVolumeReclaimDelete)
		setIfNil(&o.VolumeBindingMode, storage.VolumeBindingImmediate)
	case *apiextensions.CustomResourceDefinition:
		defaultDefinition(&o.Spec)
	case *admission.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			defaultWebhook(&w.ClientConfig, w.Rules, &w.FailurePolicy, &w.MatchPolicy, &w.TimeoutSeconds)
			defaultSelectors(&w.NamespaceSelector, &w.ObjectSelector)
		}
	case *admission.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			defaultWebhook(&w.ClientConfig, w.Rules, &w.FailurePolicy, &w.MatchPolicy, &w.TimeoutSeconds)
			defaultSelectors(&w.NamespaceSelector, &w.ObjectSelector)
			setIfNil(&w.ReinvocationPolicy, admission.NeverReinvocationPolicy)
		}
	default:
		defaultWorkload(object)
	}
}

func defaultWorkload(object runtime.Object) {
	switch o := object.(type) {
	case *apps.Deployment:
		defaultDeployment(&o.Spec)
	case *apps.StatefulSet:
		defaultStatefulSet(&o.Spec)
	case *apps.DaemonSet:
		defaultDaemonSet(&o.Spec)
	case *apps.ReplicaSet:
		setIfNil(&o.Spec.Replicas, 1)
		defaultPod(&o.Spec.Template.Spec)
	case *batch.Job:
		defaultJob(&o.Spec)
	case *batch.CronJob:
		orDefault(&o.Spec.ConcurrencyPolicy, batch.AllowConcurrent)
		setIfNil(&o.Spec.Suspend, false)
		setIfNil(&o.Spec.SuccessfulJobsHistoryLimit, 3)
		setIfNil(&o.Spec.FailedJobsHistoryLimit, 1)
		defaultPod(&o.Spec.JobTemplate.Spec.Template.Spec)
	}
}

// orDefault sets what is empty.
func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// setIfNil sets what is not given.
func setIfNil[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func defaultSecret(s *core.Secret) {
	orDefault(&s.Type, core.SecretTypeOpaque)
	if len(s.StringData) > 0 && s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for k, v := range s.StringData {
		s.Data[k] = []byte(v)
	}
	s.StringData = nil
}

func defaultNamespace(n *core.Namespace) {
	orDefault(&n.Status.Phase, core.NamespaceActive)
	if n.Name == "" {
		return
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[core.LabelMetadataName] = n.Name
}

func defaultService(s *core.Service) {
	orDefault(&s.Spec.SessionAffinity, core.ServiceAffinityNone)
	orDefault(&s.Spec.Type, core.ServiceTypeClusterIP)
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		orDefault(&p.Protocol, core.ProtocolTCP)
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if s.Spec.Type == core.ServiceTypeExternalName {
		return
	}
	setIfNil(&s.Spec.InternalTrafficPolicy, core.ServiceInternalTrafficPolicyCluster)
	if s.Spec.Type != core.ServiceTypeClusterIP {
		orDefault(&s.Spec.ExternalTrafficPolicy, core.ServiceExternalTrafficPolicyCluster)
	}
	if s.Spec.Type == core.ServiceTypeLoadBalancer {
		setIfNil(&s.Spec.AllocateLoadBalancerNodePorts, true)
	}
}

func defaultBinding(ref *rbac.RoleRef, subjects []rbac.Subject) {
	orDefault(&ref.APIGroup, rbac.GroupName)
	for i := range subjects {
		if s := &subjects[i]; s.Kind != rbac.ServiceAccountKind {
			orDefault(&s.APIGroup, rbac.GroupName)
		}
	}
}

func defaultNetworkPolicy(s *networking.NetworkPolicySpec) {
	if len(s.PolicyTypes) == 0 {
		s.PolicyTypes = []networking.PolicyType{networking.PolicyTypeIngress}
		if len(s.Egress) > 0 {
			s.PolicyTypes = append(s.PolicyTypes, networking.PolicyTypeEgress)
		}
	}
	for i := range s.Ingress {
		defaultPorts(s.Ingress[i].Ports)
	}
	for i := range s.Egress {
		defaultPorts(s.Egress[i].Ports)
	}
}

func defaultPorts(ports []networking.NetworkPolicyPort) {
	for i := range ports {
		setIfNil(&ports[i].Protocol, core.ProtocolTCP)
	}
}

func defaultDefinition(s *apiextensions.CustomResourceDefinitionSpec) {
	orDefault(&s.Names.Singular, singular(s.Names.Kind))
	orDefault(&s.Names.ListKind, s.Names.Kind+"List")
	if s.Conversion == nil {
		s.Conversion = &apiextensions.CustomResourceConversion{Strategy: apiextensions.NoneConverter}
	}
	if w := s.Conversion.Webhook; w != nil && w.ClientConfig != nil && w.ClientConfig.Service != nil {
		setIfNil(&w.ClientConfig.Service.Port, 443)
	}
}
