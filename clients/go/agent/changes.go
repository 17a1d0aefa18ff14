package agent

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// ApplyPod adds or updates a pod. The last applied state counts, so never apply a state that was read before a change you already
// reported; for lists, use [Agent.SyncPods]. The Agent ignores a pod whose delete has succeeded.
//
// If the Agent created the pod, ApplyPod fills in empty labels and an empty controller. It refuses an active pod that its ReplicaSet would not
// select, because the server would replace it endlessly. The error names the pod and the label, and the view keeps the earlier state. To
// take a pod away from its ReplicaSet, call [Agent.RemovePod], and apply the pod without a controller. It also refuses an active pod without labels
// and controller whose name the server has chosen for a ReplicaSet, unless the Agent created or released the pod.
func (a *Agent) ApplyPod(pod *v1.Pod) error {
	if err := checkReported(pod); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gonePods.at[pod.Uid].answered {
		return nil
	}
	next := proto.CloneOf(pod)
	if err := a.complete(next); err != nil {
		return err
	}
	a.changePod(next)
	return nil
}

// RemovePod removes a pod from the view. A list that is behind does not bring it back.
func (a *Agent) RemovePod(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, is := a.view.pods[uid]; is {
		a.dropPod(known, true)
	} else if !a.gonePods.at[uid].answered {
		a.version++
		a.rememberGone(uid, removal{version: Mark(a.version), told: a.now()})
	}
}

// ApplyReplicaSet adds or updates a ReplicaSet. Without a status, the last written status stays. The generation must grow with each change.
//
// Like the Kubernetes API server, it refuses a ReplicaSet whose selector is empty, is invalid, or does not match the labels of the template.
// The error names the field, and the view keeps the earlier ReplicaSet. It refuses a new ReplicaSet if the view has pods of it that it would not
// select, as [Agent.ApplyPod] does.
func (a *Agent) ApplyReplicaSet(replicaSet *v1.ReplicaSet) error {
	if err := checkReplicaSet(replicaSet); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	next := proto.CloneOf(replicaSet)
	if known := a.replicaSets[next.Uid]; known != nil && next.Status == nil {
		next.Status = known.Status
	}
	return a.applyReplicaSet(next)
}

// RemoveReplicaSet removes a ReplicaSet from the view.
func (a *Agent) RemoveReplicaSet(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, is := a.replicaSets[uid]; is {
		a.dropReplicaSet(known)
	} else {
		a.version++
		a.goneReplicaSets.add(uid, removal{version: Mark(a.version)}, a.now())
	}
}

// Scale sets the desired number of pods of a ReplicaSet, and increments its generation. It returns false if the view has no such ReplicaSet.
func (a *Agent) Scale(uid string, replicas int32) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, is := a.replicaSets[uid]
	if is {
		next := proto.CloneOf(known)
		next.Replicas = &replicas
		next.Generation++
		_ = a.applyReplicaSet(next) // Only a new one can be refused.
	}
	return is
}

// Synced says that the view has all existing pods. Call it after you have applied them one by one; the first [Agent.SyncPods] without an error
// does the same. Until then the server decides nothing, because it would create the pods that are missing in the view again.
func (a *Agent) Synced() {
	a.locked(a.markSynced)
}

// markSynced opens the lists of the session. The caller holds the lock of the Agent, as for all functions below.
func (a *Agent) markSynced() {
	a.synced = true
	if a.session != nil && !a.session.listed {
		a.session.listAll()
	}
}

// Pods returns the pods of the view, sorted by name. Do not change them.
func (a *Agent) Pods() []*v1.Pod {
	a.mu.Lock()
	pods := slices.Collect(maps.Values(a.view.pods))
	a.mu.Unlock()
	slices.SortFunc(pods, func(one, other *v1.Pod) int {
		return cmp.Or(cmp.Compare(one.Namespace, other.Namespace), cmp.Compare(one.Name, other.Name))
	})
	return pods
}

// changePod stores a pod and sends the change.
func (a *Agent) changePod(pod *v1.Pod) {
	a.change(&v1.Event{Event: &v1.Event_PodApplied{PodApplied: a.storePod(pod)}})
}

