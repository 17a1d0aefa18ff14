package agent

import (
	"slices"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// view holds the pods, with their names and their numbers for each ReplicaSet, so that an operation looks at no pod but its own.
type view struct {
	pods     map[string]*v1.Pod   // by UID; never changed in place, because frames refer to the pods
	named    map[podName][]string // UIDs; more than one after a pod of the same name replaced another
	active   map[string]int       // the active pods of each ReplicaSet, by its UID, without those that are being deleted
	owned    groups[string]       // the pods of each ReplicaSet, by its UID
	bare     groups[podName]      // the active pods without labels and controller, by the base of their name
	deleting map[string]bool      // UIDs of the pods whose delete runs
	creating map[podName]string   // the UID of the ReplicaSet, for each pod whose create runs
	creates  map[string]int       // the creates that run and whose pod nothing has shown yet, for each ReplicaSet, by its UID
	visits   int                  // the pods that walks have met; tests read it
}

type podName struct{ namespace, name string }

// groups are UIDs of pods, in groups.
type groups[Key comparable] map[Key]map[string]bool

func newView() view {
	return view{
		pods: map[string]*v1.Pod{}, named: map[podName][]string{}, active: map[string]int{},
		owned: groups[string]{}, bare: groups[podName]{}, deleting: map[string]bool{},
		creating: map[podName]string{}, creates: map[string]int{},
	}
}

// put adds a pod, or replaces its state.
func (v *view) put(pod *v1.Pod) {
	v.take(pod.Uid)
	name := podName{pod.Namespace, pod.Name}
	v.countCreate(name, -1)
	v.pods[pod.Uid] = pod
	v.named[name] = append(v.named[name], pod.Uid)
	v.count(pod, 1)
	v.group(pod, true)
	v.countCreate(name, 1)
}

// take removes a pod.
func (v *view) take(uid string) {
	pod, is := v.pods[uid]
	if !is {
		return
	}
	name := podName{pod.Namespace, pod.Name}
	v.countCreate(name, -1)
	defer v.countCreate(name, 1)
	v.count(pod, -1)
	v.group(pod, false)
	delete(v.pods, uid)
	if uids := v.named[name]; len(uids) > 1 {
		v.named[name] = slices.DeleteFunc(slices.Clone(uids), func(other string) bool { return other == uid })
	} else {
		delete(v.named, name)
	}
}

// count adds a pod to the active pods of its ReplicaSet, or removes it from them.
func (v *view) count(pod *v1.Pod, by int) {
	if owner := pod.Controller.GetUid(); owner != "" && isActive(pod) && !v.deleting[pod.Uid] {
		add(v.active, owner, by)
	}
}

// group adds a pod to those of its ReplicaSet, or to those that are bare, or removes it from them.
func (v *view) group(pod *v1.Pod, is bool) {
	if owner := pod.Controller.GetUid(); owner != "" {
		v.owned.set(owner, pod.Uid, is)
	} else if base, named := baseOf(pod.Name); named && isBare(pod) && isActive(pod) {
		v.bare.set(podName{pod.Namespace, base}, pod.Uid, is)
	}
}

func (g groups[Key]) set(key Key, uid string, is bool) {
	if !is {
		if delete(g[key], uid); len(g[key]) == 0 {
			delete(g, key)
		}
		return
	}
	if g[key] == nil {
		g[key] = map[string]bool{}
	}
	g[key][uid] = true
}

// setDeleting notes that the delete of a pod begins or ends.
func (v *view) setDeleting(uid string, deleting bool) {
	pod := v.pods[uid]
	if pod != nil {
		v.count(pod, -1)
	}
	if deleting {
		v.deleting[uid] = true
	} else {
		delete(v.deleting, uid)
	}
	if pod != nil {
		v.count(pod, 1)
	}
}

// beginCreate notes a create, and endCreate its end.
func (v *view) beginCreate(name podName, owner string) {
	v.creating[name] = owner
	v.countCreate(name, 1)
}

func (v *view) endCreate(name podName) {
	v.countCreate(name, -1)
	delete(v.creating, name)
}

// countCreate adds a create to those of its ReplicaSet, or removes it from them. As soon as the view has its pod, only the pod counts.
func (v *view) countCreate(name podName, by int) {
	owner, is := v.creating[name]
	isShown := func(uid string) bool { return v.pods[uid].Controller.GetUid() == owner }
	if is && !slices.ContainsFunc(v.named[name], isShown) {
		add(v.creates, owner, by)
	}
}

// of returns a pod of this name, or nil.
func (v *view) of(name podName) *v1.Pod {
	if uids := v.named[name]; len(uids) > 0 {
		return v.pods[uids[len(uids)-1]]
	}
	return nil
}

// all calls a function for each pod.
func (v *view) all(do func(*v1.Pod)) {
	for _, pod := range v.pods {
		v.visits++
		do(pod)
	}
}

// each calls a function for each pod of a group.
func (v *view) each(group map[string]bool, do func(*v1.Pod)) {
	for uid := range group {
		v.visits++
		do(v.pods[uid])
	}
}

func add(counts map[string]int, key string, by int) {
	if counts[key] += by; counts[key] == 0 {
		delete(counts, key)
	}
}
