package main

import (
	"fmt"
	"maps"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

type apiFault struct {
	// FailCreatesFrom: the k-th create call (1-based) and all later ones fail.
	FailCreatesFrom int    `json:"failCreatesFrom,omitempty"`
	CreateError     string `json:"createError,omitempty"`
	// FailDeletes: pod names whose delete call fails.
	FailDeletes []string `json:"failDeletes,omitempty"`
	DeleteError string   `json:"deleteError,omitempty"`
	// LiveDeletionTimestamp: a live read of the ReplicaSet shows a deletion timestamp that the cache does not.
	LiveDeletionTimestamp bool `json:"liveDeletionTimestamp,omitempty"`
	// LiveUID: a live read shows another object under the same name.
	LiveUID bool `json:"liveUid,omitempty"`
}

type expected struct {
	Error bool `json:"error"`
	// CreateCalls: the number of attempted creates; Created: the number that succeeded.
	CreateCalls int `json:"createCalls"`
	Created     int `json:"created"`
	DeleteCount int `json:"deleteCount"`
	// Deletes is absent where the order is not a strict total order over the pods (AnyDeletes is then true).
	Deletes    []string               `json:"deletes,omitempty"`
	AnyDeletes bool                   `json:"anyDeletes,omitempty"`
	Adopts     []string               `json:"adopts,omitempty"`
	Releases   []string               `json:"releases,omitempty"`
	Status     *apps.ReplicaSetStatus `json:"status,omitempty"`
	// RequeueAfterSeconds is the time until the next availability check.
	RequeueAfterSeconds *float64 `json:"requeueAfterSeconds,omitempty"`
}

type syncVector struct {
	Name        string             `json:"name"`
	Now         time.Time          `json:"now"`
	Key         string             `json:"key"`
	ReplicaSets []*apps.ReplicaSet `json:"replicaSets"`
	Pods        []*v1.Pod          `json:"pods"`
	Fault       apiFault           `json:"fault"`
	Expected    expected           `json:"expected"`
}

func syncCase(i int) any {
	v := &syncVector{Name: fmt.Sprintf("sync-%04d", i), Now: now, Key: ns + "/web", Pods: []*v1.Pod{}}
	l := map[string]string{"app": "web"}
	if chance(0.4) {
		l["track"] = "stable"
	}
	replicas := int32(rng.Intn(10))
	big := chance(0.03)
	if big {
		replicas = int32(490 + rng.Intn(600))
	}
	rs := newRS("web", l, replicas)
	if chance(0.3) {
		rs.Spec.MinReadySeconds = int32(pick(10, 30, 3600))
	}
	if chance(0.25) {
		rs.Spec.Template.Labels = map[string]string{"extra": "yes"}
		maps.Copy(rs.Spec.Template.Labels, l)
	}
	if chance(0.12) {
		rs.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "site"}}}}
	}
	if chance(0.03) {
		rs.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near", Values: []string{"web"}}}
	}
	if chance(0.02) {
		rs.Spec.Selector = &metav1.LabelSelector{}
	}
	if chance(0.08) {
		rs.DeletionTimestamp = ptr.To(at(5 * time.Second))
		rs.Finalizers = []string{"example.com/hold"}
	}
	siblings := []*apps.ReplicaSet{}
	if chance(0.5) {
		dep := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "site", UID: uid(), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}
		rs.OwnerReferences = []metav1.OwnerReference{dep}
		if chance(0.7) {
			old := newRS("web-old", map[string]string{"app": "web-old"}, 3)
			old.OwnerReferences = []metav1.OwnerReference{dep}
			siblings = append(siblings, old)
		}
	}
	other := newRS("other", map[string]string{"app": "other"}, 2)
	siblings = append(siblings, other)

	tl := rs.Spec.Template.Labels
	count := rng.Intn(14)
	if big {
		count = pick(0, 1, 3, 1100)
	}
	for j := 0; j < count; j++ {
		p := randPod(fmt.Sprintf("web-%d", j), maps.Clone(tl))
		p.OwnerReferences = []metav1.OwnerReference{controllerRef(rs)}
		if chance(0.06) {
			p.Status.Phase = pick(v1.PodSucceeded, v1.PodFailed)
		}
		if chance(0.07) {
			p.DeletionTimestamp = ptr.To(at(3 * time.Second))
			p.Finalizers = []string{"example.com/hold"}
		}
		switch {
		case chance(0.08): // an orphan that matches
			p.OwnerReferences = nil
		case chance(0.05): // an orphan that does not match
			p.OwnerReferences = nil
			p.Labels = map[string]string{"app": "elsewhere"}
		case chance(0.05): // owned, no longer matching: to release
			p.Labels = map[string]string{"app": "elsewhere"}
		case chance(0.05): // owned by another controller
			p.OwnerReferences = []metav1.OwnerReference{controllerRef(other)}
		case chance(0.04): // owned by an earlier object of the same name
			p.OwnerReferences[0].UID = uid()
		case chance(0.04): // owner reference without the controller flag
			p.OwnerReferences[0].Controller = nil
		case chance(0.08): // matches the selector, lacks a template label
			p.Labels = maps.Clone(l)
		}
		v.Pods = append(v.Pods, p)
	}
	for _, s := range siblings {
		for j := rng.Intn(5); j > 0; j-- {
			p := randPod(fmt.Sprintf("%s-%d", s.Name, j), maps.Clone(s.Spec.Template.Labels))
			p.OwnerReferences = []metav1.OwnerReference{controllerRef(s)}
			if chance(0.1) {
				p.Status.Phase = v1.PodSucceeded
			}
			v.Pods = append(v.Pods, p)
		}
	}
	if chance(0.5) {
		rs.Status.ObservedGeneration = rs.Generation
		rs.Status.Replicas = int32(count)
		rs.Status.FullyLabeledReplicas = int32(count)
		if chance(0.3) {
			rs.Status.Conditions = []apps.ReplicaSetCondition{{Type: apps.ReplicaSetReplicaFailure, Status: v1.ConditionTrue, Reason: "FailedCreate", Message: "quota", LastTransitionTime: at(time.Hour)}}
		}
	}
	if chance(*faults) {
		v.Fault = randFault(v.Pods)
	}
	v.ReplicaSets = append([]*apps.ReplicaSet{rs}, siblings...)
	run(v)
	if v.Expected.AnyDeletes && len(v.Fault.FailDeletes) > 0 {
		// Which deletes fail would be open too.
		v.Fault.FailDeletes, v.Fault.DeleteError = nil, ""
		run(v)
	}
	return v
}

// randFault draws at least one fault of the API.
func randFault(pods []*v1.Pod) apiFault {
	for {
		fault := apiFault{}
		if chance(0.5) {
			fault.FailCreatesFrom = 1 + rng.Intn(6)
			fault.CreateError = pick("forbidden", "namespaceTerminating", "timeout", "invalid")
		}
		if chance(0.4) {
			for _, p := range pods {
				if chance(0.4) {
					fault.FailDeletes = append(fault.FailDeletes, p.Name)
				}
			}
		}
		if len(fault.FailDeletes) > 0 {
			fault.DeleteError = pick("notFound", "forbidden")
		}
		switch {
		case chance(0.15):
			fault.LiveDeletionTimestamp = true
		case chance(0.1):
			fault.LiveUID = true
		}
		if fault.FailCreatesFrom > 0 || len(fault.FailDeletes) > 0 || fault.LiveDeletionTimestamp || fault.LiveUID {
			return fault
		}
	}
}
