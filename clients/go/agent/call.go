package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// call makes a call of the Cluster, and returns a function that turns its error into the outcome. Every call has exactly one outcome. If the call outlasts
// its context, the outcome is TIMEOUT; `finish` runs when the call returns, and its changes become an event.
func (w work) call(ctx context.Context, what string, ref *v1.ObjectRef, call func(context.Context) error, finish func(err error) any) func() any {
	a := w.agent
	ctx, cancel := context.WithTimeout(ctx, a.config.OperationTimeout)
	ended := make(chan error, 1)
	go attempt(ctx, call, ended)
	select {
	case err := <-ended:
		cancel()
		a.tell(what, ref, err)
		return func() any { return finish(err) }
	case <-ctx.Done():
	}
	go func() {
		defer cancel()
		err := <-ended
		a.locked(func() { a.late(a.safely(func() any { return finish(err) }), ref); a.dropRemoved() })
	}()
	late := fmt.Errorf("it has not returned within %g s", a.config.OperationTimeout.Seconds())
	a.tell(what, ref, late)
	return func() any { return failureOf(late) }
}

// attempt makes a call, and sends its error, its panic, or its early end.
func attempt(ctx context.Context, call func(context.Context) error, ended chan<- error) {
	err := errors.New("it has ended its goroutine")
	defer func() {
		if value := recover(); value != nil {
			err = &panicked{value, debug.Stack()}
		}
		ended <- err
	}()
	err = readable(call(ctx))
}

// readable returns an error whose text and class can be read without a panic.
func readable(err error) error {
	if err == nil {
		return nil
	}
	var failure *Failure
	if !errors.As(err, &failure) {
		return errors.New(err.Error())
	}
	if failure == nil {
		return errors.New("it returned a nil *Failure")
	}
	known := *failure
	return &known
}

// safely makes an outcome. The outcome of a panic is TIMEOUT, as that of a call whose effect is unknown. The Agent is locked.
func (a *Agent) safely(finish func() any) (outcome any) {
	defer func() {
		if value := recover(); value != nil {
			fault := &panicked{value, debug.Stack()}
			a.log.Error("an outcome failed", "error", fault, "stack", string(fault.stack))
			outcome = failureOf(fault)
		}
	}()
	return finish()
}

// inSlots bounds the concurrent calls. The check of the conditions of an operation follows the wait for a place.
func (w work) inSlots(operate operation) operation {
	slots := w.agent.slots
	if slots == nil {
		return operate
	}
	return func(ctx context.Context, at int) func() any {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			return operate(ctx, at)
		default:
		}
		timer := time.NewTimer(w.agent.config.OperationTimeout)
		defer timer.Stop()
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-w.over: // Without a place, because the check refuses the operation.
		case <-timer.C:
			why := fmt.Sprintf("busy: %d calls run, and none has ended in time", cap(slots))
			return func() any { return guard(why) }
		}
		return operate(ctx, at)
	}
}

// panicked is a panic in a call of the Cluster.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// tell logs the failure of a call, unless the failure is a [Failure]: any other error is a fault of the controller.
func (a *Agent) tell(what string, ref *v1.ObjectRef, err error) {
	var failure *Failure
	if err == nil || errors.As(err, &failure) {
		return
	}
	attributes := []any{"object", ref.GetNamespace() + "/" + ref.GetName(), "error", err}
	if fault := (*panicked)(nil); errors.As(err, &fault) {
		attributes = append(attributes, "stack", string(fault.stack))
	}
	a.log.Warn(what+" failed", attributes...)
}

// late reports the changes of a call whose outcome was already sent. The Agent is locked.
func (a *Agent) late(outcome any, ref *v1.ObjectRef) {
	done, is := outcome.(*v1.Done)
	if !is {
		return
	}
	event := &v1.Event{}
	switch object := done.Object.(type) {
	case *v1.Done_Pod:
		event.Event = &v1.Event_PodApplied{PodApplied: object.Pod}
	case *v1.Done_ReplicaSet:
		event.Event = &v1.Event_ReplicaSetApplied{ReplicaSetApplied: object.ReplicaSet}
	case *v1.Done_Gone:
		deleted := &v1.Deleted{Kind: v1.Kind_KIND_POD, Object: ref, ResourceVersion: done.ResourceVersion}
		event.Event = &v1.Event_Deleted{Deleted: deleted}
	}
	a.change(event)
}

// defaultCallsMax is the number of concurrent calls.
const defaultCallsMax = 100

func failureOf(err error) *v1.Failed {
	var failure *Failure
	failed := &v1.Failed{FailureClass: v1.FailureClass_FAILURE_CLASS_TIMEOUT, Message: err.Error()}
	if errors.As(err, &failure) {
		failed.FailureClass, failed.Message = failure.Class, failure.Message
		if failure.RetryAfter > 0 {
			failed.RetryAfter = durationpb.New(failure.RetryAfter)
		}
	}
	failed.Message = strings.ToValidUTF8(failed.Message, "\uFFFD")
	return failed
}
