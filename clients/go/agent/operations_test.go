package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// unreadable is an error that panics when its text is read.
type unreadable struct{}

func (*unreadable) Error() string { panic("unreadable") }

func TestEachOperationHasOneOutcomeWhateverACallDoes(t *testing.T) {
	var do func() (*v1.Pod, error)
	call := func(context.Context, string) (*v1.Pod, error) { return do() }
	remove := func(context.Context, *v1.Pod) (*v1.Pod, error) { return do() }
	p := start(t, Config{}, things{call, remove}, 1).run()
	must(t, p.agent.ApplyPod(samplePod("set-old")))
	p.agent.Synced()
	session := p.session()
	timeout, invalid := v1.FailureClass_FAILURE_CLASS_TIMEOUT, v1.FailureClass_FAILURE_CLASS_INVALID
	cases := []struct {
		name         string
		do           func() (*v1.Pod, error)
		create, drop v1.FailureClass
	}{
		{"panic", func() (*v1.Pod, error) { panic("boom") }, timeout, timeout},
		{"panic of an error", func() (*v1.Pod, error) { panic(&unreadable{}) }, timeout, timeout},
		{"end of the goroutine", func() (*v1.Pod, error) { runtime.Goexit(); return nil, nil }, timeout, timeout},
		{"nil failure", func() (*v1.Pod, error) { return nil, (*Failure)(nil) }, timeout, timeout},
		{"error that panics", func() (*v1.Pod, error) { return nil, &unreadable{} }, timeout, timeout},
		{"unknown class", func() (*v1.Pod, error) { return nil, fmt.Errorf("so: %w", &Failure{Class: 99}) }, 99, 99},
		{"another pod", func() (*v1.Pod, error) { return &v1.Pod{Uid: "set-bbbbb", Name: "other"}, nil }, invalid, invalid},
	}
	for _, one := range cases {
		do = one.do
		must(t, p.agent.ApplyReplicaSet(sample(2)))
		session.create("set-bbbbb")
		if class := session.outcome().GetFailed().GetFailureClass(); class != one.create {
			t.Errorf("%s: create: %v", one.name, class)
		}
		must(t, p.agent.ApplyReplicaSet(sample(0)))
		session.delete("set-old")
		if class := session.outcome().GetFailed().GetFailureClass(); class != one.drop {
			t.Errorf("%s: delete: %v", one.name, class)
		}
	}
	if pods := p.agent.Pods(); len(pods) != 1 || len(p.agent.view.creating)+len(p.agent.view.deleting) != 0 {
		t.Fatal(pods)
	}
}

func TestDeleteMayAnswerBeforeTheThingIsGone(t *testing.T) {
	deleting := func(_ context.Context, pod *v1.Pod) (*v1.Pod, error) { return pod, nil }
	p := start(t, Config{}, things{delete: deleting}, 4).run()
	names := []string{"set-bbbbb", "set-ccccc", "set-ddddd", "set-fffff"}
	for _, name := range names {
		must(t, p.agent.ApplyPod(samplePod(name)))
	}
	p.agent.Synced()
	session := p.session()
	must(t, p.agent.ApplyReplicaSet(sample(1)))
	for _, name := range names[1:] {
		session.delete(name)
		if done := session.outcome().GetDone(); done.GetPod().GetDeletionTimestamp() == nil {
			t.Fatal(done)
		}
	}
	// The first creates come before any of the three is gone.
	must(t, p.agent.ApplyReplicaSet(sample(8)))
	session.create("set-22222", "set-44444", "set-55555", "set-66666", "set-77777", "set-88888", "set-99999")
	for range 7 {
		if outcome := session.outcome(); outcome.GetDone().GetPod() == nil {
			t.Fatal(outcome)
		}
	}
	expectMarker(t, p, session)
	// A list that is behind shows one as if nobody deleted it, and lacks another one, which is gone.
	listed := []*v1.Pod{samplePod("set-bbbbb"), samplePod("set-ccccc"), samplePod("set-ddddd")}
	must(t, p.agent.SyncPods(append(listed, &v1.Pod{Namespace: "local", Name: "marker", Uid: "marker"}), p.agent.Mark()))
	if gone := session.event().GetDeleted().GetObject().GetUid(); gone != "set-fffff" {
		t.Fatal(gone)
	}
	must(t, p.agent.SyncPods(append(listed, samplePod("set-fffff")), p.agent.Mark()))
	p.agent.RemovePod("set-ccccc")
	pending := samplePod("set-ddddd")
	pending.Phase = v1.PodPhase_POD_PHASE_PENDING
	must(t, p.agent.ApplyPod(pending))
	left := map[string]bool{}
	for _, pod := range p.agent.Pods() {
		left[pod.Name] = pod.DeletionTimestamp != nil
	}
	if !left["set-ddddd"] || len(left) != 9 || p.agent.view.active["set-uid"] != 8 {
		t.Fatal(left)
	}
}

