package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// The server is that of the environment variable DECREE_SERVER, and the cluster is in memory.
func TestPoolHasItsPods(t *testing.T) {
	address := os.Getenv("DECREE_SERVER")
	if address == "" {
		t.Skip("DECREE_SERVER names no server")
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	pool := &corev1.ConfigMap{}
	pool.Namespace, pool.Name, pool.UID = "default", "web", "web-uid"
	pool.Data = map[string]string{"replicas": "3"}
	uids := 0
	cluster := fake.NewClientBuilder().WithObjects(pool).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, inner client.WithWatch, object client.Object, options ...client.CreateOption) error {
			uids++
			object.SetUID(types.UID(fmt.Sprint("uid-", uids)))
			object.SetFinalizers([]string{"test/slow"}) // A deleted pod stays, as one that is terminating.
			return inner.Create(ctx, object, options...)
		},
	}).Build()
	// A pod that only has the label is none of the pool.
	stranger := &corev1.Pod{}
	stranger.Namespace, stranger.Name, stranger.Labels = "default", "stranger", map[string]string{"pool": "web"}
	if err := cluster.Create(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	p := &pools{Client: cluster, reader: cluster, decree: v1.NewDecisionServiceClient(conn), image: "pause"}
	for _, wanted := range []int{3, 3, 1, 2} {
		pool.Data["replicas"] = fmt.Sprint(wanted)
		if err := cluster.Update(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pool)}); err != nil {
			t.Fatal(err)
		}
		var pods corev1.PodList
		if err := cluster.List(t.Context(), &pods); err != nil {
			t.Fatal(err)
		}
		isGoing := func(pod corev1.Pod) bool { return !pod.DeletionTimestamp.IsZero() || pod.Name == stranger.Name }
		if left := slices.DeleteFunc(pods.Items, isGoing); len(left) != wanted {
			t.Fatal(wanted, left)
		}
	}
	if uids != 5 {
		t.Fatal("pods that were created, with the stranger:", uids)
	}
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(stranger), stranger); err != nil || stranger.DeletionTimestamp != nil {
		t.Fatal(err, stranger)
	}
	// A pool that is being deleted gets no pods.
	pool.Data["replicas"] = "9"
	pool.Finalizers = []string{"test/slow"}
	if err := errors.Join(cluster.Update(t.Context(), pool), cluster.Delete(t.Context(), pool)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pool)}); err != nil || uids != 5 {
		t.Fatal(err, uids)
	}
}

// answers is a server with one answer.
type answers struct {
	v1.DecisionServiceClient
	answer *v1.DecideResponse
	t      *testing.T
}

func (a answers) Decide(ctx context.Context, _ *v1.DecideRequest, _ ...grpc.CallOption) (*v1.DecideResponse, error) {
	if _, has := ctx.Deadline(); !has {
		a.t.Error("the call has no deadline")
	}
	return a.answer, nil
}

func TestTurnGoesOnAfterATakenNameAndWithoutADecision(t *testing.T) {
	pool, taken := &corev1.ConfigMap{}, &corev1.Pod{}
	pool.Namespace, pool.Name, pool.UID = "default", "web", "web-uid"
	pool.Data = map[string]string{"replicas": "2"}
	taken.Namespace, taken.Name = "default", "web-taken"
	cluster := fake.NewClientBuilder().WithObjects(pool, taken).Build()
	for _, decision := range []*v1.Decision{nil, {Creates: []string{"web-taken", "web-free"}}} {
		server := answers{answer: &v1.DecideResponse{Decision: decision}, t: t}
		p := &pools{Client: cluster, reader: cluster, decree: server, image: "pause"}
		if _, err := p.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pool)}); err != nil {
			t.Fatal(err)
		}
	}
	var free corev1.Pod
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web-free"}, &free); err != nil {
		t.Fatal(err)
	}
}

// Without a logger, controller-runtime says nothing, not even why a Reconcile fails. The test runs itself as the program.
func TestProgramLogs(t *testing.T) {
	if os.Getenv("IS_POOLS") != "" {
		os.Args = []string{"pools"}
		main()
	}
	config := filepath.Join(t.TempDir(), "config")
	unreachable := "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n"
	if err := os.WriteFile(config, []byte(unreachable), 0o600); err != nil {
		t.Fatal(err)
	}
	program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProgramLogs$")
	program.Env = append(os.Environ(), "IS_POOLS=1", "KUBECONFIG="+config)
	output, err := program.StderrPipe()
	if err = errors.Join(err, program.Start()); err != nil {
		t.Fatal(err)
	}
	first, err := bufio.NewReader(output).ReadString('\n')
	if !strings.Contains(first, "msg=\"Starting EventSource\"") {
		t.Error(first, err)
	}
	_ = program.Process.Kill()
	_ = program.Wait()
}
