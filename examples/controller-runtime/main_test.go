package main

import (
	"context"
	"fmt"
	"os"
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
			return inner.Create(ctx, object, options...)
		},
	}).Build()
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
		if err := cluster.List(t.Context(), &pods); err != nil || len(pods.Items) != wanted {
			t.Fatal(wanted, err, pods.Items)
		}
	}
	if uids != 4 {
		t.Fatal("pods that were created:", uids)
	}
}