// careless is a cluster that empties all objects that it gets.
type careless struct{}

func (careless) Create(_ context.Context, owner *v1.ReplicaSet, name string) (*v1.Pod, error) {
	proto.Reset(owner)
	return &v1.Pod{Uid: name}, nil
}

func (careless) Delete(_ context.Context, pod *v1.Pod, _ *v1.Reason) (*v1.Pod, error) {
	pod.Controller.Uid, pod.Labels["app"], pod.Phase = "", "", v1.PodPhase_POD_PHASE_FAILED
	return pod, nil
}

func (careless) SetController(_ context.Context, pod *v1.Pod, controller *v1.OwnerReference) error {
	proto.Reset(pod)
	proto.Reset(controller)
	return nil
}

func (careless) WriteStatus(_ context.Context, replicaSet *v1.ReplicaSet, status *v1.ReplicaSetStatus) error {
	proto.Reset(replicaSet)
	proto.Reset(status)
	return nil
}

func TestClusterMayChangeTheObjectsThatItGets(t *testing.T) {
	p := start(t, Config{}, careless{}, 2).run()
	must(t, p.agent.ApplyPod(samplePod("set-old")))
	orphan := samplePod("set-orphan")
	orphan.Controller = nil
	must(t, p.agent.ApplyPod(orphan))
	p.agent.Synced()
	session := p.session()
	session.batch(&v1.Batch{Action: &v1.Batch_WriteStatus{WriteStatus: &v1.WriteStatus{Status: &v1.ReplicaSetStatus{Replicas: 1}}}})
	if written := session.outcome().GetDone().GetReplicaSet(); written.GetName() != "set" || written.Status.GetReplicas() != 1 {
		t.Fatal(written)
	}
	session.create("set-bbbbb")
	if made := session.outcome().GetDone().GetPod(); made.GetName() != "set-bbbbb" || made.Controller.GetUid() != "set-uid" {
		t.Fatal(made)
	}
	ref := podRef(orphan)
	session.batch(&v1.Batch{Action: &v1.Batch_Claim{Claim: &v1.Claim{Adopts: []*v1.ObjectRef{ref}}}})
	if adopted := session.outcome().GetDone().GetPod(); adopted.GetName() != "set-orphan" || adopted.Controller.GetUid() != "set-uid" {
		t.Fatal(adopted)
	}
	session.delete("set-old")
	left := session.outcome().GetDone().GetPod()
	if left.GetDeletionTimestamp() == nil || left.Controller.GetUid() != "set-uid" || left.Labels["app"] != "x" || left.Phase != v1.PodPhase_POD_PHASE_RUNNING {
		t.Fatal(left)
	}
}

