// Command replicaset-controller runs upstream's own ReplicaSet controller in one namespace, unchanged or with a fault.
//
// All decisions are upstream's code. A fault changes only the objects that the controller sees, or the effect of
// its writes. tests/kube/mutants.rs lists the expected effect of each fault.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"syscall"
	"unsafe"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/replicaset"
)

// workers is the number of ReplicaSets that are synced concurrently, as in kube-controller-manager.
const workers = 5

var (
	kubeconfig = flag.String("kubeconfig", "", "file that says where the API server is (required)")
	namespace  = flag.String("namespace", "", "the namespace to act in (required)")
	name       = flag.String("fault", "", "what is done wrongly; by default, nothing")
)

func main() {
	klog.InitFlags(nil)
	flag.Parse()
	wrong, known := faults[*name]
	if *kubeconfig == "" || *namespace == "" || !known && *name != "" {
		flag.Usage()
		fmt.Fprintln(os.Stderr, "faults:", slices.Sorted(maps.Keys(faults)))
		os.Exit(64)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	must(err)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	must(err)
	run(ctx, client, wrong)
}

// run runs the controller until the context ends.
func run(ctx context.Context, client kubernetes.Interface, wrong fault) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(*namespace))
	sets, pods := factory.Apps().V1().ReplicaSets(), factory.Core().V1().Pods()
	must(sets.Informer().SetTransform(seen(wrong.set)))
	must(pods.Informer().SetTransform(seen(wrong.pod)))
	used := client
	if wrong.status != nil {
		used = statusClient{client, wrong.status}
	}
	rsc := replicaset.NewReplicaSetController(ctx, sets, pods, used, replicaset.BurstReplicas)
	if wrong.writes != nil {
		control := field[controller.PodControlInterface](rsc, "podControl")
		*control = wrong.writes(*control, client)
	}
	factory.Start(ctx.Done())
	rsc.Run(ctx, workers)
}

// seen returns a transform that changes objects before the controller sees them.
func seen[T apps.ReplicaSet | v1.Pod](change func(*T)) cache.TransformFunc {
	return func(shown any) (any, error) {
		if object, is := shown.(*T); is && change != nil {
			change(object)
		}
		return shown, nil
	}
}

// field returns a pointer to a private field of the controller.
func field[T any](rsc *replicaset.ReplicaSetController, name string) *T {
	found := reflect.ValueOf(rsc).Elem().FieldByName(name)
	if found.Type() != reflect.TypeFor[T]() {
		panic(fmt.Sprintf("%s is a %s", name, found.Type()))
	}
	return (*T)(unsafe.Pointer(found.UnsafeAddr()))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
