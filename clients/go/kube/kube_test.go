package kube

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

func at(seconds int64) metav1.Time { return metav1.Time{Time: time.Unix(seconds, 5)} }

func meta(name, owner string) metav1.ObjectMeta {
	yes := true
	return metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: "uid-of-it", ResourceVersion: "7", Generation: 3, Labels: map[string]string{"app": "web"},
		CreationTimestamp: at(100),
		OwnerReferences: []metav1.OwnerReference{
			{Kind: "Node", Name: "other", UID: "other"},
			{APIVersion: "example.com/v1", Kind: owner, Name: "web", UID: "web-uid", Controller: &yes, BlockOwnerDeletion: &yes},
		},
	}
}

func TestPodHasAllThatDecisionsRead(t *testing.T) {
	always, deleted := corev1.ContainerRestartPolicyAlways, at(900)
	pod := &corev1.Pod{ObjectMeta: meta("web-a", "Pool")}
	pod.DeletionTimestamp = &deleted
	pod.Annotations = map[string]string{deletionCost: "-5", leaving: "soon"}
	pod.Spec = corev1.PodSpec{NodeName: "node-a", InitContainers: []corev1.Container{{Name: "once"}, {Name: "mesh", RestartPolicy: &always}}}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: at(200)},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at(300)},
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
		},
		ContainerStatuses:     []corev1.ContainerStatus{{Name: "a", RestartCount: 2}, {Name: "b", RestartCount: 4}},
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "once", RestartCount: 9}, {Name: "mesh", RestartCount: 3}},
	}
	yes, cost := true, "-5"
	want := &v1.Pod{
		Namespace: "default", Name: "web-a", Uid: "uid-of-it", ResourceVersion: "7", Labels: map[string]string{"app": "web"},
		// The kind is left out: the owner is no ReplicaSet, and its uid decides.
		Controller:        &v1.OwnerReference{ApiVersion: "example.com/v1", Name: "web", Uid: "web-uid", BlockOwnerDeletion: &yes},
		CreationTimestamp: timestamppb.New(time.Unix(100, 0)), DeletionTimestamp: timestamppb.New(time.Unix(900, 0)), NodeName: "node-a",
		Phase: v1.PodPhase_POD_PHASE_RUNNING, Ready: &v1.ReadyCondition{LastTransitionTime: timestamppb.New(time.Unix(300, 0))},
		DeletionCost: &cost, MaxRegularRestarts: 4, MaxSidecarRestarts: 3, DisruptionTarget: true, Leaving: true,
	}
	if got := FromPod(pod); !proto.Equal(got, want) {
		t.Fatalf("%v\n%v", got, want)
	}
	if got := FromPod(&corev1.Pod{}); !proto.Equal(got, &v1.Pod{}) {
		t.Fatal(got)
	}
}

func TestPodSaysWhatItWaitsFor(t *testing.T) {
	waits := func(reasons ...string) (of []corev1.ContainerStatus) {
		for _, reason := range reasons {
			of = append(of, corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}})
		}
		return of
	}
	scheduled := func(message string) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: message}}
	}
	long := strings.Repeat("é", 100)
	for want, status := range map[string]corev1.PodStatus{
		"":                         {ContainerStatuses: waits("ContainerCreating", "PodInitializing", "")},
		"CrashLoopBackOff":         {ContainerStatuses: waits("PodInitializing"), InitContainerStatuses: waits("CrashLoopBackOff"), Conditions: scheduled("")},
		"Evicted":                  {Phase: corev1.PodFailed, Reason: "Evicted", ContainerStatuses: waits("ErrImagePull")},
		"Unschedulable":            {Conditions: scheduled("")},
		"Unschedulable: 0/3 nodes": {Conditions: scheduled("0/3 nodes")},
		"Unschedulable: " + strings.Repeat("é", 55) + "…": {Conditions: scheduled(long)},
	} {
		if got := FromPod(&corev1.Pod{Status: status}).WaitingReason; got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestReplicaSetHasAllThatDecisionsRead(t *testing.T) {
	replicas, terminating := int32(5), int32(1)
	set := &appsv1.ReplicaSet{ObjectMeta: meta("web", "Deployment")}
	set.Annotations = map[string]string{"decree.dev/resume": "now"}
	set.Spec = appsv1.ReplicaSetSpec{Replicas: &replicas, MinReadySeconds: 9, Selector: &metav1.LabelSelector{
		MatchLabels:      map[string]string{"app": "web"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"a"}}},
	}}
	set.Spec.Template.Labels = map[string]string{"app": "web", "tier": "a"}
	set.Status = appsv1.ReplicaSetStatus{
		Replicas: 4, FullyLabeledReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 1, TerminatingReplicas: &terminating, ObservedGeneration: 2,
		Conditions: []appsv1.ReplicaSetCondition{{Type: "ReplicaFailure", Status: "True", LastTransitionTime: at(400), Reason: "r", Message: "m"}},
	}
	yes := true
	want := &v1.ReplicaSet{
		Namespace: "default", Name: "web", Uid: "uid-of-it", ResourceVersion: "7", Generation: 3, Replicas: &replicas, MinReadySeconds: 9,
		Controller: &v1.OwnerReference{ApiVersion: "example.com/v1", Kind: "Deployment", Name: "web", Uid: "web-uid", BlockOwnerDeletion: &yes},
		Selector: &v1.LabelSelector{
			MatchLabels:      map[string]string{"app": "web"},
			MatchExpressions: []*v1.LabelSelectorRequirement{{Key: "tier", Operator: "In", Values: []string{"a"}}},
		},
		TemplateLabels: set.Spec.Template.Labels, Resume: "now",
		Status: &v1.ReplicaSetStatus{
			Replicas: 4, FullyLabeledReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 1, TerminatingReplicas: &terminating, ObservedGeneration: 2,
			Conditions: []*v1.ReplicaSetCondition{{
				Type: "ReplicaFailure", Status: "True", LastTransitionTime: timestamppb.New(time.Unix(400, 0)), Reason: "r", Message: "m",
			}},
		},
	}
	if got := FromReplicaSet(set); !proto.Equal(got, want) {
		t.Fatalf("%v\n%v", got, want)
	}
}
