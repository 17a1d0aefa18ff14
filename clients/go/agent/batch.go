package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// work is one batch in execution.
type work struct {
	*session
	*v1.Batch
}

// operation executes one operation of a batch. It returns a function that changes the view and makes the outcome. That function runs under the
// lock of the Agent together with the sending, so that frames leave in the order of versions.
type operation func(ctx context.Context, at int) (outcome func() any)

// start begins the execution of a batch. The Agent is locked.
func (s *session) start(ctx context.Context, batch *v1.Batch) {
	s.inFlight++
	s.calls.Add(1)
	// Started operations finish even if the stream ends: the lists of the next session show their effects.
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer s.calls.Done()
		work{s, batch}.execute(ctx)
		s.agent.locked(func() { s.inFlight--; s.wakeWriter() })
	}()
}

func (w work) execute(ctx context.Context) {
	switch action := w.Action.(type) {
	case *v1.Batch_Create:
		w.slowStart(ctx, action.Create)
	case *v1.Batch_Delete:
		victims := action.Delete.Victims
		w.round(ctx, 0, len(victims), w.inSlots(func(ctx context.Context, at int) func() any { return w.delete(ctx, victims[at]) }))
	case *v1.Batch_Claim:
		adopts := len(action.Claim.Adopts)
		w.round(ctx, 0, adopts+len(action.Claim.Releases), w.inSlots(func(ctx context.Context, at int) func() any {
			if at < adopts {
				return w.adopt(ctx, action.Claim.Adopts[at])
			}
			return w.release(ctx, action.Claim.Releases[at-adopts])
		}))
	case *v1.Batch_WriteStatus:
		w.round(ctx, 0, 1, w.inSlots(func(ctx context.Context, _ int) func() any { return w.writeStatus(ctx, action.WriteStatus.Status) }))
	}
}

// slowStart creates pods in rounds that double in size, and stops after the first round with a failure.
func (w work) slowStart(ctx context.Context, create *v1.Create) {
	names := create.Names
	begin, size, failed := 0, max(int(create.SlowStartInitial), 1), false
	for ; begin < len(names) && !failed; size *= 2 {
		end := min(begin+size, len(names))
		failed = w.round(ctx, begin, end, func(ctx context.Context, at int) func() any { return w.create(ctx, names[at]) })
		begin = end
	}
	for ; begin < len(names); begin++ {
		cause := v1.NotStartedCause_NOT_STARTED_CAUSE_SLOW_START
		w.agent.locked(func() { w.report(begin, &v1.NotStarted{Cause: cause, Message: "an earlier create failed"}) })
	}
}

// round executes operations concurrently, reports each as it ends, and returns whether one failed.
func (w work) round(ctx context.Context, begin, end int, operate operation) bool {
	var all sync.WaitGroup
	failed := make([]bool, end)
	for at := begin; at < end; at++ {
		all.Go(func() {
			finish := operate(ctx, at)
			w.agent.locked(func() {
				outcome := w.agent.safely(finish)
				_, failed[at] = outcome.(*v1.Failed)
				w.report(at, outcome)
				w.agent.dropRemoved()
			})
		})
	}
	all.Wait()
	return slices.Contains(failed, true)
}

// report sends the outcome of one operation, unless the session has ended. The Agent is locked.
func (w work) report(at int, outcome any) {
	report := &v1.Outcome{BatchId: w.Id, Operation: uint32(at)}
	switch outcome := outcome.(type) {
	case *v1.Done:
		report.Outcome = &v1.Outcome_Done{Done: outcome}
	case *v1.Failed:
		report.Outcome = &v1.Outcome_Failed{Failed: outcome}
	case *v1.NotStarted:
		report.Outcome = &v1.Outcome_NotStarted{NotStarted: outcome}
	}
	if w.agent.session == w.session {
		outcomes := &v1.Outcomes{Outcomes: []*v1.Outcome{report}}
		w.send(&v1.ReconcileRequest{Frame: &v1.ReconcileRequest_Outcomes{Outcomes: outcomes}})
	}
}

// refused returns the reason why no operation of the batch may start, or nil. The Agent is locked.
func (w work) refused() any {
	owner := w.agent.replicaSets[w.ReplicaSet.GetUid()]
	_, isStatus := w.Action.(*v1.Batch_WriteStatus)
	mode := w.agent.config.Mode
	switch {
	case w.id == "" || w.Guard.GetSessionId() != w.id || w.Guard.GetEpoch() != w.agent.config.Epoch:
		return guard("session: the batch is of another session or epoch")
	case mode == v1.Mode_MODE_SHADOW || mode == v1.Mode_MODE_DRY_RUN || w.draining || w.agent.session != w.session:
		cause := v1.NotStartedCause_NOT_STARTED_CAUSE_NOT_ENFORCING
		return &v1.NotStarted{Cause: cause, Message: "the agent only watches, or drains"}
	case !w.listed:
		return guard("view: the agent has listed nothing yet")
	case owner == nil || !proto.Equal(replicaSetRef(owner), w.ReplicaSet):
		return guard("reference: there is no such ReplicaSet")
	case owner.DeletionTimestamp != nil && !isStatus:
		return guard("reference: the ReplicaSet is being deleted")
	}
	return nil
}

