// Package agent keeps the rules of a session with a Decree server, so that a controller is left with its own things: what there is, and how one of
// them is made and removed.
//
// An [Agent] holds the view: the ReplicaSets and pods as they are. The controller tells it what it observes ([Agent.ApplyPod], [Agent.RemovePod],
// [Agent.ApplyReplicaSet], [Agent.RemoveReplicaSet]) and provides a [Cluster], which the Agent calls for what the server asks for. The Agent gives every
// state a version, lists the view to the server, streams changes in order, answers each operation with exactly one outcome, and reconnects.
// docs/protocol.md specifies the rules.
//
// The Agent is meant for a process that is itself the cluster, one at a time: it has no Lease, and its epoch is 0.
package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// Cluster makes and removes the things that pods stand for. Its methods are called concurrently, each with a deadline. A new session begins only when
// all calls have returned, so they must not outlast their context.
//
// An error that is a [*Failure] says that the call had no effect, and why. After any other error the server takes the effect for unknown: it asks again,
// and a create under the same name.
type Cluster interface {
	// Create makes the pod of that name and returns it. The Agent fills in what is left empty: namespace, name, controller, version, the labels of
	// the template and the time of creation.
	Create(ctx context.Context, owner *v1.ReplicaSet, name string) (*v1.Pod, error)
	// Delete removes exactly that pod, which is identified by its uid. When it returns nil, the pod is gone.
	Delete(ctx context.Context, pod *v1.Pod, reason *v1.Reason) error
}

// Owners is implemented by a [Cluster] that records the controller of a pod. Without it, adoptions and releases change the view alone.
type Owners interface {
	// SetController records the controller of a pod; nil releases the pod.
	SetController(ctx context.Context, pod *v1.Pod, controller *v1.OwnerReference) error
}

// Statuses is implemented by a [Cluster] that records the status of a ReplicaSet. Without it, the view alone has it.
type Statuses interface {
	// WriteStatus records the status of a ReplicaSet.
	WriteStatus(ctx context.Context, replicaSet *v1.ReplicaSet, status *v1.ReplicaSetStatus) error
}

// Failure says that an operation had no effect.
type Failure struct {
	// Class is what the server acts by.
	Class v1.FailureClass
	// Message is for people; that of a create becomes the message of the condition ReplicaFailure.
	Message string
}

// Error returns the message with the class.
func (f *Failure) Error() string { return fmt.Sprintf("%s: %s", f.Class, f.Message) }

// Config says who the agent is. Only ClusterUID is required.
type Config struct {
	// ClusterUID names the cluster; no other cluster of the server has it. 1 to 128 printable ASCII characters.
	ClusterUID string
	// ClusterName is the name for people.
	ClusterName string
	// Instance names this process. Empty means a name of the time and the process.
	Instance string
	// Mode says how far the agent goes; unspecified means ENFORCE.
	Mode v1.Mode
	// Options tune decisions; nil means upstream's.
	Options *v1.Options
	// OperationTimeout bounds each call of the [Cluster]; 0 means 20 seconds.
	OperationTimeout time.Duration
	// Logf is told of sessions that end and of objects that the server rejects; nil means nobody is.
	Logf func(format string, args ...any)
}

// Agent holds the view and keeps the session. Its methods may be called at any time, from any goroutine.
type Agent struct {
	config  Config
	cluster Cluster

	mu          sync.Mutex
	version     uint64
	pods        map[string]*v1.Pod        // by uid; never changed in place, because frames refer to them
	replicaSets map[string]*v1.ReplicaSet // by uid; likewise
	creating    map[string]int            // how many pods are being created, by uid of the ReplicaSet
	deleting    map[string]bool           // uids of the pods that are being deleted
	removed     map[string]bool           // uids that were removed before the create that made them has returned
	session     *session                  // nil while there is none
}

// New returns an Agent that knows nothing yet.
func New(config Config, cluster Cluster) *Agent {
	if config.Instance == "" {
		config.Instance = fmt.Sprintf("go-%x", time.Now().UnixNano())
	}
	if config.OperationTimeout == 0 {
		config.OperationTimeout = 20 * time.Second
	}
	if config.Logf == nil {
		config.Logf = func(string, ...any) {}
	}
	return &Agent{
		config: config, cluster: cluster,
		pods: map[string]*v1.Pod{}, replicaSets: map[string]*v1.ReplicaSet{},
		creating: map[string]int{}, deleting: map[string]bool{}, removed: map[string]bool{},
	}
}

// ApplyPod takes a pod as it is: a new one, or one that changed.
func (a *Agent) ApplyPod(pod *v1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.change(&v1.Event{Event: &v1.Event_PodApplied{PodApplied: a.storePod(proto.CloneOf(pod))}})
}

// RemovePod takes note that a pod is gone.
func (a *Agent) RemovePod(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	pod, known := a.pods[uid]
	switch {
	case known:
		delete(a.pods, uid)
		a.deleted(v1.Kind_KIND_POD, podRef(pod))
	case len(a.creating) > 0:
		a.removed[uid] = true
	}
}