func TestReleasedPodIsNotFilledIn(t *testing.T) {
	p, session := made(t, Config{})
	pod := &v1.ObjectRef{Namespace: "local", Name: "set-bbbbb", Uid: "set-bbbbb"}
	session.batch(&v1.Batch{Action: &v1.Batch_Claim{Claim: &v1.Claim{Releases: []*v1.ObjectRef{pod}}}})
	if done := session.outcome().GetDone(); done.GetPod() == nil || done.GetPod().Controller != nil {
		t.Fatal(done)
	}
	listed := []*v1.Pod{{Namespace: "local", Name: "set-bbbbb", Uid: "set-bbbbb"}, samplePod("set-ccccc"), samplePod("set-ddddd")}
	must(t, p.agent.SyncPods(listed, p.agent.Mark()))
	if pod := p.agent.Pods()[0]; pod.Controller != nil || len(pod.Labels) != 0 {
		t.Fatal(pod)
	}
}

func TestCallsAreBounded(t *testing.T) {
	running, release := make(chan string, 9), make(chan struct{})
	create := func(_ context.Context, name string) (*v1.Pod, error) {
		running <- name
		<-release
		return &v1.Pod{Uid: name}, nil
	}
	p := start(t, Config{CallsMax: 2, OperationTimeout: time.Hour}, things{create: create}, 9).run()
	p.agent.Synced()
	session := p.session()
	session.create("set-bbbbb", "set-ccccc", "set-ddddd", "set-fffff")
	<-running
	<-running
	// All four have been started by now or wait; two run.
	select {
	case name := <-running:
		t.Fatal("a third call runs:", name)
	default:
	}
	release <- struct{}{}
	session.outcome()
	<-running
	close(release)
	for range 3 {
		if outcome := session.outcome(); outcome.GetDone() == nil {
			t.Fatal(outcome)
		}
	}
}

func TestPodThatIsShownBeforeItsCreateReturnsCountsOnce(t *testing.T) {
	release := make(chan struct{})
	create := func(_ context.Context, name string) (*v1.Pod, error) {
		if name == "set-bbbbb" {
			<-release
		}
		return &v1.Pod{Uid: name}, nil
	}
	p := start(t, Config{}, things{create: create}, 2).run()
	p.agent.Synced()
	session := p.session()
	session.listed()
	session.create("set-bbbbb")
	for until := time.Now().Add(patience); p.creates() == 0 && time.Now().Before(until); {
		runtime.Gosched()
	}
	for _, shown := range []int{0, 0, 1, 0} {
		// The state of another controller is no state of this pod; its own counts in place of the create.
		pod := samplePod("set-bbbbb")
		if shown == 1 {
			pod.Controller.Uid = "other-uid"
		}
		must(t, p.agent.ApplyPod(pod))
		if creates := p.creates(); creates != shown {
			t.Fatal(creates)
		}
	}
	session.create("set-ccccc")
	if outcome := session.outcome(); outcome.GetDone() == nil {
		t.Fatal(outcome)
	}
	p.agent.RemovePod("set-bbbbb")
	if creates := p.creates(); creates != 1 {
		t.Fatal(creates)
	}
	close(release)
	session.outcome()
	if creates := p.creates(); creates != 0 {
		t.Fatal(creates)
	}
}

func TestPodWhoseDeleteReturnsBeforeItsCreateIsBeingDeleted(t *testing.T) {
	release := make(chan struct{})
	create := func(_ context.Context, name string) (*v1.Pod, error) {
		<-release
		return &v1.Pod{Uid: name}, nil
	}
	deleting := func(_ context.Context, pod *v1.Pod) (*v1.Pod, error) { return pod, nil }
	p := start(t, Config{}, things{create: create, delete: deleting}, 1).run()
	p.agent.Synced()
	session := p.session()
	session.listed()
	session.create("set-bbbbb")
	for until := time.Now().Add(patience); p.creates() == 0 && time.Now().Before(until); {
		runtime.Gosched()
	}
	must(t, p.agent.ApplyPod(samplePod("set-bbbbb")))
	must(t, p.agent.ApplyReplicaSet(sample(0)))
	session.delete("set-bbbbb")
	session.outcome()
	close(release)
	session.outcome()
	// Neither a state that forgets the deletion nor a list without the pod keeps it.
	must(t, p.agent.ApplyPod(samplePod("set-bbbbb")))
	if pods := p.agent.Pods(); len(pods) != 1 || pods[0].DeletionTimestamp == nil {
		t.Fatal(pods)
	}
	must(t, p.agent.SyncPods(nil, p.agent.Mark()))
	if pods := p.agent.Pods(); len(pods) != 0 {
		t.Fatal(pods)
	}
}

