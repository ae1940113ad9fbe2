package schema

import (
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func defaultDeployment(s *apps.DeploymentSpec) {
	setIfNil(&s.Replicas, 1)
	setIfNil(&s.RevisionHistoryLimit, 10)
	setIfNil(&s.ProgressDeadlineSeconds, 600)
	orDefault(&s.Strategy.Type, apps.RollingUpdateDeploymentStrategyType)
	if s.Strategy.Type == apps.RollingUpdateDeploymentStrategyType {
		if s.Strategy.RollingUpdate == nil {
			s.Strategy.RollingUpdate = &apps.RollingUpdateDeployment{}
		}
		setIfNil(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
		setIfNil(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
	}
	defaultPod(&s.Template.Spec)
}

func defaultStatefulSet(s *apps.StatefulSetSpec) {
	setIfNil(&s.Replicas, 1)
	setIfNil(&s.RevisionHistoryLimit, 10)
	orDefault(&s.PodManagementPolicy, apps.OrderedReadyPodManagement)
	orDefault(&s.UpdateStrategy.Type, apps.RollingUpdateStatefulSetStrategyType)
	if s.UpdateStrategy.Type == apps.RollingUpdateStatefulSetStrategyType {
		if s.UpdateStrategy.RollingUpdate == nil {
			s.UpdateStrategy.RollingUpdate = &apps.RollingUpdateStatefulSetStrategy{}
		}
		setIfNil(&s.UpdateStrategy.RollingUpdate.Partition, 0)
	}
	if s.PersistentVolumeClaimRetentionPolicy == nil {
		s.PersistentVolumeClaimRetentionPolicy = &apps.StatefulSetPersistentVolumeClaimRetentionPolicy{}
	}
	orDefault(&s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, apps.RetainPersistentVolumeClaimRetentionPolicyType)
	orDefault(&s.PersistentVolumeClaimRetentionPolicy.WhenScaled, apps.RetainPersistentVolumeClaimRetentionPolicyType)
	for i := range s.VolumeClaimTemplates {
		setIfNil(&s.VolumeClaimTemplates[i].Spec.VolumeMode, core.PersistentVolumeFilesystem)
		orDefault(&s.VolumeClaimTemplates[i].Status.Phase, core.ClaimPending)
	}
	defaultPod(&s.Template.Spec)
}

func defaultDaemonSet(s *apps.DaemonSetSpec) {
	setIfNil(&s.RevisionHistoryLimit, 10)
	orDefault(&s.UpdateStrategy.Type, apps.RollingUpdateDaemonSetStrategyType)
	if s.UpdateStrategy.Type == apps.RollingUpdateDaemonSetStrategyType {
		if s.UpdateStrategy.RollingUpdate == nil {
			s.UpdateStrategy.RollingUpdate = &apps.RollingUpdateDaemonSet{}
		}
		setIfNil(&s.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
		setIfNil(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	}
	defaultPod(&s.Template.Spec)
}

// defaultJob leaves the selector to where the UID is known.
func defaultJob(s *batch.JobSpec) {
	if s.Completions == nil && s.Parallelism == nil {
		setIfNil(&s.Completions, 1)
	}
	setIfNil(&s.Parallelism, 1)
	setIfNil(&s.BackoffLimit, 6)
	setIfNil(&s.CompletionMode, batch.NonIndexedCompletion)
	setIfNil(&s.Suspend, false)
	setIfNil(&s.ManualSelector, false)
	setIfNil(&s.PodReplacementPolicy, batch.TerminatingOrFailed)
	defaultPod(&s.Template.Spec)
}

func defaultPod(s *core.PodSpec) {
	orDefault(&s.DNSPolicy, core.DNSClusterFirst)
	orDefault(&s.RestartPolicy, core.RestartPolicyAlways)
	orDefault(&s.SchedulerName, core.DefaultSchedulerName)
	setIfNil(&s.TerminationGracePeriodSeconds, core.DefaultTerminationGracePeriodSeconds)
	setIfNil(&s.SecurityContext, core.PodSecurityContext{})
	if s.ServiceAccountName == "" {
		s.ServiceAccountName = s.DeprecatedServiceAccount
	}
	s.DeprecatedServiceAccount = s.ServiceAccountName
	for i := range s.InitContainers {
		defaultContainer(&s.InitContainers[i])
	}
	for i := range s.Containers {
		defaultContainer(&s.Containers[i])
	}
	for i := range s.Volumes {
		defaultVolume(&s.Volumes[i].VolumeSource)
	}
}

// defaultRequests asks for what the limits are: in pods, not in the templates of them.
func defaultRequests(containers []core.Container) {
	for i := range containers {
		r := &containers[i].Resources
		for name, limit := range r.Limits {
			if r.Requests == nil {
				r.Requests = core.ResourceList{}
			}
			if _, ok := r.Requests[name]; !ok {
				r.Requests[name] = limit
			}
		}
	}
}

func defaultContainer(c *core.Container) {
	orDefault(&c.TerminationMessagePath, core.TerminationMessagePathDefault)
	orDefault(&c.TerminationMessagePolicy, core.TerminationMessageReadFile)
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = core.PullIfNotPresent
		if tag := c.Image[strings.LastIndexByte(c.Image, '/')+1:]; !strings.Contains(tag, ":") || strings.HasSuffix(tag, ":latest") {
			c.ImagePullPolicy = core.PullAlways
		}
	}
	for i := range c.Ports {
		orDefault(&c.Ports[i].Protocol, core.ProtocolTCP)
	}
	for i := range c.Env {
		if f := c.Env[i].ValueFrom; f != nil && f.FieldRef != nil {
			orDefault(&f.FieldRef.APIVersion, "v1")
		}
	}
	for _, p := range []*core.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(p)
	}
}

func defaultProbe(p *core.Probe) {
	if p == nil {
		return
	}
	orDefault(&p.TimeoutSeconds, 1)
	orDefault(&p.PeriodSeconds, 10)
	orDefault(&p.SuccessThreshold, 1)
	orDefault(&p.FailureThreshold, 3)
	if p.HTTPGet != nil {
		orDefault(&p.HTTPGet.Path, "/")
		orDefault(&p.HTTPGet.Scheme, core.URISchemeHTTP)
	}
	if p.GRPC != nil {
		setIfNil(&p.GRPC.Service, "")
	}
}

func defaultVolume(v *core.VolumeSource) {
	switch {
	case v.Secret != nil:
		setIfNil(&v.Secret.DefaultMode, core.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		setIfNil(&v.ConfigMap.DefaultMode, core.ConfigMapVolumeSourceDefaultMode)
	case v.HostPath != nil:
		setIfNil(&v.HostPath.Type, core.HostPathUnset)
	case v.DownwardAPI != nil:
		setIfNil(&v.DownwardAPI.DefaultMode, core.DownwardAPIVolumeSourceDefaultMode)
	case v.Projected != nil:
		setIfNil(&v.Projected.DefaultMode, core.ProjectedVolumeSourceDefaultMode)
		for _, s := range v.Projected.Sources {
			if s.ServiceAccountToken != nil {
				setIfNil(&s.ServiceAccountToken.ExpirationSeconds, 3600)
			}
		}
	}
}

func defaultWebhook(
	c *admission.WebhookClientConfig, rules []admission.RuleWithOperations, failure **admission.FailurePolicyType,
	match **admission.MatchPolicyType, timeout **int32,
) {
	setIfNil(failure, admission.Fail)
	setIfNil(match, admission.Equivalent)
	setIfNil(timeout, 10)
	if c.Service != nil {
		setIfNil(&c.Service.Port, 443)
	}
	for i := range rules {
		setIfNil(&rules[i].Scope, admission.AllScopes)
	}
}

func defaultSelectors(selectors ...**metav1.LabelSelector) {
	for _, s := range selectors {
		setIfNil(s, metav1.LabelSelector{})
	}
}