// ApplyReplicaSet takes a ReplicaSet as it is. Without a status it keeps the one that was written last. Its generation must grow with each change.
func (a *Agent) ApplyReplicaSet(replicaSet *v1.ReplicaSet) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := proto.CloneOf(replicaSet)
	if known := a.replicaSets[next.Uid]; known != nil && next.Status == nil {
		next.Status = known.Status
	}
	a.storeReplicaSet(next)
}

// RemoveReplicaSet takes note that a ReplicaSet is gone.
func (a *Agent) RemoveReplicaSet(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, is := a.replicaSets[uid]; is {
		delete(a.replicaSets, uid)
		a.deleted(v1.Kind_KIND_REPLICA_SET, replicaSetRef(known))
	}
}

// Scale sets how many pods a ReplicaSet wants, and its next generation. It returns whether there is such a ReplicaSet.
func (a *Agent) Scale(uid string, replicas int32) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, is := a.replicaSets[uid]
	if is {
		next := proto.CloneOf(known)
		next.Replicas = &replicas
		next.Generation++
		a.storeReplicaSet(next)
	}
	return is
}

// Pods returns the pods of the view, in the order of their names. They must not be changed.
func (a *Agent) Pods() []*v1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.SortedFunc(maps.Values(a.pods), func(one, other *v1.Pod) int {
		return slices.Compare([]string{one.Namespace, one.Name}, []string{other.Namespace, other.Name})
	})
}

// Run keeps a session with the server until the context is done. It then answers what is in flight, closes the stream and returns.
func (a *Agent) Run(ctx context.Context, conn grpc.ClientConnInterface) {
	client := v1.NewDecisionServiceClient(conn)
	wait := firstWait
	for ctx.Err() == nil {
		began := time.Now()
		after, err := a.runSession(ctx, client)
		if ctx.Err() != nil {
			return
		}
		a.config.Logf("session ended: %v", err)
		if time.Since(began) > wait {
			wait = firstWait
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(jittered(wait), after)):
		}
		wait = min(2*wait, lastWait)
	}
}

// storePod gives a pod the next version and keeps it. It holds for all functions below that the caller has locked the Agent.
func (a *Agent) storePod(pod *v1.Pod) *v1.Pod {
	pod.ResourceVersion = a.nextVersion()
	if pod.Created == nil {
		pod.Created = timestamppb.New(time.Now().Truncate(time.Second))
	}
	a.pods[pod.Uid] = pod
	return pod
}

func (a *Agent) storeReplicaSet(replicaSet *v1.ReplicaSet) {
	replicaSet.ResourceVersion = a.nextVersion()
	a.replicaSets[replicaSet.Uid] = replicaSet
	a.change(&v1.Event{Event: &v1.Event_ReplicaSetApplied{ReplicaSetApplied: replicaSet}})
}

func (a *Agent) deleted(kind v1.Kind, ref *v1.ObjectRef) {
	deleted := &v1.Deleted{Kind: kind, Object: ref, ResourceVersion: a.nextVersion()}
	a.change(&v1.Event{Event: &v1.Event_Deleted{Deleted: deleted}})
}

// dropRemoved removes the pods that were gone before their creates had returned: the outcome says that they were there, and then an event that they are not.
func (a *Agent) dropRemoved() {
	for uid := range a.removed {
		if pod, known := a.pods[uid]; known {
			delete(a.removed, uid)
			delete(a.pods, uid)
			a.deleted(v1.Kind_KIND_POD, podRef(pod))
		}
	}
	if len(a.creating) == 0 {
		clear(a.removed)
	}
}

// change sends an event. Without a session nobody needs it: the next one begins with lists.
func (a *Agent) change(event *v1.Event) {
	if a.session != nil {
		events := &v1.Events{Events: []*v1.Event{event}}
		a.session.send(&v1.ReconcileRequest{Frame: &v1.ReconcileRequest_Events{Events: events}})
	}
}

func (a *Agent) nextVersion() string {
	a.version++
	return fmt.Sprint(a.version)
}

// active counts the pods of a ReplicaSet that have neither ended nor are being deleted.
func (a *Agent) active(owner string) (count int) {
	for _, pod := range a.pods {
		if pod.Controller.GetUid() == owner && isActive(pod) && !a.deleting[pod.Uid] {
			count++
		}
	}
	return count
}

func isActive(pod *v1.Pod) bool {
	ended := pod.Phase == v1.PodPhase_POD_PHASE_SUCCEEDED || pod.Phase == v1.PodPhase_POD_PHASE_FAILED
	return pod.Deleted == nil && !ended
}

func podRef(pod *v1.Pod) *v1.ObjectRef {
	return &v1.ObjectRef{Namespace: pod.Namespace, Name: pod.Name, Uid: pod.Uid}
}

func replicaSetRef(one *v1.ReplicaSet) *v1.ObjectRef {
	return &v1.ObjectRef{Namespace: one.Namespace, Name: one.Name, Uid: one.Uid}
}

func failureOf(err error) *v1.Failed {
	var failure *Failure
	if errors.As(err, &failure) {
		return &v1.Failed{Class: failure.Class, Message: failure.Message}
	}
	return &v1.Failed{Class: v1.FailureClass_FAILURE_CLASS_TIMEOUT, Message: err.Error()}
}
