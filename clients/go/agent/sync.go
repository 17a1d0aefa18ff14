package agent

import (
	"errors"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// Mark is a position in the order of all changes of the view. A list that begins after a mark contains all changes before the mark.
type Mark uint64

// goneMax is the number of removals to remember, of pods and of ReplicaSets each, apart from those within the time to settle.
const goneMax = 10_000

// Mark returns the current position. Take it before you begin to list, and pass it to [Agent.SyncPods] or [Agent.SyncReplicaSets] with the list.
func (a *Agent) Mark() Mark {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Mark(a.version)
}

// SyncPods replaces the pods of the view with a complete list that began after the mark. Changes since the mark win: a pod
// created or changed since then stays, and a pod removed since then does not come back. Otherwise SyncPods stores each listed pod and
// removes all others. A list can be behind by [Config.Settle].
//
// SyncPods skips pods without a UID and those that [Agent.ApplyPod] refuses, and returns an error for them. A mark that is too old is an error
// and changes nothing. The first SyncPods without an error completes the view, as [Agent.Synced] does.
func (a *Agent) SyncPods(pods []*v1.Pod, since Mark) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.gonePods.covers(since); err != nil {
		return err
	}
	var faults []error
	listed := make(map[string]bool, len(pods))
	for _, pod := range pods {
		if err := a.syncPod(pod, since); err != nil {
			faults = append(faults, err)
		}
		listed[pod.GetUid()] = true
	}
	var absent []*v1.Pod
	a.view.all(func(known *v1.Pod) {
		if !listed[known.Uid] && versionOf(known.ResourceVersion) <= since && !a.isSettling(known.Uid) {
			absent = append(absent, known)
		}
	})
	for _, known := range absent {
		a.dropPod(known, false)
	}
	if len(faults) == 0 && !a.synced {
		a.markSynced()
	}
	return errors.Join(faults...)
}

// syncPod takes the listed state of a pod, unless the view has a newer one.
func (a *Agent) syncPod(pod *v1.Pod, since Mark) error {
	known := a.view.pods[pod.GetUid()]
	if known == nil {
		if err := checkReported(pod); err != nil || a.isOutdated(pod.Uid, since) {
			return err
		}
	} else {
		if origin := a.origins[pod.Uid]; origin != nil {
			origin.unseen = false
		}
		if versionOf(known.ResourceVersion) > since || !a.isNews(pod, known) {
			return nil
		}
		if err := checkReported(pod); err != nil {
			return err
		}
	}
	next := proto.CloneOf(pod)
	if err := a.complete(next); err != nil {
		return err
	}
	if next.CreationTimestamp == nil && known != nil {
		next.CreationTimestamp = known.CreationTimestamp
	}
	a.changePod(next)
	return nil
}

// SyncReplicaSets replaces the ReplicaSets of the view with a complete list, by the rules of [Agent.SyncPods]. If [Agent.ApplyReplicaSet] would
// refuse a ReplicaSet, SyncReplicaSets returns an error for it and keeps the earlier state; it stores all others.
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
			if err := a.syncReplicaSet(proto.CloneOf(one), since); err != nil {
				faults = append(faults, err)
			}
		}
	}
	for uid, known := range a.replicaSets {
		if !listed[uid] && a.applied[uid] <= since {
			a.dropReplicaSet(known)
		}
	}
	return errors.Join(faults...)
}

// syncReplicaSet stores a listed ReplicaSet. A status that was written since the mark is newer than the listed one.
func (a *Agent) syncReplicaSet(next *v1.ReplicaSet, since Mark) error {
	known := a.replicaSets[next.Uid]
	if known != nil {
		if next.Status == nil || versionOf(known.ResourceVersion) > since {
			next.Status = known.Status
		}
		next.ResourceVersion = known.ResourceVersion
	}
	if known == nil || !proto.Equal(next, known) {
		return a.applyReplicaSet(next)
	}
	return nil
}

func versionOf(resourceVersion string) Mark {
	version, _ := strconv.ParseUint(resourceVersion, 10, 64)
	return Mark(version)
}

// removal is the end of an object in the view.
type removal struct {
	version  Mark
	answered bool      // a delete has succeeded: no older state brings the pod back
	told     time.Time // when the controller told the end; zero if only a list lacked the pod
}

// removals are the latest removals by UID. They stop older lists and states from restoring removed objects.
type removals struct {
	at        map[string]removal
	order     []departure
	forgotten Mark // the version of the latest forgotten removal
}

// departure is one removal in their order. Its UID may have come back since, and may have left again.
type departure struct {
	uid     string
	version Mark
}

// add remembers a removal. It forgets the oldest ones above goneMax, except those that a list may not show yet: told after `settled`.
func (r *removals) add(uid string, removed removal, settled time.Time) {
	r.at[uid] = removed
	r.order = append(r.order, departure{uid, removed.version})
	for len(r.order) > goneMax {
		first := r.order[0]
		if known := r.at[first.uid]; known.version == first.version {
			if known.told.After(settled) {
				return
			}
			delete(r.at, first.uid)
			r.forgotten = max(r.forgotten, first.version)
		}
		r.order = r.order[1:]
	}
}

// covers returns an error if removals since a mark may have been forgotten.
func (r *removals) covers(since Mark) error {
	if since < r.forgotten {
		return errors.New("the mark is too old: take another one and list again")
	}
	return nil
}
