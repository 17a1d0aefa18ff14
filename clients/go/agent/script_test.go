package agent

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// patience is longer than anything takes that a test waits for.
const patience = 30 * time.Second

// script is a server that sends the frames of a test.
type script struct {
	v1.UnimplementedDecisionServiceServer
	sessions chan *scripted
	refusals chan error // the answers to the next Hellos; without one, a Welcome
}

// scripted is one session after its Hello.
type scripted struct {
	t        *testing.T
	hello    *v1.Hello
	stream   grpc.BidiStreamingServer[v1.ReconcileRequest, v1.ReconcileResponse]
	frames   chan *v1.ReconcileRequest // those after the Hello
	end      chan error
	sent     uint64
	batches  uint64
	outcomes []*v1.Outcome
	events   []*v1.Event
}

func (s *script) Reconcile(stream grpc.BidiStreamingServer[v1.ReconcileRequest, v1.ReconcileResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	select {
	case refusal := <-s.refusals:
		return refusal
	default:
	}
	one := &scripted{hello: first.GetHello(), stream: stream, frames: make(chan *v1.ReconcileRequest, 10_000), end: make(chan error, 1)}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		defer close(one.frames)
		for {
			frame, err := stream.Recv()
			if err != nil {
				return
			}
			one.frames <- frame
		}
	}()
	welcome := &v1.Welcome{Protocol: 1, SessionId: "scripted", HeartbeatInterval: durationpb.New(time.Minute)}
	one.say(&v1.ReconcileResponse{Frame: &v1.ReconcileResponse_Welcome{Welcome: welcome}})
	s.sessions <- one
	select {
	case err := <-one.end:
		return err
	case <-closed:
		return nil
	}
}

func (s *scripted) say(frame *v1.ReconcileResponse) {
	s.sent++
	frame.Sequence = s.sent
	_ = s.stream.Send(frame)
}

// next returns the next frame of the agent.
func (s *scripted) next() *v1.ReconcileRequest {
	s.t.Helper()
	select {
	case frame, is := <-s.frames:
		if !is {
			s.t.Fatal("the agent has closed the stream")
		}
		return frame
	case <-time.After(patience):
		s.t.Fatal("the agent sends nothing")
	}
	return nil
}

// event returns the next event; outcomes before it are kept.
func (s *scripted) event() *v1.Event {
	s.t.Helper()
	for len(s.events) == 0 {
		frame := s.next()
		s.outcomes = append(s.outcomes, frame.GetOutcomes().GetOutcomes()...)
		s.events = frame.GetEvents().GetEvents()
	}
	first := s.events[0]
	s.events = s.events[1:]
	return first
}

// outcome returns the next outcome; events before it are dropped.
func (s *scripted) outcome() *v1.Outcome {
	s.t.Helper()
	for len(s.outcomes) == 0 {
		s.outcomes, s.events = s.next().GetOutcomes().GetOutcomes(), nil
	}
	first := s.outcomes[0]
	s.outcomes = s.outcomes[1:]
	return first
}

// listed reads up to the end of the list of pods, and returns their number.
func (s *scripted) listed() int64 {
	s.t.Helper()
	for {
		if end := s.next().GetSnapshotEnd(); end.GetKind() == v1.Kind_KIND_POD {
			return end.Count
		}
	}
}

func (s *scripted) batch(batch *v1.Batch) {
	s.batches++
	batch.Id, batch.ReplicaSet = s.batches, replicaSetRef(sample(0))
	batch.Guard = &v1.Guard{SessionId: "scripted", Epoch: s.hello.Epoch}
	batches := &v1.Batches{Batches: []*v1.Batch{batch}}
	s.say(&v1.ReconcileResponse{Frame: &v1.ReconcileResponse_Batches{Batches: batches}})
}

func (s *scripted) create(names ...string) {
	s.batch(&v1.Batch{Action: &v1.Batch_Create{Create: &v1.Create{Names: names, SlowStartInitial: 1000}}})
}

