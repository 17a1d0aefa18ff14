// Command replicaset-controller runs upstream's own ReplicaSet controller in one namespace, unchanged or with faults.
//
// All decisions are upstream's code. Faults change only the objects that the controller sees. tests/kube/mutants.rs lists their effects.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/replicaset"
)

// workers is the number of ReplicaSets that are synced concurrently, as in kube-controller-manager.
const workers = 5

var (
	kubeconfig = flag.String("kubeconfig", "", "file that says where the API server is (required)")
	namespace  = flag.String("namespace", "", "the namespace to act in (required)")
	faulty     = flag.Bool("faulty", false, "whether to see objects wrongly")
)

func main() {
	klog.InitFlags(nil)
	flag.Parse()
	if *kubeconfig == "" || *namespace == "" {
		flag.Usage()
		os.Exit(64)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	must(err)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	must(err)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(*namespace))
	sets, pods := factory.Apps().V1().ReplicaSets(), factory.Core().V1().Pods()
	if *faulty {
		must(sets.Informer().SetTransform(misread))
		must(pods.Informer().SetTransform(misread))
	}
	rsc := replicaset.NewReplicaSetController(ctx, sets, pods, client, replicaset.BurstReplicas)
	factory.Start(ctx.Done())
	rsc.Run(ctx, workers)
}

// misread changes an object before the controller sees it.
func misread(shown any) (any, error) {
	switch object := shown.(type) {
	case *apps.ReplicaSet:
		switch object.Name {
		case "more":
			*object.Spec.Replicas++
		case "observed":
			object.Generation--
		}
	case *v1.Pod:
		// Orphans match no selector, and the order of deletion by cost is reversed.
		if metav1.GetControllerOf(object) == nil {
			object.Labels = nil
		}
		if cost, err := strconv.Atoi(object.Annotations[v1.PodDeletionCost]); err == nil {
			object.Annotations[v1.PodDeletionCost] = strconv.Itoa(-cost)
		}
	}
	return shown, nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
