package agent

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// defaultSettle is the time by which lists can be behind.
const defaultSettle = time.Minute

// origin is what the Agent knows about a pod that no list tells: that it created, adopted or deletes the pod.
type origin struct {
	owned   bool      // created or adopted, and not released
	unseen  bool      // created, and in no list yet
	created time.Time // when its create returned
	leaving bool      // its delete has answered with the pod that is being deleted
}

func (a *Agent) originOf(uid string) *origin {
	known := a.origins[uid]
	if known == nil {
		known = &origin{}
		a.origins[uid] = known
	}
	return known
}

// isSettling returns whether lists may not show a pod yet that the Agent created.
func (a *Agent) isSettling(uid string) bool {
	origin := a.origins[uid]
	return origin != nil && origin.unseen && a.now().Sub(origin.created) < a.config.Settle
}

func (a *Agent) isLeaving(uid string) bool {
	origin := a.origins[uid]
	return origin != nil && origin.leaving
}

// isOutdated returns whether a list that began after the mark may show a pod that is gone: it began before the removal, or is behind.
func (a *Agent) isOutdated(uid string, since Mark) bool {
	gone, is := a.gonePods.at[uid]
	return is && (gone.version > since || !gone.told.IsZero() && a.now().Sub(gone.told) < a.config.Settle)
}

// complete fills in what the controller has not recorded of a pod of this Agent, and checks that its ReplicaSet would select the pod.
func (a *Agent) complete(pod *v1.Pod) error {
	if known := a.view.pods[pod.Uid]; known != nil {
		a.fillIn(pod, known)
	}
	if owner := a.replicaSets[a.view.creating[podName{pod.Namespace, pod.Name}]]; owner != nil && isBare(pod) {
		pod.Labels, pod.Controller = maps.Clone(owner.TemplateLabels), controllerRef(owner)
		a.originOf(pod.Uid).owned = true
	}
	if owner := a.replicaSets[pod.Controller.GetUid()]; owner != nil {
		return belong(pod, owner)
	}
	if isBare(pod) {
		return a.checkBare(pod)
	}
	return nil
}

// isBare returns whether nothing but its name tells whose pod it is.
func isBare(pod *v1.Pod) bool { return len(pod.Labels) == 0 && pod.Controller.GetUid() == "" }

// checkBare refuses a bare pod with a name of the server: whoever lists it forgets labels and controllers, and all pods would be created again.
func (a *Agent) checkBare(pod *v1.Pod) error {
	base, is := baseOf(pod.Name)
	if !is {
		return nil
	}
	for _, uid := range a.bases[podName{pod.Namespace, base}] {
		if err := a.belongBare(pod, a.replicaSets[uid]); err != nil {
			return err
		}
	}
	return nil
}

// belongBare checks a bare pod whose name is that of a ReplicaSet. This Agent may have released it.
func (a *Agent) belongBare(pod *v1.Pod, owner *v1.ReplicaSet) error {
	if a.origins[pod.Uid] != nil {
		return nil
	}
	next := proto.CloneOf(pod)
	next.Controller = controllerRef(owner)
	return belong(next, owner)
}

// podsOf returns the pods that named a new ReplicaSet as their controller before it was there, as far as their reference changes.
func (a *Agent) podsOf(owner *v1.ReplicaSet) (changed []*v1.Pod, err error) {
	var faults []error
	for _, base := range basesOf(owner) {
		a.view.each(a.view.bare[podName{owner.Namespace, base}], func(pod *v1.Pod) {
			faults = append(faults, a.belongBare(pod, owner))
		})
	}
	a.view.each(a.view.owned[owner.Uid], func(pod *v1.Pod) {
		next := proto.CloneOf(pod)
		if err := belong(next, owner); err != nil {
			faults = append(faults, err)
		} else if !isSameOwner(next.Controller, pod.Controller, false) {
			changed = append(changed, next)
		}
	})
	return changed, errors.Join(faults...)
}

// setReplicaSet stores the state of a ReplicaSet, or removes it.
func (a *Agent) setReplicaSet(uid string, next *v1.ReplicaSet) {
	if known := a.replicaSets[uid]; known != nil {
		for _, base := range basesOf(known) {
			key := podName{known.Namespace, base}
			if a.bases[key] = slices.DeleteFunc(a.bases[key], func(other string) bool { return other == uid }); len(a.bases[key]) == 0 {
				delete(a.bases, key)
			}
		}
		delete(a.replicaSets, uid)
	}
	if next != nil {
		a.replicaSets[uid] = next
		for _, base := range basesOf(next) {
			key := podName{next.Namespace, base}
			a.bases[key] = append(a.bases[key], uid)
		}
	}
}

