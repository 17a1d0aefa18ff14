// Command eviction-controllers runs upstream's own controllers of EvictionRequests: the one that makes Evictions of them, and the default
// responder.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/evictionrequest"
	"k8s.io/kubernetes/pkg/controller/imperativeevictionresponder"
)

// workers is the number of objects that are synced concurrently, as in kube-controller-manager.
const workers = 5

var kubeconfig = flag.String("kubeconfig", "", "file that says where the API server is (required)")

func main() {
	klog.InitFlags(nil)
	flag.Parse()
	if *kubeconfig == "" {
		flag.Usage()
		os.Exit(64)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	must(err)
	client, err := kubernetes.NewForConfig(config)
	must(err)
	factory := informers.NewSharedInformerFactory(client, 0)
	evictions, pods := factory.Lifecycle().V1alpha1().Evictions(), factory.Core().V1().Pods()
	requests := factory.Lifecycle().V1alpha1().EvictionRequests()
	requested, err := evictionrequest.NewController(ctx, "evictionrequest-controller", evictions, requests, pods, client)
	must(err)
	responder, err := imperativeevictionresponder.NewController(ctx, "imperative-eviction-responder-controller", evictions, pods, client)
	must(err)
	factory.Start(ctx.Done())
	go requested.Run(ctx, workers)
	responder.Run(ctx, workers)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
