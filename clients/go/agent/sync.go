package agent

import (
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// Mark is a place in the order of all changes of the view. What is listed after a mark was taken knows all that changed before it.
type Mark uint64

// goneMax is how many removals are remembered at least, of pods and of ReplicaSets.
const goneMax = 10_000

// Mark returns the place that the view is at. Take it before you begin to list, and hand it to [Agent.SyncPods] or [Agent.SyncReplicaSets] with the list.
func (a *Agent) Mark() Mark {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Mark(a.version)
}

// SyncPods takes a whole list of the pods that there are, which began after the mark was taken. What has changed since the mark stays as it is: a pod
// that was created or changed is kept, and a pod that was removed does not come back. Else each pod is taken as it is listed, and one that is not listed
// is removed. A pod without a uid is left out and told as an error; a mark that is too old changes nothing and is an error, too.
func (a *Agent) SyncPods(pods []*v1.Pod, since Mark) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.gonePods.covers(since); err != nil {
		return err
	}
	var faults []error
	listed := map[string]bool{}
	for _, pod := range pods {
		if pod.GetUid() == "" {
			faults = append(faults, fmt.Errorf("pod %s/%s: uid: it is empty", pod.GetNamespace(), pod.GetName()))
			continue
		}
		listed[pod.Uid] = true
		known := a.pods[pod.Uid]
		if known == nil && a.gonePods.at[pod.Uid].version > since || known != nil && versionOf(known.ResourceVersion) > since {
			continue
		}
		if next := proto.CloneOf(pod); known == nil || !isSame(next, known) {
			a.change(&v1.Event{Event: &v1.Event_PodApplied{PodApplied: a.storePod(next)}})
		}
	}
	for uid, known := range a.pods {
		if !listed[uid] && versionOf(known.ResourceVersion) <= since {
			a.dropPod(known)
		}
	}
	return errors.Join(faults...)
}

// SyncReplicaSets takes a whole list of the ReplicaSets that there are, by the rules of [Agent.SyncPods]. One that [Agent.ApplyReplicaSet] would refuse is
// told as an error and stays as it was; the others are taken.
func (a *Agent) SyncReplicaSets(replicaSets []*v1.ReplicaSet, since Mark) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.goneReplicaSets.covers(since); err != nil {
		return err
	}
	var faults []error
	listed := map[string]bool{}
	for _, one := range replicaSets {
		listed[one.GetUid()] = true
		if err := checkReplicaSet(one); err != nil {
			faults = append(faults, err)
			continue
		}
		if a.applied[one.Uid] <= since && a.goneReplicaSets.at[one.Uid].version <= since {
			a.syncReplicaSet(proto.CloneOf(one), since)
		}
	}
	for uid, known := range a.replicaSets {
		if !listed[uid] && a.applied[uid] <= since {
			a.dropReplicaSet(known)
		}
	}
	return errors.Join(faults...)
}

// syncReplicaSet takes a ReplicaSet of a list. The status that was written since the mark is newer than the list's.
func (a *Agent) syncReplicaSet(next *v1.ReplicaSet, since Mark) {
	known := a.replicaSets[next.Uid]
	if known != nil {
		if next.Status == nil || versionOf(known.ResourceVersion) > since {
			next.Status = known.Status
		}
		next.ResourceVersion = known.ResourceVersion
	}
	if known == nil || !proto.Equal(next, known) {
		a.applyReplicaSet(next)
	}
}

// isSame returns whether a listed pod says what is known of it already.
func isSame(listed, known *v1.Pod) bool {
	listed.ResourceVersion = known.ResourceVersion
	if listed.Created == nil {
		listed.Created = known.Created
	}
	return proto.Equal(listed, known)
}

func versionOf(resourceVersion string) Mark {
	version, _ := strconv.ParseUint(resourceVersion, 10, 64)
	return Mark(version)
}

// removal says when something was removed, and whether a delete of ours was answered so.
type removal struct {
	version  Mark
	answered bool
}

// removals are the latest removals by uid. They keep lists and states that began before them from bringing back what is gone.
type removals struct {
	at        map[string]removal
	order     []string
	forgotten Mark // the version of the latest removal that is not remembered any more
}

func (r *removals) add(uid string, removed removal) {
	if _, is := r.at[uid]; !is {
		r.order = append(r.order, uid)
	}
	r.at[uid] = removed
	if len(r.order) > goneMax {
		first := r.order[0]
		r.order = r.order[1:]
		r.forgotten = max(r.forgotten, r.at[first].version)
		delete(r.at, first)
	}
}

// covers returns an error where removals since a mark may have been forgotten.
func (r *removals) covers(since Mark) error {
	if since < r.forgotten {
		return errors.New("the mark is too old: take another one and list again")
	}
	return nil
}
