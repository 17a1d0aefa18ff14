package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

const (
	firstWait = 100 * time.Millisecond
	lastWait  = 2 * time.Second
	// longestWait limits the delay that a server can ask for: a wrong number must not keep the agent away for years.
	longestWait = 5 * time.Minute
	// supersededWait keeps a superseded agent away. Without it, two agents would end each other's sessions forever.
	supersededWait = time.Minute
	// frameBytes is the maximum size of objects or events in one frame.
	frameBytes = 256 << 10
	// framesMax and eventsBytesMax limit what waits for a server that reads nothing: the frames, and the size of the events in them.
	framesMax      = 100_000
	eventsBytesMax = 256 << 20
	// stopTimeout limits the time for draining a session.
	stopTimeout = 30 * time.Second
)

var (
	errSilent     = errors.New("the server was silent for four heartbeat intervals")
	errNotReading = errors.New("the server does not read its stream")
	errGap        = errors.New("the frames of the server have a gap")
	errDrained    = errors.New("the session was drained")
)

// session is one stream. The lock of the Agent guards the fields that both share.
type session struct {
	agent  *Agent
	stream v1.DecisionService_ReconcileClient
	end    context.CancelCauseFunc
	calls  sync.WaitGroup
	silent *time.Timer
	over   chan struct{} // closed when no further operation may start

	// Guarded by agent.mu:
	frames   []*v1.ReconcileRequest
	last     *v1.Events // the last waiting frame, if it has events
	bytes    int        // its size
	waiting  int        // the size of all waiting events
	wake     chan struct{}
	id       string
	listed   bool // the lists have been sent
	interval time.Duration
	received uint64
	inFlight int
	draining bool
	after    time.Duration
}

// runSession runs one session to its end and waits for its calls. It returns the delay that the server asks for, and whether it was welcomed.
func (a *Agent) runSession(ctx context.Context, client v1.DecisionServiceClient) (after time.Duration, welcomed bool, err error) {
	// The stream outlives ctx, so that outcomes in flight are sent before it is closed.
	streamContext, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	// Until there is a stream, nothing is in flight.
	stillDials := context.AfterFunc(ctx, func() { end(ctx.Err()) })
	stream, err := client.Reconcile(streamContext)
	if !stillDials() {
		return 0, false, ctx.Err()
	}
	if err != nil {
		return retryAfter(err), false, err
	}
	s := &session{agent: a, stream: stream, end: end, wake: make(chan struct{}, 1), over: make(chan struct{}), interval: 5 * time.Second}
	s.silent = time.AfterFunc(4*s.interval, func() { end(errSilent) })
	defer s.silent.Stop()
	defer a.warnIfNotSynced().Stop()
	defer context.AfterFunc(ctx, func() { a.locked(func() { s.drain(stopTimeout) }) })()
	a.locked(s.open)
	written := make(chan struct{})
	go func() { defer close(written); s.write(streamContext) }()
	err = s.read(streamContext)
	a.locked(func() { a.session = nil; s.stopStarting() })
	end(err)
	<-written
	s.calls.Wait()
	if cause := context.Cause(streamContext); errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled {
		err = cause
	}
	return min(max(s.after, retryAfter(err)), longestWait), s.id != "", err
}

// open sends Hello, and the lists if the view is complete.
func (s *session) open() {
	s.agent.session = s
	s.send(&v1.ReconcileRequest{Frame: &v1.ReconcileRequest_Hello{Hello: s.agent.config.hello()}})
	if s.agent.synced {
		s.listAll()
	}
}

func (c *Config) hello() *v1.Hello {
	return &v1.Hello{
		ProtocolMin: 1, ProtocolMax: 1, AgentInstance: c.Instance, ClusterUid: c.ClusterUID, ClusterName: c.ClusterName,
		Shard: c.Shard, Epoch: c.Epoch, Mode: c.Mode, Options: c.Options, Platform: c.Platform,
	}
}

// listAll lists both kinds. After it, every change follows in order.
func (s *session) listAll() {
	s.list(v1.Kind_KIND_REPLICA_SET)
	s.list(v1.Kind_KIND_POD)
	s.listed = true
	s.tellSynced()
}

// tellSynced calls OnSynced after both the Welcome and the lists.
func (s *session) tellSynced() {
	if onSynced := s.agent.config.OnSynced; onSynced != nil && s.listed && s.id != "" {
		go onSynced()
	}
}

// list sends all objects of a kind, in frames small enough not to delay outcomes.
func (s *session) list(kind v1.Kind) {
	s.send(&v1.ReconcileRequest{Frame: &v1.ReconcileRequest_SnapshotBegin{SnapshotBegin: &v1.SnapshotBegin{Kind: kind}}})
	part, bytes, count := &v1.SnapshotObjects{}, 0, 0
	add := func(object proto.Message) {
		count++
		if size := proto.Size(object); bytes+size > frameBytes && bytes > 0 {
			s.sendObjects(part)
			part, bytes = &v1.SnapshotObjects{}, size
		} else {
			bytes += size
		}
	}
	if kind == v1.Kind_KIND_POD {
		s.agent.view.all(func(pod *v1.Pod) {
			add(pod)
			part.Pods = append(part.Pods, pod)
		})
	} else {
		for _, replicaSet := range s.agent.replicaSets {
			add(replicaSet)
			part.ReplicaSets = append(part.ReplicaSets, replicaSet)
		}
	}
	s.sendObjects(part)
	end := &v1.SnapshotEnd{Kind: kind, ResourceVersion: s.agent.nextVersion(), Count: int64(count)}
	s.send(&v1.ReconcileRequest{Frame: &v1.ReconcileRequest_SnapshotEnd{SnapshotEnd: end}})
}

