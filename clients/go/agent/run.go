package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

const (
	// steady is the time after which the end of a session is news again.
	steady = time.Minute
	// firstListTimeout is the time after which a view that is not complete is worth a warning.
	firstListTimeout = 10 * time.Second
	// domain is that of the reasons of a Decree server.
	domain = "decree.dev"
)

// ErrRunning is the error of [Agent.Run] while another Run of the same Agent has not returned.
var ErrRunning = errors.New("the agent runs already")

// RefusedError is the error of [Agent.Run] when the server refuses this configuration, so that no retry helps.
type RefusedError struct {
	// Code is the code of the status.
	Code codes.Code
	// Reason is a word for programs, such as INVALID_FIELD; docs/protocol.md lists them.
	Reason string
	// Message is for people.
	Message string
}

// Error returns the message with the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the server refuses the agent: %s: %s", e.Reason, e.Message)
}

// final are the reasons that no retry mends: they depend on the configuration of the agent and the version of the server.
var final = []string{"INVALID_FIELD", "PROTOCOL_UNSUPPORTED", "CAPABILITY_UNSUPPORTED", "BURST_UNSUPPORTED", "EPOCH_TOO_OLD", "UNIMPLEMENTED"}

// Run keeps a session with the server until the context is done. It then sends the outcomes in flight, closes the stream and returns nil.
// Run tries again after any other end of a session, and logs each cause once. It returns a [*RefusedError] when no retry helps, and
// [ErrRunning] while the Agent runs already.
func (a *Agent) Run(ctx context.Context) error {
	if a.config.Conn == nil {
		return errors.New("the configuration has no Conn")
	}
	if a.config.Mode == v1.Mode_MODE_ADVISE {
		return errors.New("the configuration: Mode: an Agent does not advise")
	}
	if err := checkText(a.config.hello()); err != nil {
		return fmt.Errorf("the configuration: %w", err)
	}
	isRunning := false
	a.locked(func() { isRunning, a.running = a.running, true })
	if isRunning {
		return ErrRunning
	}
	defer a.locked(func() { a.running = false })
	client := v1.NewDecisionServiceClient(a.config.Conn)
	wait := firstWait
	for ctx.Err() == nil {
		began := time.Now()
		after, welcomed, err := a.runSession(ctx, client)
		if ctx.Err() != nil {
			return nil
		}
		if reason := reasonOf(err); !welcomed && slices.Contains(final, reason) {
			return &RefusedError{status.Code(err), reason, status.Convert(err).Message()}
		}
		lasted := time.Since(began)
		a.locked(func() { a.tellEnd(err, lasted) })
		if lasted > wait {
			wait = firstWait
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(jittered(wait), after)):
		}
		wait = min(2*wait, lastWait)
	}
	return nil
}

// tellEnd logs the end of a session: each cause once, until a session has been steady. The Agent is locked.
func (a *Agent) tellEnd(err error, lasted time.Duration) {
	if lasted > steady {
		clear(a.told)
	}
	reason := reasonOf(err)
	if errors.Is(err, errDrained) || reason == "SERVER_DRAINING" {
		a.log.Info("the server has drained the session; the agent comes back")
		return
	}
	cause := causeOf(err)
	what := "the session has ended; the agent tries again"
	switch {
	case reason == "SESSION_SUPERSEDED":
		what = "another agent of this cluster has taken the session over; this one tries again in a minute"
	case reason == "" && status.Code(err) == codes.Unavailable:
		what = "the server cannot be reached; the agent tries again"
	case reason == "" && status.Code(err) == codes.Unimplemented:
		what = "what answers is no decision server; the agent tries again"
	case status.Code(err) == codes.PermissionDenied || status.Code(err) == codes.Unauthenticated:
		what = "the server does not let this agent in; the agent tries again"
	}
	a.warnOnce(cause, what, "cause", cause, "error", err)
}

// warnOnce logs a warning, unless its cause was logged already. The Agent is locked.
func (a *Agent) warnOnce(cause, what string, attributes ...any) {
	if !a.told[cause] {
		a.told[cause], a.greeted = true, false
		a.log.Warn(what, attributes...)
	}
}

// greet logs the first session, and the first one after a warning. A server that cannot be reached from now on is news. The Agent is locked.
func (a *Agent) greet() {
	delete(a.told, codes.Unavailable.String())
	if !a.greeted {
		a.greeted = true
		a.log.Info("the server has welcomed the agent")
	}
}

// warnIfNotSynced logs that the server waits for the first list, unless there is one in time.
func (a *Agent) warnIfNotSynced() *time.Timer {
	return time.AfterFunc(firstListTimeout, func() {
		a.locked(func() {
			if !a.synced {
				a.warnOnce("first list", "the server decides nothing before the first list: call SyncPods without an error, or Synced")
			}
		})
	})
}

func (a *Agent) tellRejection(rejected *v1.RejectedObject) {
	object := rejected.Object
	attributes := []any{"object", object.GetNamespace() + "/" + object.GetName(), "uid", object.GetUid()}
	for _, one := range rejected.Violations {
		attributes = append(attributes, one.Field, one.Description)
	}
	a.log.Warn("the server rejects an object", attributes...)
}

// causeOf returns a word for the end of a session, or the text of an end on this side.
func causeOf(err error) string {
	for _, own := range []error{errSilent, errNotReading, errGap} {
		if errors.Is(err, own) {
			return own.Error()
		}
	}
	if reason := reasonOf(err); reason != "" {
		return reason
	}
	return status.Code(err).String()
}

// reasonOf returns the reason of a Decree server, or "".
func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, is := detail.(*errdetails.ErrorInfo); is && info.Domain == domain {
			return info.Reason
		}
	}
	return ""
}

// retryAfter returns the delay that the end of a session asks for.
func retryAfter(err error) time.Duration {
	if reasonOf(err) == "SESSION_SUPERSEDED" {
		return supersededWait
	}
	for _, detail := range status.Convert(err).Details() {
		if info, is := detail.(*errdetails.RetryInfo); is {
			return info.RetryDelay.AsDuration()
		}
	}
	return 0
}

// jittered spreads the attempts of many agents over half of the wait.
func jittered(wait time.Duration) time.Duration {
	return wait/2 + rand.N(wait/2)
}
