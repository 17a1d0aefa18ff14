package main

import (
	"fmt"
	"math"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const ns = "default"

// serial makes the uids of a case differ.
var serial int

func uid() types.UID {
	serial++
	return types.UID(fmt.Sprintf("%08x-%04x-4000-8000-%012x", rng.Uint32(), rng.Intn(0xffff), serial))
}

// age returns whole seconds. Their base-2 bucket (in nanoseconds) is the same one and a half seconds later,
// so that a later reading of the clock gives the same order.
func age() time.Duration {
	for {
		d := time.Duration(5+rng.Intn(1<<uint(3+rng.Intn(17)))) * time.Second
		if math.Floor(math.Log2(float64(d))) == math.Floor(math.Log2(float64(d+1500*time.Millisecond))) {
			return d
		}
	}
}

func at(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func randPod(name string, l map[string]string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns, UID: uid(), Labels: l, ResourceVersion: fmt.Sprint(1000 + rng.Intn(9000))}}
	p.CreationTimestamp = at(age())
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "pause"}}
	if chance(0.75) {
		p.Spec.NodeName = pick("node-a", "node-b", "node-c")
	}
	p.Status.Phase = pick(v1.PodPending, v1.PodRunning, v1.PodRunning, v1.PodRunning, v1.PodRunning, v1.PodUnknown)
	if chance(0.05) {
		p.Status.Phase = ""
	}
	if p.Status.Phase == v1.PodRunning && chance(0.8) || chance(0.05) {
		c := v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: at(age())}
		if chance(0.2) {
			c.Status = pick(v1.ConditionFalse, v1.ConditionUnknown)
		}
		if chance(0.04) {
			c.LastTransitionTime = metav1.Time{}
		}
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.PodInitialized, Status: v1.ConditionTrue, LastTransitionTime: at(age())}, c)
	}
	if chance(0.3) {
		p.Annotations = map[string]string{"controller.kubernetes.io/pod-deletion-cost": pick("-100", "0", "5", "100", "2147483647", "-2147483648", "+5", "05", "1e3", "abc", "2147483648", "", " 5")}
	}
	if chance(0.5) {
		for j := rng.Intn(3); j >= 0; j-- {
			cs := v1.ContainerStatus{Name: fmt.Sprintf("c%d", j), RestartCount: int32(pick(0, 0, 1, 3, 7))}
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, cs)
		}
	}
	if chance(0.15) {
		p.Status.InitContainerStatuses = []v1.ContainerStatus{{Name: "init", RestartCount: int32(pick(0, 2, 9))}}
		if chance(0.5) {
			p.Spec.InitContainers = []v1.Container{{Name: "init", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}}
		}
	}
	return p
}

func newRS(name string, l map[string]string, replicas int32) *apps.ReplicaSet {
	rs := &apps.ReplicaSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns, UID: uid(), ResourceVersion: "10", Generation: int64(1 + rng.Intn(3)), CreationTimestamp: at(48 * time.Hour)},
		Spec: apps.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: l},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: l}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "pause"}}}}},
	}
	return rs
}

func controllerRef(rs *apps.ReplicaSet) metav1.OwnerReference {
	return *metav1.NewControllerRef(rs, apps.SchemeGroupVersion.WithKind("ReplicaSet"))
}