func (s *session) sendObjects(objects *v1.SnapshotObjects) {
	if len(objects.Pods)+len(objects.ReplicaSets) > 0 {
		s.send(&v1.ReconcileRequest{Frame: &v1.ReconcileRequest_SnapshotObjects{SnapshotObjects: objects}})
	}
}

// send queues a frame. The Agent is locked, so frames leave in the order of their versions.
func (s *session) send(frame *v1.ReconcileRequest) {
	if len(s.frames) >= framesMax {
		s.end(errNotReading)
		return
	}
	s.frames, s.last = append(s.frames, frame), frame.GetEvents()
	s.wakeWriter()
}

// sendEvent queues an event. It joins the last waiting frame, so that a list with many changes does not look like a server that reads nothing.
func (s *session) sendEvent(event *v1.Event) {
	one := &v1.Events{Events: []*v1.Event{event}}
	size := proto.Size(one)
	if s.waiting += size; s.waiting > eventsBytesMax {
		s.end(errNotReading)
		return
	}
	if s.last != nil && s.bytes+size <= frameBytes {
		s.last.Events, s.bytes = append(s.last.Events, event), s.bytes+size
		return
	}
	s.bytes = size
	s.send(&v1.ReconcileRequest{Frame: &v1.ReconcileRequest_Events{Events: one}})
}

func (s *session) wakeWriter() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// next takes the waiting frames, and returns whether to close the stream after them.
func (s *session) next() (frames []*v1.ReconcileRequest, interval time.Duration, last bool) {
	s.agent.locked(func() {
		frames, s.frames, s.last, s.waiting = s.frames, nil, nil, 0
		interval, last = s.interval, s.draining && s.inFlight == 0
	})
	return frames, interval, last
}

// write numbers frames and sends them, and sends a heartbeat after an interval without frames.
func (s *session) write(ctx context.Context) {
	var sequence uint64
	for ctx.Err() == nil {
		frames, interval, last := s.next()
		for _, frame := range frames {
			sequence++
			frame.Sequence = sequence
			if s.stream.Send(frame) != nil {
				return // The reader gets the reason.
			}
		}
		if last {
			_ = s.stream.CloseSend()
			return
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-time.After(interval):
			s.agent.locked(s.sendHeartbeat)
		}
	}
}

func (s *session) sendHeartbeat() {
	if len(s.frames) == 0 {
		beat := &v1.Heartbeat{LastSequence: s.received, ViewAge: durationpb.New(0)}
		s.send(&v1.ReconcileRequest{Frame: &v1.ReconcileRequest_Heartbeat{Heartbeat: beat}})
	}
}

// read handles the server's frames until the stream ends.
func (s *session) read(ctx context.Context) error {
	for {
		frame, err := s.stream.Recv()
		if errors.Is(err, io.EOF) {
			return errDrained
		}
		if err != nil {
			return err
		}
		s.agent.locked(func() { err = s.handle(ctx, frame) })
		if err != nil {
			return err
		}
	}
}

func (s *session) handle(ctx context.Context, frame *v1.ReconcileResponse) error {
	s.received++
	if frame.Sequence != s.received {
		return fmt.Errorf("%w: frame %d came where %d was due", errGap, frame.Sequence, s.received)
	}
	switch frame := frame.Frame.(type) {
	case *v1.ReconcileResponse_Welcome:
		s.id = frame.Welcome.SessionId
		s.agent.greet()
		s.tellSynced()
		s.interval = intervalOf(frame.Welcome)
		s.wakeWriter()
	case *v1.ReconcileResponse_Batches:
		for _, batch := range frame.Batches.Batches {
			s.start(ctx, batch)
		}
	case *v1.ReconcileResponse_Resync:
		if s.listed {
			s.list(frame.Resync.Kind)
		}
	case *v1.ReconcileResponse_Drain:
		s.after = frame.Drain.ReconnectAfter.AsDuration()
		s.drain(stopTimeout)
	case *v1.ReconcileResponse_Rejection:
		for _, one := range frame.Rejection.Objects {
			s.agent.tellRejection(one)
		}
	}
	s.silent.Reset(4 * s.interval)
	return nil
}

// intervalOf returns the interval of heartbeats, within bounds; 10 seconds where it is absent or not positive.
func intervalOf(welcome *v1.Welcome) time.Duration {
	interval := welcome.HeartbeatInterval.AsDuration()
	if interval <= 0 {
		return 10 * time.Second
	}
	return min(max(interval, 100*time.Millisecond), time.Minute)
}

// drain begins the end: no further operation starts, and the stream is closed after the last outcome.
func (s *session) drain(timeout time.Duration) {
	if !s.draining {
		s.draining = true
		s.stopStarting()
		time.AfterFunc(timeout, func() { s.end(errDrained) })
		s.wakeWriter()
	}
}

func (s *session) stopStarting() {
	select {
	case <-s.over:
	default:
		close(s.over)
	}
}
