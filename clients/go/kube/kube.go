// Package kube projects objects of Kubernetes to those of the contract, for a controller of your own kind that asks Decree which pods to create and
// to delete.
package kube

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// The annotations that decisions read. The second announces the eviction of its pod, with any value but false.
const (
	deletionCost = "controller.kubernetes.io/pod-deletion-cost"
	leaving      = "decree.dev/leaving"
)

// FromPod returns the fields of a pod that decisions read. The kind of its controller is left out, so that the uid alone decides to which object the
// pod belongs: your own kind can be its owner.
func FromPod(pod *corev1.Pod) *v1.Pod {
	projected := &v1.Pod{
		Namespace: pod.Namespace, Name: pod.Name, Uid: string(pod.UID), ResourceVersion: pod.ResourceVersion, Labels: pod.Labels,
		Controller: controller(pod), CreationTimestamp: fromTime(&pod.CreationTimestamp), DeletionTimestamp: fromTime(pod.DeletionTimestamp),
		NodeName: pod.Spec.NodeName, Phase: phases[pod.Status.Phase],
	}
	if projected.Controller != nil {
		projected.Controller.Kind = ""
	}
	if cost, is := pod.Annotations[deletionCost]; is {
		projected.DeletionCost = &cost
	}
	if value, is := pod.Annotations[leaving]; is {
		projected.Leaving = value != "false"
	}
	for _, condition := range pod.Status.Conditions {
		isTrue := condition.Status == corev1.ConditionTrue
		switch condition.Type {
		case corev1.DisruptionTarget:
			projected.DisruptionTarget = projected.DisruptionTarget || isTrue
		case corev1.PodReady:
			// The first condition says whether the pod is ready, and the first that is true since when: they differ if the condition is there twice.
			if projected.Ready == nil {
				projected.Ready = &v1.ReadyCondition{Ready: isTrue}
			}
			if isTrue && projected.Ready.LastTransitionTime == nil {
				projected.Ready.LastTransitionTime = fromTime(&condition.LastTransitionTime)
			}
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		projected.MaxRegularRestarts = max(projected.MaxRegularRestarts, status.RestartCount)
	}
	for _, status := range pod.Status.InitContainerStatuses {
		if isSidecar(pod, status.Name) {
			projected.MaxSidecarRestarts = max(projected.MaxSidecarRestarts, status.RestartCount)
		}
	}
	projected.WaitingReason = waitingReason(pod)
	return projected
}

// waitingMax is the maximum length of a waiting reason, in bytes.
const waitingMax = 128

// waitingReason says for people what a pod waits for, or how it ended; it is empty if nothing is known.
func waitingReason(pod *corev1.Pod) string {
	text := ""
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		text = pod.Status.Reason
	} else if text = containerWaits(pod.Status); text == "" && pod.Spec.NodeName == "" {
		for _, one := range pod.Status.Conditions {
			if one.Type == corev1.PodScheduled && one.Status == corev1.ConditionFalse && one.Reason == corev1.PodReasonUnschedulable {
				text = strings.TrimSuffix(one.Reason+": "+one.Message, ": ")
			}
		}
	}
	if len(text) > waitingMax {
		text = strings.ToValidUTF8(text[:waitingMax-len("…")], "") + "…"
	}
	return text
}

// containerWaits returns the first reason for which a container waits, other than those of every start.
func containerWaits(status corev1.PodStatus) string {
	for _, one := range slices.Concat(status.ContainerStatuses, status.InitContainerStatuses) {
		if waits := one.State.Waiting; waits != nil && waits.Reason != "ContainerCreating" && waits.Reason != "PodInitializing" && waits.Reason != "" {
			return waits.Reason
		}
	}
	return ""
}

// FromReplicaSet returns the fields of a ReplicaSet that decisions read, but no preferences: it ignores their annotations. Set Preferences yourself.
func FromReplicaSet(set *appsv1.ReplicaSet) *v1.ReplicaSet {
	projected := &v1.ReplicaSet{
		Namespace: set.Namespace, Name: set.Name, Uid: string(set.UID), ResourceVersion: set.ResourceVersion, Generation: set.Generation,
		DeletionTimestamp: fromTime(set.DeletionTimestamp), Controller: controller(set), Replicas: set.Spec.Replicas,
		MinReadySeconds: set.Spec.MinReadySeconds, Selector: FromSelector(set.Spec.Selector), TemplateLabels: set.Spec.Template.Labels,
		Resume: set.Annotations["decree.dev/resume"],
		Status: &v1.ReplicaSetStatus{
			Replicas: set.Status.Replicas, FullyLabeledReplicas: set.Status.FullyLabeledReplicas, ReadyReplicas: set.Status.ReadyReplicas,
			AvailableReplicas: set.Status.AvailableReplicas, TerminatingReplicas: set.Status.TerminatingReplicas,
			ObservedGeneration: set.Status.ObservedGeneration,
		},
	}
	for _, one := range set.Status.Conditions {
		projected.Status.Conditions = append(projected.Status.Conditions, &v1.ReplicaSetCondition{
			Type: string(one.Type), Status: string(one.Status), LastTransitionTime: fromTime(&one.LastTransitionTime),
			Reason: one.Reason, Message: one.Message,
		})
	}
	return projected
}

// FromSelector returns a selector as the contract has it.
func FromSelector(selector *metav1.LabelSelector) *v1.LabelSelector {
	if selector == nil {
		return nil
	}
	projected := &v1.LabelSelector{MatchLabels: selector.MatchLabels}
	for _, one := range selector.MatchExpressions {
		projected.MatchExpressions = append(projected.MatchExpressions, &v1.LabelSelectorRequirement{
			Key: one.Key, Operator: string(one.Operator), Values: one.Values,
		})
	}
	return projected
}

var phases = map[corev1.PodPhase]v1.PodPhase{
	corev1.PodPending: v1.PodPhase_POD_PHASE_PENDING, corev1.PodUnknown: v1.PodPhase_POD_PHASE_UNKNOWN,
	corev1.PodRunning: v1.PodPhase_POD_PHASE_RUNNING, corev1.PodSucceeded: v1.PodPhase_POD_PHASE_SUCCEEDED,
	corev1.PodFailed: v1.PodPhase_POD_PHASE_FAILED,
}

func controller(object metav1.Object) *v1.OwnerReference {
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return nil
	}
	return &v1.OwnerReference{
		ApiVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, Uid: string(owner.UID), BlockOwnerDeletion: owner.BlockOwnerDeletion,
	}
}

// fromTime returns a time to the second, as the API server has it; the zero time is absent.
func fromTime(of *metav1.Time) *timestamppb.Timestamp {
	if of.IsZero() {
		return nil
	}
	return timestamppb.New(of.Truncate(time.Second))
}

func isSidecar(pod *corev1.Pod, name string) bool {
	for _, container := range pod.Spec.InitContainers {
		if container.Name == name {
			return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
		}
	}
	return false
}