// wanted returns the desired number of pods of the batch's ReplicaSet; absent means 1.
func (w work) wanted() int {
	if owner := w.agent.replicaSets[w.ReplicaSet.Uid]; owner.Replicas != nil {
		return int(*owner.Replicas)
	}
	return 1
}

func (w work) delete(ctx context.Context, victim *v1.Victim) func() any {
	pod, refused := w.beginDelete(victim)
	if refused != nil {
		return func() any { return refused }
	}
	var left *v1.Pod
	remove := func(ctx context.Context) (err error) {
		left, err = w.agent.cluster.Delete(ctx, proto.CloneOf(pod), victim.Reason)
		return err
	}
	return w.call(ctx, "delete", victim.Pod, remove, func(err error) any { return w.endDelete(pod, left, err) })
}

// endDelete removes the pod from the view, or marks it as being deleted.
func (w work) endDelete(pod, left *v1.Pod, err error) any {
	a := w.agent
	a.view.setDeleting(pod.Uid, false)
	known := a.view.pods[pod.Uid]
	switch {
	case err != nil:
		return failureOf(err)
	case left != nil && left.Uid != pod.Uid:
		why := fmt.Sprintf("uid: it is %q, and that of the pod is %q", left.Uid, pod.Uid)
		a.log.Warn("delete returned what cannot count", "object", pod.Namespace+"/"+pod.Name, "error", why)
		return failure(v1.FailureClass_FAILURE_CLASS_INVALID, why)
	case left == nil || known == nil:
		version := a.nextVersion()
		a.forgetPod(pod.Uid, true, true)
		return &v1.Done{Uid: pod.Uid, ResourceVersion: version, Object: &v1.Done_Gone{Gone: true}}
	}
	next := proto.CloneOf(known)
	next.DeletionTimestamp = timestamppb.New(a.now())
	if left.DeletionTimestamp.IsValid() {
		next.DeletionTimestamp = proto.CloneOf(left.DeletionTimestamp)
	}
	origin := a.originOf(pod.Uid)
	origin.leaving, origin.unseen = true, false
	return donePod(a.storePod(next))
}

// beginDelete checks the conditions that must hold immediately before a delete.
func (w work) beginDelete(victim *v1.Victim) (pod *v1.Pod, refused any) {
	a := w.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	if refused := w.refused(); refused != nil {
		return nil, refused
	}
	pod = a.view.pods[victim.Pod.GetUid()]
	switch {
	case pod == nil || !proto.Equal(podRef(pod), victim.Pod):
		return nil, failure(v1.FailureClass_FAILURE_CLASS_NOT_FOUND, "there is no such pod")
	case victim.ResourceVersion != "" && victim.ResourceVersion != pod.ResourceVersion:
		return nil, failure(v1.FailureClass_FAILURE_CLASS_PRECONDITION, "the pod has another version")
	case pod.Controller.GetUid() != w.ReplicaSet.Uid:
		return nil, guard("ownership: the ReplicaSet does not control the pod")
	case hasEnded(pod) && pod.DeletionTimestamp == nil && !a.view.deleting[pod.Uid]:
		if !w.isBeyondKept() {
			return nil, guard("inactive: the pod has ended, and its ReplicaSet keeps it")
		}
	case !isActive(pod) || a.view.deleting[pod.Uid]:
		return nil, guard("inactive: the pod has ended or is being deleted")
	case a.view.active[w.ReplicaSet.Uid] <= w.wanted():
		return nil, guard("shortage: no more pods are active than desired")
	}
	a.view.setDeleting(pod.Uid, true)
	return pod, nil
}

// isBeyondKept returns whether the ReplicaSet has more ended pods than it prefers to keep. The Agent is locked.
func (w work) isBeyondKept() bool {
	a := w.agent
	preferences, ended := a.replicaSets[w.ReplicaSet.Uid].GetPreferences(), 0
	a.view.each(a.view.owned[w.ReplicaSet.Uid], func(pod *v1.Pod) {
		if hasEnded(pod) && pod.DeletionTimestamp == nil && !a.view.deleting[pod.Uid] {
			ended++
		}
	})
	return preferences != nil && preferences.KeepEnded != nil && ended > int(*preferences.KeepEnded)
}

