package agent

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// rows is a cluster of rows, whose lists can be behind and can forget columns. Its agent has a session with a real server.
type rows struct {
	t       *testing.T
	conn    *grpc.ClientConn
	cluster string
	agent   *Agent
	// isSlow keeps deleted rows, which are only marked.
	isSlow bool

	mu               sync.Mutex
	pods             map[string]*v1.Pod
	creates, deletes int
}

// atServer starts an agent at the server of the environment variable DECREE_SERVER.
func atServer(t *testing.T, wanted int32) *rows {
	t.Helper()
	address := os.Getenv("DECREE_SERVER")
	if address == "" {
		t.Skip("DECREE_SERVER names no server")
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	// A server remembers what a cluster has lost, also from an earlier run.
	cluster := fmt.Sprintf("%s-%d", t.Name(), time.Now().UnixNano())
	r := &rows{t: t, conn: conn, cluster: cluster, pods: map[string]*v1.Pod{}}
	r.agent = New(Config{Conn: conn, ClusterUID: cluster}, r)
	must(t, r.agent.ApplyReplicaSet(sample(wanted)))
	return r
}

func (r *rows) run() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = r.agent.Run(ctx) }()
	r.t.Cleanup(func() { stop(); <-ended })
}

func (r *rows) Create(_ context.Context, _ *v1.ReplicaSet, name string) (*v1.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.creates++
	pod := samplePod(name)
	r.pods[name] = pod
	return proto.CloneOf(pod), nil
}

func (r *rows) Delete(_ context.Context, pod *v1.Pod, _ *v1.Reason) (*v1.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deletes++
	if r.isSlow {
		pod = proto.CloneOf(pod)
		pod.DeletionTimestamp = timestamppb.Now()
		return pod, nil
	}
	delete(r.pods, pod.Name)
	return nil, nil
}

func (r *rows) counts() [2]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return [2]int{r.creates, r.deletes}
}

// list returns all rows, with these labels instead of theirs.
func (r *rows) list(labels map[string]string) (pods []*v1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, pod := range r.pods {
		listed := proto.CloneOf(pod)
		if labels != nil {
			listed.Labels, listed.Controller = labels, nil
		}
		pods = append(pods, listed)
	}
	return pods
}

// expect waits until the server has these active pods and nothing to do, and compares the numbers of creates and deletes.
func (r *rows) expect(active int32, counts [2]int) {
	r.t.Helper()
	inspection := v1.NewInspectionServiceClient(r.conn)
	var seen []*v1.ReplicaSetSummary
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		answer, err := inspection.ListReplicaSets(r.t.Context(), &v1.ListReplicaSetsRequest{Cluster: r.cluster})
		seen = answer.GetReplicaSets()
		if err == nil && len(seen) == 1 && seen[0].Active == active && seen[0].Replicas == active &&
			seen[0].State == v1.ReplicaSetState_REPLICA_SET_STATE_IN_SYNC {
			if got := r.counts(); got != counts {
				r.t.Fatal("creates and deletes:", got)
			}
			return
		}
	}
	r.t.Fatal(seen, r.counts())
}

func TestListThatLagsMakesNoPodTooMany(t *testing.T) {
	r := atServer(t, 3)
	must(t, r.agent.SyncPods(nil, r.agent.Mark()))
	r.run()
	r.expect(3, [2]int{3, 0})
	for range 50 {
		must(t, r.agent.SyncPods(nil, r.agent.Mark()))
	}
	r.agent.Scale("set-uid", 4)
	r.expect(4, [2]int{4, 0})
	for range 50 {
		must(t, r.agent.SyncPods(r.list(nil), r.agent.Mark()))
	}
	r.agent.Scale("set-uid", 5)
	r.expect(5, [2]int{5, 0})
}

func TestFailedFirstListDoublesNothing(t *testing.T) {
	r := atServer(t, 5)
	for _, name := range []string{"set-1", "set-2", "set-3", "set-4", "set-5"} {
		r.pods[name] = samplePod(name)
	}
	r.run()
	// The first list fails, while the server has a session and sees nothing.
	inspection := v1.NewInspectionServiceClient(r.conn)
	for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		answer, err := inspection.ListReplicaSets(t.Context(), &v1.ListReplicaSetsRequest{Cluster: r.cluster})
		if err == nil && len(answer.ReplicaSets) == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatal("no session:", answer, err)
		}
	}
	must(t, r.agent.SyncPods(r.list(nil), r.agent.Mark()))
	r.expect(5, [2]int{0, 0})
}

func TestListThatForgetsLabelsMakesNoPodTooMany(t *testing.T) {
	r := atServer(t, 3)
	r.agent.Synced()
	r.run()
	r.expect(3, [2]int{3, 0})
	must(t, r.agent.SyncPods(r.list(map[string]string{}), r.agent.Mark()))
	for range 50 {
		mustFail(t, r.agent.SyncPods(r.list(map[string]string{"host": "a"}), r.agent.Mark()), "labels", `app must be "x"`)
	}
	r.agent.Scale("set-uid", 4)
	r.expect(4, [2]int{4, 0})
}

func TestCreatesDoNotWaitForTheEndOfDeletedPods(t *testing.T) {
	r := atServer(t, 4)
	r.isSlow = true
	r.agent.Synced()
	r.run()
	r.expect(4, [2]int{4, 0})
	r.agent.Scale("set-uid", 1)
	r.expect(1, [2]int{4, 3})
	r.agent.Scale("set-uid", 8)
	r.expect(8, [2]int{11, 3})
	leaving := 0
	for _, pod := range r.agent.Pods() {
		if pod.DeletionTimestamp != nil {
			leaving++
			r.agent.RemovePod(pod.Uid)
		}
	}
	if leaving != 3 {
		t.Fatal("the deleted pods are not there any more:", leaving)
	}
	r.agent.Scale("set-uid", 9)
	r.expect(9, [2]int{12, 3})
}