// creates returns the number of creates that count.
func (p *play) creates() (count int) {
	p.agent.locked(func() { count = p.agent.view.creates["set-uid"] })
	return count
}

func TestCallThatFindsNoPlaceInTimeDoesNotStart(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	create := func(context.Context, string) (*v1.Pod, error) { <-release; return nil, errors.New("late") }
	p := start(t, Config{CallsMax: 1, OperationTimeout: 50 * time.Millisecond}, things{create: create}, 9)
	p.agent.slots <- struct{}{} // A call that never ends.
	p.run().agent.Synced()
	session := p.session()
	session.create("set-bbbbb")
	if why := session.outcome().GetNotStarted().GetMessage(); why != "busy: 1 calls run, and none has ended in time" {
		t.Fatal(why)
	}
}

func TestEndsOfSessionsAreOneWarningForEachCause(t *testing.T) {
	p := start(t, Config{}, things{}, 1)
	p.agent.Synced()
	for range 3 {
		p.server.refusals <- refusal(codes.PermissionDenied, "NOT_ALLOWED")
	}
	p.run().session()
	lines := p.log.all()
	if len(lines) != 1 || !slices.ContainsFunc(lines, func(line string) bool { return has(line, "does not let this agent in", "NOT_ALLOWED") }) {
		t.Fatal(lines)
	}
	p.server.refusals <- refusal(codes.PermissionDenied, "NOT_ALLOWED")
	p.stop()
	if err := p.end(); err != nil || len(p.log.all()) != 1 {
		t.Fatal(err, p.log.all())
	}
}

func TestSupersededSessionIsAWarning(t *testing.T) {
	p := start(t, Config{}, things{}, 1).run()
	session := p.session()
	session.end <- refusal(codes.Aborted, "SESSION_SUPERSEDED")
	expectWarning(t, p, "another agent of this cluster", "SESSION_SUPERSEDED")
}

func TestServerThatDrainsIsNoWarning(t *testing.T) {
	p := start(t, Config{}, things{}, 1)
	p.server.refusals <- refusal(codes.Unavailable, "SERVER_DRAINING")
	p.run().session().end <- refusal(codes.Unavailable, "SERVER_DRAINING")
	p.session()
	if lines := p.log.all(); len(lines) != 0 {
		t.Fatal(lines)
	}
}

func TestServerThatAnswersCanBeReached(t *testing.T) {
	p := start(t, Config{}, things{}, 1).run()
	p.session().end <- refusal(codes.Unavailable, "SESSION_ENDED")
	expectWarning(t, p, "the session has ended", "SESSION_ENDED")
}

func TestAnotherServerIsAWarning(t *testing.T) {
	p := start(t, Config{}, things{}, 1)
	p.server.refusals <- status.Error(codes.Unimplemented, "unknown service")
	p.run().session()
	expectWarning(t, p, "no decision server", "unknown service")
}

func TestServerThatCannotBeReachedIsAWarning(t *testing.T) {
	conn, err := grpc.NewClient("unix:/no/such/socket", grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	p := start(t, Config{Conn: conn}, things{}, 1).run()
	expectWarning(t, p, "cannot be reached", "/no/such/socket")
}

func TestEndOfTheContextEndsADial(t *testing.T) {
	begun, over := make(chan struct{}, 99), make(chan struct{})
	defer close(over)
	// It neither connects nor ends, whatever its context says.
	dial := grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
		begun <- struct{}{}
		<-over
		return nil, errors.New("over")
	})
	conn, err := grpc.NewClient("passthrough:nowhere", dial, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	p := start(t, Config{Conn: conn}, things{}, 1).run()
	<-begun
	p.stop()
	must(t, p.end())
}

