// Package agent keeps the rules of a session with a Decree server, so that a controller is left with its own things: what there is, and how one of
// them is made and removed.
//
// An [Agent] holds the view: the ReplicaSets and pods as they are. The controller tells it what it observes ([Agent.ApplyPod], [Agent.RemovePod],
// [Agent.ApplyReplicaSet], [Agent.RemoveReplicaSet], or whole lists by [Agent.SyncPods] and [Agent.SyncReplicaSets]) and provides a [Cluster], which the Agent calls for what the server asks for. The Agent gives every
// state a version, lists the view to the server, streams changes in order, answers each operation with exactly one outcome, and reconnects.
// docs/protocol.md specifies the rules.
//
// The Agent is meant for a process that is itself the cluster, one at a time: it has no Lease, and its epoch is 0.
package agent

import (
	"context"
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

// Cluster makes and removes the things that pods stand for. Its methods are called concurrently, each with a deadline. A call that outlasts it is answered
// with TIMEOUT, and keeps its place until it returns: its name is not asked for again, it counts as being created, and what it does goes into the view then.
//
// An error that is a [*Failure] says that the call had no effect, and why. After any other error, or a panic, the server takes the effect for unknown: it
// asks again, and a create under the same name.
type Cluster interface {
	// Create makes the pod of that name and returns it. The Agent fills in what is left empty: namespace, name, controller, version, the labels of
	// the template and the time of creation. What is not empty must be right, and there must be a uid; else the create has failed with INVALID.
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
	// RetryAfter says how long to wait before the next attempt, for the class THROTTLED; 0 says nothing.
	RetryAfter time.Duration
}

// Error returns the message with the class.
func (f *Failure) Error() string { return fmt.Sprintf("%s: %s", f.Class, f.Message) }

// Config says who the agent is. Only ClusterUID is required.
type Config struct {
	// ClusterUID names the cluster; no other cluster of the server has it. 1 to 128 letters, digits and . _ : / @ -, with a letter or digit at both ends.
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
	// CreatesPerSecond and CreateBurst pace creates: so many begin at once, and then so many a second; 0 means 20 and 100. A negative CreatesPerSecond
	// means no limit. A create that would wait for longer than OperationTimeout is not started.
	CreatesPerSecond float64
	CreateBurst      int
	// Logf is told of sessions that end, of objects that the server rejects, and of calls of the [Cluster] that fail other than by a
	// [Failure]; nil means nobody is. It must not call the Agent.
	Logf func(format string, args ...any)
}

// Agent holds the view and keeps the session. Its methods may be called at any time, from any goroutine.
type Agent struct {
	config  Config
	cluster Cluster

	mu              sync.Mutex
	version         uint64
	pods            map[string]*v1.Pod        // by uid; never changed in place, because frames refer to them
	replicaSets     map[string]*v1.ReplicaSet // by uid; likewise
	applied         map[string]Mark           // when each ReplicaSet was applied last, by uid
	gonePods        removals
	goneReplicaSets removals
	creating        map[podName]string // the uid of the ReplicaSet, for each pod that is being created
	deleting        map[string]bool    // uids of the pods that are being deleted
	removed         []string           // uids that were removed before the create that made them has returned
	pace            *pace
	session         *session // nil while there is none
}

type podName struct{ namespace, name string }

// New returns an Agent that knows nothing yet.
func New(config Config, cluster Cluster) *Agent {
	if config.Instance == "" {
		config.Instance = fmt.Sprintf("go-%x", time.Now().UnixNano())
	}
	if config.OperationTimeout == 0 {
		config.OperationTimeout = 20 * time.Second
	}
	if config.CreatesPerSecond == 0 {
		config.CreatesPerSecond = defaultCreatesPerSecond
	}
	if config.CreateBurst <= 0 {
		config.CreateBurst = defaultCreateBurst
	}
	if config.Logf == nil {
		config.Logf = func(string, ...any) {}
	}
	return &Agent{
		config: config, cluster: cluster,
		pods: map[string]*v1.Pod{}, replicaSets: map[string]*v1.ReplicaSet{}, applied: map[string]Mark{},
		gonePods: removals{at: map[string]removal{}}, goneReplicaSets: removals{at: map[string]removal{}},
		creating: map[podName]string{}, deleting: map[string]bool{},
		pace: newPace(config.CreatesPerSecond, config.CreateBurst),
	}
}

// ApplyPod takes a pod as it is: a new one, or one that changed. The state that is applied last counts, so apply none that you read before a change that
// you have told since; [Agent.SyncPods] takes lists. A pod whose delete has been answered is gone, and is not applied.
func (a *Agent) ApplyPod(pod *v1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.gonePods.at[pod.GetUid()].answered {
		a.change(&v1.Event{Event: &v1.Event_PodApplied{PodApplied: a.storePod(proto.CloneOf(pod))}})
	}
}

// RemovePod takes note that a pod is gone.
func (a *Agent) RemovePod(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, is := a.pods[uid]; is {
		a.dropPod(known)
	} else if !a.gonePods.at[uid].answered {
		a.version++
		a.gonePods.add(uid, removal{version: Mark(a.version)})
	}
}

// ApplyReplicaSet takes a ReplicaSet as it is. Without a status it keeps the one that was written last. Its generation must grow with each change.
//
// As an API server of Kubernetes does, it refuses a ReplicaSet whose selector has no requirement, is not valid, or does not match the labels of the template.
// The error names the field, and what was known of the ReplicaSet stays.
func (a *Agent) ApplyReplicaSet(replicaSet *v1.ReplicaSet) error {
	if err := checkReplicaSet(replicaSet); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	next := proto.CloneOf(replicaSet)
	if known := a.replicaSets[next.Uid]; known != nil && next.Status == nil {
		next.Status = known.Status
	}
	a.applyReplicaSet(next)
	return nil
}

// RemoveReplicaSet takes note that a ReplicaSet is gone.
func (a *Agent) RemoveReplicaSet(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, is := a.replicaSets[uid]; is {
		a.dropReplicaSet(known)
	} else {
		a.version++
		a.goneReplicaSets.add(uid, removal{version: Mark(a.version)})
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
		a.applyReplicaSet(next)
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
	delete(a.gonePods.at, pod.Uid)
	return pod
}

func (a *Agent) applyReplicaSet(replicaSet *v1.ReplicaSet) {
	replicaSet.ResourceVersion = a.nextVersion()
	a.replicaSets[replicaSet.Uid] = replicaSet
	a.applied[replicaSet.Uid] = Mark(a.version)
	delete(a.goneReplicaSets.at, replicaSet.Uid)
	a.change(&v1.Event{Event: &v1.Event_ReplicaSetApplied{ReplicaSetApplied: replicaSet}})
}

func (a *Agent) dropPod(pod *v1.Pod) {
	delete(a.pods, pod.Uid)
	a.deleted(v1.Kind_KIND_POD, podRef(pod))
	a.gonePods.add(pod.Uid, removal{version: Mark(a.version)})
}

func (a *Agent) dropReplicaSet(one *v1.ReplicaSet) {
	delete(a.replicaSets, one.Uid)
	delete(a.applied, one.Uid)
	a.deleted(v1.Kind_KIND_REPLICA_SET, replicaSetRef(one))
	a.goneReplicaSets.add(one.Uid, removal{version: Mark(a.version)})
}

func (a *Agent) deleted(kind v1.Kind, ref *v1.ObjectRef) {
	deleted := &v1.Deleted{Kind: kind, Object: ref, ResourceVersion: a.nextVersion()}
	a.change(&v1.Event{Event: &v1.Event_Deleted{Deleted: deleted}})
}

// dropRemoved removes the pods that were gone before their creates had returned: the outcome says that they were there, and then an event that they are not.
func (a *Agent) dropRemoved() {
	for _, uid := range a.removed {
		if pod, known := a.pods[uid]; known {
			a.dropPod(pod)
		}
	}
	a.removed = nil
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

// active counts the pods of a ReplicaSet that have neither ended nor are being deleted, and those that are being created.
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