// storePod gives a pod the next version and stores it.
func (a *Agent) storePod(pod *v1.Pod) *v1.Pod {
	pod.ResourceVersion = a.nextVersion()
	if pod.CreationTimestamp == nil {
		pod.CreationTimestamp = timestamppb.New(a.now().Truncate(time.Second))
	}
	a.view.put(pod)
	delete(a.gonePods.at, pod.Uid)
	return pod
}

// applyReplicaSet stores a ReplicaSet and sends the change, unless it is new and would not select pods that the view has of it.
func (a *Agent) applyReplicaSet(replicaSet *v1.ReplicaSet) error {
	var pods []*v1.Pod
	if a.replicaSets[replicaSet.Uid] == nil {
		var err error
		if pods, err = a.podsOf(replicaSet); err != nil {
			return err
		}
	}
	replicaSet.ResourceVersion = a.nextVersion()
	a.setReplicaSet(replicaSet.Uid, replicaSet)
	a.applied[replicaSet.Uid] = Mark(a.version)
	delete(a.goneReplicaSets.at, replicaSet.Uid)
	a.change(&v1.Event{Event: &v1.Event_ReplicaSetApplied{ReplicaSetApplied: replicaSet}})
	for _, pod := range pods {
		a.changePod(pod)
	}
	return nil
}

// dropPod removes a pod and sends the change. `told` says that the controller has told its end, not only that a list lacks it.
func (a *Agent) dropPod(pod *v1.Pod, told bool) {
	a.deleted(v1.Kind_KIND_POD, podRef(pod))
	isLeaving := a.isLeaving(pod.Uid)
	a.forgetPod(pod.Uid, told || isLeaving, isLeaving)
}

// forgetPod removes a pod from the view, and remembers how its end is known.
func (a *Agent) forgetPod(uid string, told, answered bool) {
	a.view.take(uid)
	delete(a.origins, uid)
	gone := removal{version: Mark(a.version), answered: answered}
	if told {
		gone.told = a.now()
	}
	a.rememberGone(uid, gone)
}

func (a *Agent) rememberGone(uid string, gone removal) {
	a.gonePods.add(uid, gone, a.now().Add(-a.config.Settle))
}

func (a *Agent) dropReplicaSet(one *v1.ReplicaSet) {
	a.setReplicaSet(one.Uid, nil)
	delete(a.applied, one.Uid)
	a.deleted(v1.Kind_KIND_REPLICA_SET, replicaSetRef(one))
	a.goneReplicaSets.add(one.Uid, removal{version: Mark(a.version)}, a.now())
}

func (a *Agent) deleted(kind v1.Kind, ref *v1.ObjectRef) {
	deleted := &v1.Deleted{Kind: kind, Object: ref, ResourceVersion: a.nextVersion()}
	a.change(&v1.Event{Event: &v1.Event_Deleted{Deleted: deleted}})
}

// dropRemoved removes the pods that were gone before their creates returned. The outcome shows the pod, and an event then removes it.
func (a *Agent) dropRemoved() {
	for _, uid := range a.removed {
		if pod, known := a.view.pods[uid]; known {
			a.dropPod(pod, true)
		}
	}
	a.removed = nil
}

// change sends an event. Before the lists of a session it sends nothing, because they will contain the change.
func (a *Agent) change(event *v1.Event) {
	if a.session != nil && a.session.listed {
		a.session.sendEvent(event)
	}
}

func (a *Agent) nextVersion() string {
	a.version++
	return strconv.FormatUint(a.version, 10)
}

func (a *Agent) locked(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do()
}

func isActive(pod *v1.Pod) bool {
	return pod.DeletionTimestamp == nil && !hasEnded(pod)
}

func hasEnded(pod *v1.Pod) bool {
	return pod.Phase == v1.PodPhase_POD_PHASE_SUCCEEDED || pod.Phase == v1.PodPhase_POD_PHASE_FAILED
}

func podRef(pod *v1.Pod) *v1.ObjectRef {
	return &v1.ObjectRef{Namespace: pod.Namespace, Name: pod.Name, Uid: pod.Uid}
}

func replicaSetRef(one *v1.ReplicaSet) *v1.ObjectRef {
	return &v1.ObjectRef{Namespace: one.Namespace, Name: one.Name, Uid: one.Uid}
}
