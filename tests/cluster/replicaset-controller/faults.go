package main

import (
	"strconv"
	"strings"
	"sync"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller"
)

// fault is a fault of the controller. Fields that are not set change nothing.
type fault struct {
	// pod and set change objects before the controller sees them.
	pod func(*v1.Pod)
	set func(*apps.ReplicaSet)
	// writes changes the controller's writes to pods. It can use a client of the API server.
	writes func(controller.PodControlInterface, kubernetes.Interface) controller.PodControlInterface
	// status changes a status that the controller writes, and returns whether to write it.
	status func(*apps.ReplicaSet) bool
}

var faults = map[string]fault{
	"ages-reversed":       {pod: reverseAge},
	"assignment-reversed": {pod: reverseAssignment},
	"cost-reversed":       {pod: reverseCost},
	"crowding-reversed":   {pod: crowdOthers},
	"readiness-ignored":   {pod: beReady},
	"restarts-reversed":   {pod: reverseRestarts},

	"creates-one-less": {writes: func(real controller.PodControlInterface, _ kubernetes.Interface) controller.PodControlInterface {
		return &leavesOut{PodControlInterface: real, creates: true}
	}},
	"creates-twice": {writes: func(real controller.PodControlInterface, _ kubernetes.Interface) controller.PodControlInterface {
		return createsTwice{real}
	}},
	"deletes-another": {writes: func(real controller.PodControlInterface, client kubernetes.Interface) controller.PodControlInterface {
		return deletesAnother{real, client, true}
	}},
	"deletes-one-less": {writes: func(real controller.PodControlInterface, _ kubernetes.Interface) controller.PodControlInterface {
		return &leavesOut{PodControlInterface: real, deletes: true}
	}},
	"deletes-one-more": {writes: func(real controller.PodControlInterface, client kubernetes.Interface) controller.PodControlInterface {
		return deletesAnother{real, client, false}
	}},
	"wants-one-less": {set: func(set *apps.ReplicaSet) { *set.Spec.Replicas = max(0, *set.Spec.Replicas-1) }},
	"wants-one-more": {set: func(set *apps.ReplicaSet) { *set.Spec.Replicas++ }},

	"adopts-none":      {pod: hideOrphans},
	"adopts-strangers": {pod: beNoStranger},
	"releases-none":    {pod: keepLabels},
	"releases-own":     {pod: hideFirst()},

	"min-ready-ignored": {set: func(set *apps.ReplicaSet) { set.Spec.MinReadySeconds = 0 }},
	"status-left-out":   {status: func(*apps.ReplicaSet) bool { return false }},
	"status-of-before":  {status: func(set *apps.ReplicaSet) bool { set.Status.ObservedGeneration--; return true }},
	"status-too-good":   {status: func(set *apps.ReplicaSet) bool { set.Status.ReadyReplicas = set.Status.Replicas; return true }},
}

// began is the center for reversing ages: a pod that has been ready for an hour looks newly ready, and the other way round.
var began = time.Now()

func reverseAge(pod *v1.Pod) {
	for at := range pod.Status.Conditions {
		since := &pod.Status.Conditions[at].LastTransitionTime
		*since = metav1.NewTime(began.Add(began.Sub(since.Time) - time.Hour).Truncate(time.Second))
	}
}

func reverseAssignment(pod *v1.Pod) {
	if pod.Spec.NodeName == "" {
		pod.Spec.NodeName = "node"
	} else {
		pod.Spec.NodeName = ""
	}
}

func reverseCost(pod *v1.Pod) {
	if cost, err := strconv.Atoi(pod.Annotations[v1.PodDeletionCost]); err == nil {
		pod.Annotations[v1.PodDeletionCost] = strconv.Itoa(-cost)
	}
}

func reverseRestarts(pod *v1.Pod) {
	for at := range pod.Status.ContainerStatuses {
		restarts := &pod.Status.ContainerStatuses[at].RestartCount
		*restarts = 1000 - *restarts
	}
}

// crowdOthers moves the pods that crowd a node to the other nodes of their kind.
func crowdOthers(pod *v1.Pod) {
	if pod.Spec.NodeName != "" && pod.GenerateName == "crowding-" {
		pod.Spec.NodeName = []string{"node-b", "node-c"}[pod.Name[len(pod.Name)-1]%2]
	}
}

func beReady(pod *v1.Pod) {
	for at := range pod.Status.Conditions {
		pod.Status.Conditions[at].Status = v1.ConditionTrue
	}
}

// beNoStranger labels a pod that only looks like a pod of a ReplicaSet with the label of real ones.
func beNoStranger(pod *v1.Pod) {
	if alike, is := strings.CutSuffix(pod.Labels["app"], "-stranger"); is {
		pod.Labels["app"] = alike
	}
}

func hideOrphans(pod *v1.Pod) {
	if metav1.GetControllerOf(pod) == nil {
		pod.Labels = nil
	}
}

// keepLabels restores the label that a pod got from its ReplicaSet.
func keepLabels(pod *v1.Pod) {
	if made := strings.TrimSuffix(pod.GenerateName, "-"); made != "" {
		pod.Labels["app"] = made
	}
}

// hideFirst removes the labels of the first pod of each ReplicaSet.
func hideFirst() func(*v1.Pod) {
	var mutex sync.Mutex
	first := map[types.UID]types.UID{}
	return func(pod *v1.Pod) {
		mutex.Lock()
		defer mutex.Unlock()
		if owner := metav1.GetControllerOf(pod); owner != nil && first[owner.UID] == "" {
			first[owner.UID] = pod.UID
			first[pod.UID] = pod.UID
		}
		if first[pod.UID] == pod.UID {
			pod.Labels = nil
		}
	}
}