func (w work) adopt(ctx context.Context, ref *v1.ObjectRef) func() any {
	var controller *v1.OwnerReference
	pod, refused := w.beginClaim(ref, func(pod *v1.Pod) any {
		controller = controllerRef(w.agent.replicaSets[w.ReplicaSet.Uid])
		if pod.Controller != nil && pod.Controller.Uid != controller.Uid {
			return guard("ownership: the pod has another controller")
		}
		return nil
	})
	return w.setController(ctx, pod, controller, refused)
}

func (w work) release(ctx context.Context, ref *v1.ObjectRef) func() any {
	pod, refused := w.beginClaim(ref, func(pod *v1.Pod) any {
		if pod.Controller.GetUid() != w.ReplicaSet.Uid {
			return donePod(pod)
		}
		return nil
	})
	return w.setController(ctx, pod, nil, refused)
}

// beginClaim finds and checks the pod of an adoption or a release.
func (w work) beginClaim(ref *v1.ObjectRef, check func(*v1.Pod) any) (pod *v1.Pod, refused any) {
	w.agent.mu.Lock()
	defer w.agent.mu.Unlock()
	if refused := w.refused(); refused != nil {
		return nil, refused
	}
	pod = w.agent.view.pods[ref.GetUid()]
	if pod == nil || !proto.Equal(podRef(pod), ref) {
		return nil, failure(v1.FailureClass_FAILURE_CLASS_PRECONDITION, "there is no such pod")
	}
	return pod, check(pod)
}

func (w work) setController(ctx context.Context, pod *v1.Pod, controller *v1.OwnerReference, refused any) func() any {
	if refused != nil {
		return func() any { return refused }
	}
	set := func(context.Context) error { return nil }
	if owners, is := w.agent.cluster.(Owners); is {
		set = func(ctx context.Context) error {
			return owners.SetController(ctx, proto.CloneOf(pod), proto.CloneOf(controller))
		}
	}
	return w.call(ctx, "set controller", podRef(pod), set, func(err error) any {
		known := w.agent.view.pods[pod.Uid]
		switch {
		case err != nil:
			return failureOf(err)
		case known == nil:
			return failure(v1.FailureClass_FAILURE_CLASS_NOT_FOUND, "the pod is gone")
		}
		next := proto.CloneOf(known)
		next.Controller = controller
		w.agent.originOf(pod.Uid).owned = controller != nil
		return donePod(w.agent.storePod(next))
	})
}

func (w work) writeStatus(ctx context.Context, status *v1.ReplicaSetStatus) func() any {
	var owner *v1.ReplicaSet
	var refused any
	w.agent.locked(func() {
		refused = w.refused()
		owner = w.agent.replicaSets[w.ReplicaSet.GetUid()]
	})
	if refused != nil {
		return func() any { return refused }
	}
	write := func(context.Context) error { return nil }
	if statuses, is := w.agent.cluster.(Statuses); is {
		write = func(ctx context.Context) error {
			return statuses.WriteStatus(ctx, proto.CloneOf(owner), proto.CloneOf(status))
		}
	}
	return w.call(ctx, "write status", w.ReplicaSet, write, func(err error) any {
		known := w.agent.replicaSets[owner.Uid]
		switch {
		case err != nil:
			return failureOf(err)
		case known == nil:
			return failure(v1.FailureClass_FAILURE_CLASS_NOT_FOUND, "the ReplicaSet is gone")
		}
		next := proto.CloneOf(known)
		next.Status, next.ResourceVersion = status, w.agent.nextVersion()
		w.agent.replicaSets[next.Uid] = next
		return &v1.Done{Uid: next.Uid, ResourceVersion: next.ResourceVersion, Object: &v1.Done_ReplicaSet{ReplicaSet: next}}
	})
}

// ownerKind is the kind of the owner in controller references.
const ownerKind = "ReplicaSet"

func donePod(pod *v1.Pod) *v1.Done {
	return &v1.Done{Uid: pod.Uid, ResourceVersion: pod.ResourceVersion, Object: &v1.Done_Pod{Pod: pod}}
}

func controllerRef(owner *v1.ReplicaSet) *v1.OwnerReference {
	return &v1.OwnerReference{ApiVersion: "apps/v1", Kind: ownerKind, Name: owner.Name, Uid: owner.Uid}
}

func guard(message string) any {
	return &v1.NotStarted{Cause: v1.NotStartedCause_NOT_STARTED_CAUSE_GUARD, Message: message}
}

func failure(class v1.FailureClass, message string) any {
	return &v1.Failed{FailureClass: class, Message: message}
}