func (s *scripted) delete(uid string) {
	pod := &v1.ObjectRef{Namespace: "local", Name: uid, Uid: uid}
	s.batch(&v1.Batch{Action: &v1.Batch_Delete{Delete: &v1.Delete{Victims: []*v1.Victim{{Pod: pod}}}}})
}

// warnings are the log lines of an agent, from warnings up.
type warnings struct {
	mu    sync.Mutex
	lines []string
}

func (w *warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w *warnings) WithGroup(string) slog.Handler                    { return w }
func (w *warnings) Handle(_ context.Context, record slog.Record) error {
	line := record.Message
	record.Attrs(func(one slog.Attr) bool { line += " " + one.String(); return true })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
	return nil
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.lines...)
}

// things is a cluster whose behavior a test sets.
type things struct {
	create func(ctx context.Context, name string) (*v1.Pod, error)
	delete func(ctx context.Context, pod *v1.Pod) (*v1.Pod, error)
}

func (t things) Create(ctx context.Context, _ *v1.ReplicaSet, name string) (*v1.Pod, error) {
	if t.create == nil {
		return &v1.Pod{Uid: name}, nil
	}
	return t.create(ctx, name)
}

func (t things) Delete(ctx context.Context, pod *v1.Pod, _ *v1.Reason) (*v1.Pod, error) {
	if t.delete == nil {
		return nil, nil
	}
	return t.delete(ctx, pod)
}

// play is an agent, and a scripted server.
type play struct {
	t      *testing.T
	agent  *Agent
	server *script
	log    *warnings
	ended  chan error
	stop   context.CancelFunc
}

// start starts both, with a ReplicaSet of `replicas` pods. Change the configuration before.
func start(t *testing.T, config Config, cluster Cluster, replicas int32) *play {
	t.Helper()
	p := &play{t: t, server: &script{sessions: make(chan *scripted, 100), refusals: make(chan error, 100)}, log: &warnings{}}
	if config.Conn == nil {
		config.Conn = p.server.serve(t)
	}
	config.ClusterUID, config.Logger, config.CreatesPerSecond = "test", slog.New(p.log), -1
	p.agent = New(config, cluster)
	must(t, p.agent.ApplyReplicaSet(sample(replicas)))
	return p
}

func (p *play) run() *play {
	ctx, stop := context.WithCancel(context.Background())
	p.stop, p.ended = stop, make(chan error, 1)
	go func() { p.ended <- p.agent.Run(ctx) }()
	p.t.Cleanup(stop)
	return p
}

// session returns the next session.
func (p *play) session() *scripted {
	p.t.Helper()
	select {
	case one := <-p.server.sessions:
		one.t = p.t
		return one
	case <-time.After(patience):
		p.t.Fatal("no session")
	}
	return nil
}

// end returns what Run returns.
func (p *play) end() error {
	p.t.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(patience):
		p.t.Fatal("Run does not end")
	}
	return nil
}

func (s *script) serve(t *testing.T) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	v1.RegisterDecisionServiceServer(server, s)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	dial := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) })
	conn, err := grpc.NewClient("passthrough:script", dial, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// refusal is a status of a server, with its reason.
func refusal(code codes.Code, reason string) error {
	refused, err := status.New(code, "refused").WithDetails(&errdetails.ErrorInfo{Domain: domain, Reason: reason})
	return errors.Join(refused.Err(), err)
}

func sample(replicas int32) *v1.ReplicaSet {
	labels := map[string]string{"app": "x"}
	return &v1.ReplicaSet{
		Namespace: "local", Name: "set", Uid: "set-uid", Generation: 1, Replicas: &replicas,
		Selector: &v1.LabelSelector{MatchLabels: labels}, TemplateLabels: labels,
	}
}

func samplePod(name string) *v1.Pod {
	return &v1.Pod{
		Namespace: "local", Name: name, Uid: name, Labels: map[string]string{"app": "x"}, Phase: v1.PodPhase_POD_PHASE_RUNNING,
		Controller: &v1.OwnerReference{Kind: ownerKind, Name: "set", Uid: "set-uid"},
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustFail(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Fatalf("%q does not contain %q", err, part)
		}
	}
}
