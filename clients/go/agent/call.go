package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

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
		a.locked(func() { a.late(finish(err), ref); a.dropRemoved() })
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
	err = call(ctx)
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
	stack := ""
	if fault := (*panicked)(nil); errors.As(err, &fault) {
		stack = "\n" + string(fault.stack)
	}
	a.config.Logf("%s of %s/%s failed: %v%s", what, ref.GetNamespace(), ref.GetName(), err, stack)
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

func failureOf(err error) *v1.Failed {
	var failure *Failure
	failed := &v1.Failed{Class: v1.FailureClass_FAILURE_CLASS_TIMEOUT, Message: err.Error()}
	if errors.As(err, &failure) {
		failed.Class, failed.Message = failure.Class, failure.Message
		if failure.RetryAfter > 0 {
			failed.RetryAfter = durationpb.New(failure.RetryAfter)
		}
	}
	failed.Message = strings.ToValidUTF8(failed.Message, "\uFFFD")
	return failed
}
