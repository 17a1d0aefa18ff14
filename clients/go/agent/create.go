package agent

import (
	"context"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

func (w work) create(ctx context.Context, name string) func() any {
	if refused := w.waitForPace(name); refused != nil {
		return func() any { return refused }
	}
	return w.inSlots(func(ctx context.Context, _ int) func() any { return w.createNow(ctx, name) })(ctx, 0)
}

func (w work) createNow(ctx context.Context, name string) func() any {
	owner, began, refused := w.beginCreate(name)
	if refused != nil {
		return func() any { return refused }
	}
	var pod *v1.Pod
	produce := func(ctx context.Context) (err error) {
		pod, err = w.agent.cluster.Create(ctx, proto.CloneOf(owner), name)
		return err
	}
	ref := &v1.ObjectRef{Namespace: owner.Namespace, Name: name}
	return w.call(ctx, "create", ref, produce, func(err error) any { return w.endCreate(owner, name, began, pod, err) })
}

// beginCreate checks the conditions that must hold immediately before a create.
func (w work) beginCreate(name string) (owner *v1.ReplicaSet, began Mark, refused any) {
	a := w.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	if refused := w.refusedCreate(name); refused != nil {
		return nil, 0, refused
	}
	owner = a.replicaSets[w.ReplicaSet.Uid]
	a.view.beginCreate(podName{owner.Namespace, name}, owner.Uid)
	return owner, Mark(a.version), nil
}

// refusedCreate returns the reason why the create may not start, or nil. The Agent is locked.
func (w work) refusedCreate(name string) any {
	if refused := w.refused(); refused != nil {
		return refused
	}
	a, owner := w.agent, w.agent.replicaSets[w.ReplicaSet.Uid]
	if !isNameOf(owner, name) {
		return guard("name: it is not the ReplicaSet's and five letters")
	}
	if pod := a.view.of(podName{owner.Namespace, name}); pod != nil {
		return existing(owner, pod)
	}
	if _, is := a.view.creating[podName{owner.Namespace, name}]; is {
		return guard("name: an earlier create of it has not returned")
	}
	if a.view.active[owner.Uid]+a.view.creates[owner.Uid] >= w.wanted() {
		return guard("surplus: there are as many pods as desired")
	}
	return nil
}

// existing returns the outcome for a name that is already in use: an earlier attempt succeeded, or another pod has the name.
func existing(owner *v1.ReplicaSet, pod *v1.Pod) any {
	if pod.Controller.GetUid() == owner.Uid && pod.DeletionTimestamp == nil {
		done := donePod(pod)
		done.AlreadyExisted = true
		return done
	}
	return failure(v1.FailureClass_FAILURE_CLASS_NAME_TAKEN, "the name is that of another pod")
}

// endCreate adds the created pod to the view, if the pod is valid.
func (w work) endCreate(owner *v1.ReplicaSet, name string, began Mark, pod *v1.Pod, err error) any {
	a := w.agent
	a.view.endCreate(podName{owner.Namespace, name})
	if err != nil {
		return failureOf(err)
	}
	if why := a.checkMade(owner, name, pod); why != "" {
		a.log.Warn("create returned what cannot count", "object", owner.Namespace+"/"+name, "error", why)
		return failure(v1.FailureClass_FAILURE_CLASS_INVALID, why)
	}
	labels := pod.Labels
	if len(labels) == 0 {
		labels = owner.TemplateLabels
	}
	if known := a.view.pods[pod.Uid]; known != nil {
		// A newer state of the pod was applied while the create ran. A list that forgets labels may have been the first to show the pod.
		pod = known
		if mismatch(owner.Selector, known.Labels) == "" {
			labels = known.Labels
		}
	} else if a.gonePods.at[pod.Uid].version > began {
		a.removed = append(a.removed, pod.Uid)
	}
	pod = proto.CloneOf(pod)
	pod.Namespace, pod.Name, pod.Labels = owner.Namespace, name, maps.Clone(labels)
	pod.Controller = controllerRef(owner)
	origin := a.originOf(pod.Uid)
	origin.owned = true
	// A delete of the pod may have returned before its create.
	if !origin.leaving {
		origin.unseen, origin.created = true, a.now()
	}
	return donePod(a.storePod(pod))
}

// letters is the number of letters that a server appends to the name of a ReplicaSet.
const letters = 5

// isNameOf returns whether a server can choose this name for a ReplicaSet. No other name may become a file, a process or a host.
func isNameOf(owner *v1.ReplicaSet, name string) bool {
	base, is := baseOf(name)
	return is && slices.Contains(basesOf(owner), base)
}

// baseOf returns what is left of a pod's name without its letters, and whether the name ends with such letters.
func baseOf(name string) (base string, is bool) {
	at := len(name) - letters
	if at < 0 || strings.Trim(name[at:], "bcdfghjklmnpqrstvwxz2456789") != "" {
		return "", false
	}
	return name[:at], true
}

// basesOf returns what precedes the letters in the names of the pods of a ReplicaSet.
func basesOf(owner *v1.ReplicaSet) []string {
	bare, hyphenated := owner.Name, owner.Name+"-"
	return slices.Compact([]string{bare[:min(len(bare), 58)], hyphenated[:min(len(hyphenated), 58)]})
}