// expectWarning waits for a warning, which must be the only one.
func expectWarning(t *testing.T, p *play, parts ...string) {
	t.Helper()
	for until := time.Now().Add(patience); len(p.log.all()) == 0 && time.Now().Before(until); {
		runtime.Gosched()
	}
	if lines := p.log.all(); len(lines) != 1 || !has(lines[0], parts...) {
		t.Fatal(lines)
	}
}

func has(line string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
}

func TestRunEndsWithWhatNoRetryMends(t *testing.T) {
	p := start(t, Config{}, things{}, 1)
	for reason, code := range map[string]codes.Code{
		"INVALID_FIELD": codes.InvalidArgument, "EPOCH_TOO_OLD": codes.FailedPrecondition, "UNIMPLEMENTED": codes.Unimplemented,
	} {
		p.server.refusals <- refusal(code, reason)
		var refused *RefusedError
		if err := p.run().end(); !errors.As(err, &refused) || refused.Reason != reason || refused.Code != code {
			t.Fatal(err)
		}
	}
	// The Agent can run again, and not twice at a time.
	p.run().session()
	if err := p.agent.Run(t.Context()); !errors.Is(err, ErrRunning) {
		t.Fatal(err)
	}
	p.stop()
	must(t, p.end())
	mustFail(t, New(Config{}, things{}).Run(t.Context()), "Conn")
	mustFail(t, New(Config{Conn: p.agent.config.Conn, Mode: v1.Mode_MODE_ADVISE}, things{}).Run(t.Context()), "Mode")
}

func TestHelloHasEpochAndShardAndBatchesOfOtherEpochsAreRefused(t *testing.T) {
	synced := make(chan struct{}, 9)
	p := start(t, Config{Epoch: 7, Shard: "west", OnSynced: func() { synced <- struct{}{} }}, things{}, 2).run()
	session := p.session()
	if session.hello.Epoch != 7 || session.hello.Shard != "west" || session.hello.Platform != v1.Platform_PLATFORM_OTHER || len(synced) != 0 {
		t.Fatal(session.hello)
	}
	p.agent.Synced()
	session.listed()
	<-synced
	session.create("set-bbbbb")
	if session.outcome().GetDone() == nil {
		t.Fatal("an operation of this epoch")
	}
	session.hello = proto.CloneOf(session.hello)
	session.hello.Epoch = 6
	session.create("set-ccccc")
	if session.outcome().GetNotStarted() == nil {
		t.Fatal("an operation of another epoch")
	}
}

// tokens returns the number of creates that may begin at once; it is negative while creates wait.
func (p *play) tokens() (tokens float64) {
	p.agent.locked(func() { tokens = p.agent.pace.tokens })
	return tokens
}

func TestCreateThatASessionEndsTakesNoTurn(t *testing.T) {
	p := start(t, Config{OperationTimeout: time.Hour}, things{}, 9)
	p.agent.pace = newPace(0.001, 1)
	p.run().agent.Synced()
	session := p.session()
	session.create("set-bbbbb", "set-ccccc")
	if outcome := session.outcome(); outcome.GetDone() == nil {
		t.Fatal(outcome)
	}
	for until := time.Now().Add(patience); p.tokens() > -0.5 && time.Now().Before(until); {
		runtime.Gosched()
	}
	session.end <- errors.New("cut")
	p.session()
	if tokens := p.tokens(); tokens < -0.5 {
		t.Fatal(tokens)
	}
}

func TestIntervalOfHeartbeatsHasBounds(t *testing.T) {
	for given, expected := range map[time.Duration]time.Duration{
		-time.Second: 10 * time.Second, 0: 10 * time.Second, time.Millisecond: 100 * time.Millisecond, time.Second: time.Second, time.Hour: time.Minute,
	} {
		if interval := intervalOf(&v1.Welcome{HeartbeatInterval: durationpb.New(given)}); interval != expected {
			t.Error(given, interval)
		}
	}
	if interval := intervalOf(&v1.Welcome{}); interval != 10*time.Second {
		t.Error(interval)
	}
}
