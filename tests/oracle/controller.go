package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"
	"unsafe"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

//go:linkname syncReplicaSet k8s.io/kubernetes/pkg/controller/replicaset.(*ReplicaSetController).syncReplicaSet
func syncReplicaSet(rsc *replicaset.ReplicaSetController, ctx context.Context, key string) error

//go:linkname relatedPods k8s.io/kubernetes/pkg/controller/replicaset.(*ReplicaSetController).getIndirectlyRelatedPods
func relatedPods(rsc *replicaset.ReplicaSetController, logger klog.Logger, rs *apps.ReplicaSet) ([]*v1.Pod, error)

//go:linkname ranked k8s.io/kubernetes/pkg/controller/replicaset.getPodsRankedByRelatedPodsOnSameNode
func ranked(pods, related []*v1.Pod) controller.ActivePodsWithRanks

// run lets upstream sync the key of a case once, on a client with the failures of the case, and records the result.
func run(v *syncVector) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	rs := v.ReplicaSets[0]
	var objs []runtime.Object
	for _, r := range v.ReplicaSets {
		live := r.DeepCopy()
		if r == rs {
			if v.Fault.LiveDeletionTimestamp && live.DeletionTimestamp == nil {
				live.DeletionTimestamp = ptr.To(at(time.Second))
				live.Finalizers = []string{"example.com/hold"}
			}
			if v.Fault.LiveUID {
				live.UID = "11111111-2222-4333-8444-555555555555"
			}
		}
		objs = append(objs, live)
	}
	for _, p := range v.Pods {
		objs = append(objs, p.DeepCopy())
	}
	client := fake.NewClientset(objs...)
	var mu sync.Mutex
	creates, created := 0, 0
	client.PrependReactor("create", "pods", func(a core.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		creates++
		if f := v.Fault.FailCreatesFrom; f > 0 && creates >= f {
			return true, nil, createError(v.Fault.CreateError)
		}
		created++
		p := a.(core.CreateAction).GetObject().(*v1.Pod).DeepCopy()
		p.Name = fmt.Sprintf("new-%d", created)
		p.ResourceVersion = "1"
		return true, p, nil
	})
	deletes := []string{}
	client.PrependReactor("delete", "pods", func(a core.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		name := a.(core.DeleteAction).GetName()
		deletes = append(deletes, name)
		if slices.Contains(v.Fault.FailDeletes, name) {
			if v.Fault.DeleteError == "notFound" {
				return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
			}
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, name, errors.New("denied"))
		}
		return true, nil, nil
	})
	patched := []string{}
	client.PrependReactor("patch", "pods", func(a core.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		patched = append(patched, a.(core.PatchAction).GetName())
		for _, p := range v.Pods {
			if p.Name == a.(core.PatchAction).GetName() {
				return true, p.DeepCopy(), nil
			}
		}
		return true, nil, errors.New("no such pod")
	})
	var status *apps.ReplicaSetStatus
	client.PrependReactor("update", "replicasets", func(a core.Action) (bool, runtime.Object, error) {
		u := a.(core.UpdateAction).GetObject().(*apps.ReplicaSet)
		status = u.Status.DeepCopy()
		return true, u, nil
	})

	factory := informers.NewSharedInformerFactory(client, 0)
	rsInf, podInf := factory.Apps().V1().ReplicaSets(), factory.Core().V1().Pods()
	rsc := replicaset.NewReplicaSetController(ctx, rsInf, podInf, client, replicaset.BurstReplicas)
	set(rsc, "clock", clock.PassiveClock(testingclock.NewFakeClock(now)))
	q := &spyQueue{TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())}
	set(rsc, "queue", workqueue.TypedRateLimitingInterface[string](q))
	for _, r := range v.ReplicaSets {
		must(rsInf.Informer().GetIndexer().Add(r))
	}
	for _, p := range v.Pods {
		must(podInf.Informer().GetIndexer().Add(p))
	}
	err := syncReplicaSet(rsc, ctx, v.Key)
	e := expected{Error: err != nil, CreateCalls: creates, Created: created, DeleteCount: len(deletes)}
	owned := map[string]bool{}
	for _, p := range v.Pods {
		if r := metav1.GetControllerOf(p); r != nil && r.UID == rs.UID {
			owned[p.Name] = true
		}
	}
	slices.Sort(patched)
	for _, name := range patched {
		if owned[name] {
			e.Releases = append(e.Releases, name)
		} else {
			e.Adopts = append(e.Adopts, name)
		}
	}
	slices.Sort(deletes)
	if len(deletes) > 0 {
		claimed := candidates(v, e.Adopts)
		if strictOrder(rsc, rs, claimed) || len(deletes) == len(claimed) {
			e.Deletes = deletes
		} else {
			e.AnyDeletes = true
		}
	}
	if status != nil {
		for i := range status.Conditions {
			c := &status.Conditions[i]
			if now.Sub(c.LastTransitionTime.Time) < time.Minute {
				c.LastTransitionTime = metav1.NewTime(now) // the wall clock of the run
			}
		}
		e.Status = status
	}
	if q.after != nil {
		e.RequeueAfterSeconds = ptr.To(q.after.Seconds())
	}
	v.Expected = e
}

func candidates(v *syncVector, adopts []string) []*v1.Pod {
	rs := v.ReplicaSets[0]
	sel, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
	must(err)
	var ps []*v1.Pod
	for _, p := range v.Pods {
		r := metav1.GetControllerOf(p)
		mine := r != nil && r.UID == rs.UID && sel.Matches(labels.Set(p.Labels))
		if controller.IsPodActive(p) && (mine || slices.Contains(adopts, p.Name)) {
			ps = append(ps, p)
		}
	}
	return ps
}

// strictOrder returns whether the upstream comparison puts the pods of a ReplicaSet in one strict total order.
// With ties or cycles, the victims depend on the sort algorithm.
func strictOrder(rsc *replicaset.ReplicaSetController, rs *apps.ReplicaSet, ps []*v1.Pod) bool {
	related, err := relatedPods(rsc, klog.Background(), rs)
	must(err)
	l := ranked(ps, related)
	l.Now = metav1.NewTime(now)
	wins := make([]int, len(ps))
	for a := range ps {
		for b := range ps {
			if a != b && l.Less(a, b) {
				wins[a]++
			}
		}
	}
	slices.Sort(wins)
	for i, w := range wins { // a strict total order wins 0, 1, … n-1 times
		if w != i {
			return false
		}
	}
	return true
}

func createError(kind string) error {
	gr := schema.GroupResource{Resource: "pods"}
	switch kind {
	case "forbidden":
		return apierrors.NewForbidden(gr, "", errors.New("exceeded quota"))
	case "namespaceTerminating":
		err := apierrors.NewForbidden(gr, "", errors.New("namespace is being terminated"))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: v1.NamespaceTerminatingCause, Message: "namespace is being terminated"})
		return err
	case "timeout":
		return apierrors.NewTimeoutError("try again", 1)
	default:
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "", nil)
	}
}

type spyQueue struct {
	workqueue.TypedRateLimitingInterface[string]
	after *time.Duration
}

func (q *spyQueue) AddAfter(_ string, d time.Duration) { q.after = &d }

func set(rsc *replicaset.ReplicaSetController, field string, value any) {
	f := reflect.ValueOf(rsc).Elem().FieldByName(field)
	reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().Set(reflect.ValueOf(value))
}
