// Pools is a controller inside controller-runtime that asks Decree which pods to create and which to delete. A ConfigMap with the label
// `pool` stands for your own kind: it says how many pods there are to be, and owns them.
//
//	pools -server 127.0.0.1:50051 -image registry.k8s.io/pause:3.10
package main

import (
	"context"
	"flag"
	"log"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
	"github.com/decree-dev/decree/clients/go/kube"
)

type pools struct {
	client.Client
	// reader asks the API server: the cache of the client can lack pods that were created a moment ago, and they would be created again.
	reader client.Reader
	decree v1.DecisionServiceClient
	image  string
}

func (p *pools) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pool corev1.ConfigMap
	if err := p.reader.Get(ctx, request.NamespacedName, &pool); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !pool.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // The garbage collector deletes its pods, and new ones would delay its end.
	}
	replicas, err := strconv.ParseInt(pool.Data["replicas"], 10, 32)
	if err != nil {
		return ctrl.Result{}, err
	}
	wanted, labels := int32(replicas), map[string]string{"pool": pool.Name}
	question := &v1.DecideRequest{ReplicaSet: &v1.ReplicaSet{
		Namespace: pool.Namespace, Name: pool.Name, Uid: string(pool.UID), Replicas: &wanted,
		Selector: &v1.LabelSelector{MatchLabels: labels}, TemplateLabels: labels,
	}}
	var pods corev1.PodList
	if err := p.reader.List(ctx, &pods, client.InNamespace(pool.Namespace), client.MatchingLabels(labels)); err != nil {
		return ctrl.Result{}, err
	}
	for at := range pods.Items {
		// Pods of others with the label are none of the pool: it neither counts nor deletes them.
		if metav1.IsControlledBy(&pods.Items[at], &pool) {
			question.Pods = append(question.Pods, kube.FromPod(&pods.Items[at]))
		}
	}
	answer, err := p.decide(ctx, question)
	if err != nil {
		return ctrl.Result{}, err
	}
	for _, name := range answer.GetDecision().GetCreates() {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: name, Labels: labels}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: p.image}}
		if err := ctrl.SetControllerReference(&pool, pod, p.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		// A name that another pod has ends no turn: the other pods are created, and the next turn asks again.
		if err := p.Create(ctx, pod); client.IgnoreAlreadyExists(err) != nil {
			return ctrl.Result{}, err
		}
	}
	for _, victim := range answer.GetDecision().GetDeletes() {
		ctrl.LoggerFrom(ctx).Info("deleting a pod", "pod", victim.Pod.Name, "reason", victim.Reason.Detail)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: victim.Pod.Namespace, Name: victim.Pod.Name}}
		uid := types.UID(victim.Pod.Uid)
		if err := p.Delete(ctx, pod, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: time.Minute}, nil
}

// decide asks the server. The deadline ends a call that the server does not answer, which would hold up all pools.
func (p *pools) decide(ctx context.Context, question *v1.DecideRequest) (*v1.DecideResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return p.decree.Decide(ctx, question)
}

func main() {
	address := flag.String("server", "127.0.0.1:50051", "the decision server")
	image := flag.String("image", "registry.k8s.io/pause:3.10", "the image of the pods")
	flag.Parse()
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	conn, err := grpc.NewClient(*address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	failOn(err)
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	failOn(err)
	isPool, err := predicate.LabelSelectorPredicate(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: "pool", Operator: metav1.LabelSelectorOpExists,
	}}})
	failOn(err)
	failOn(ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}, builder.WithPredicates(isPool)).Owns(&corev1.Pod{}).Complete(&pools{
		Client: manager.GetClient(), reader: manager.GetAPIReader(), decree: v1.NewDecisionServiceClient(conn), image: *image,
	}))
	failOn(manager.Start(ctrl.SetupSignalHandler()))
}

func failOn(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