// belong completes the reference of a pod to its ReplicaSet, and checks that the ReplicaSet would select the pod.
func belong(pod *v1.Pod, owner *v1.ReplicaSet) error {
	if !isActive(pod) {
		return nil
	}
	controller := pod.Controller
	why := ""
	if controller.Kind == "" {
		controller.Kind = ownerKind
	}
	if controller.Name == "" {
		controller.Name = owner.Name
	}
	switch {
	case controller.Kind != ownerKind:
		why = fmt.Sprintf("controller.kind: it is %q, and its uid is that of a ReplicaSet", controller.Kind)
	case controller.Name != owner.Name:
		why = fmt.Sprintf("controller.name: it is %q, and the ReplicaSet of its uid is %q", controller.Name, owner.Name)
	case pod.Namespace != owner.Namespace:
		why = fmt.Sprintf("namespace: it is %q, and that of its ReplicaSet is %q", pod.Namespace, owner.Namespace)
	default:
		if label := mismatch(owner.Selector, pod.Labels); label != "" {
			why = fmt.Sprintf("labels: the selector of ReplicaSet %s does not match them: %s", owner.Name, label)
		}
	}
	if why != "" {
		return fmt.Errorf("pod %s/%s: %s", pod.Namespace, pod.Name, why)
	}
	return nil
}

func (a *Agent) fillIn(pod, known *v1.Pod) {
	origin := a.origins[pod.Uid]
	if origin == nil {
		return
	}
	if origin.owned && len(pod.Labels) == 0 {
		pod.Labels = known.Labels
	}
	if origin.owned && pod.Controller.GetUid() == "" {
		pod.Controller = proto.CloneOf(known.Controller)
	}
	if origin.leaving && pod.DeletionTimestamp == nil {
		pod.DeletionTimestamp = known.DeletionTimestamp
	}
}

// isNews returns whether a listed pod differs from the known one, apart from its version and from what the Agent fills in.
func (a *Agent) isNews(listed, known *v1.Pod) bool {
	origin := a.origins[listed.Uid]
	owned, leaving := origin != nil && origin.owned, origin != nil && origin.leaving
	hasLabels := owned && len(listed.Labels) == 0 || maps.Equal(listed.Labels, known.Labels)
	isNamed := a.replicaSets[listed.Controller.GetUid()] != nil // belong fills in an empty kind and name
	hasController := owned && listed.Controller.GetUid() == "" || isSameOwner(listed.Controller, known.Controller, isNamed)
	hasDeleted := leaving && listed.DeletionTimestamp == nil || isSameTime(listed.DeletionTimestamp, known.DeletionTimestamp)
	hasCreated := listed.CreationTimestamp == nil || isSameTime(listed.CreationTimestamp, known.CreationTimestamp)
	return !(hasLabels && hasController && hasDeleted && hasCreated && isSameState(listed, known))
}

// isSameState compares all other fields of two pods. It is a tenth of the cost of proto.Equal, for each pod of each list.
func isSameState(one, other *v1.Pod) bool {
	return one.Namespace == other.Namespace && one.Name == other.Name && one.NodeName == other.NodeName && one.Phase == other.Phase &&
		(one.Ready == nil) == (other.Ready == nil) && one.Ready.GetReady() == other.Ready.GetReady() &&
		isSameTime(one.Ready.GetLastTransitionTime(), other.Ready.GetLastTransitionTime()) &&
		(one.DeletionCost == nil) == (other.DeletionCost == nil) && one.GetDeletionCost() == other.GetDeletionCost() &&
		(one.AdvisedCost == nil) == (other.AdvisedCost == nil) && one.GetAdvisedCost() == other.GetAdvisedCost() &&
		one.MaxRegularRestarts == other.MaxRegularRestarts && one.MaxSidecarRestarts == other.MaxSidecarRestarts &&
		one.DisruptionTarget == other.DisruptionTarget && one.Leaving == other.Leaving &&
		one.WaitingReason == other.WaitingReason
}

// isSameOwner compares two references. If `isNamed`, an empty kind or name of the first is no difference, as its uid tells both.
func isSameOwner(one, other *v1.OwnerReference, isNamed bool) bool {
	if one == nil || other == nil {
		return one == other
	}
	return one.ApiVersion == other.ApiVersion && one.Uid == other.Uid &&
		(one.Kind == other.Kind || isNamed && one.Kind == "") && (one.Name == other.Name || isNamed && one.Name == "") &&
		(one.BlockOwnerDeletion == nil) == (other.BlockOwnerDeletion == nil) && one.GetBlockOwnerDeletion() == other.GetBlockOwnerDeletion()
}

func isSameTime(one, other *timestamppb.Timestamp) bool {
	return (one == nil) == (other == nil) && one.GetSeconds() == other.GetSeconds() && one.GetNanos() == other.GetNanos()
}

// checkReported refuses a pod that cannot be sent.
func checkReported(pod *v1.Pod) error {
	if pod == nil {
		return errors.New("pod: it is nil")
	}
	if pod.Uid == "" {
		return fmt.Errorf("pod %s/%s: uid: it is empty", pod.Namespace, pod.Name)
	}
	if err := checkText(pod); err != nil {
		return fmt.Errorf("pod %q/%q: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
