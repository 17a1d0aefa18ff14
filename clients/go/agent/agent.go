// Package agent implements the agent's side of a session with a Decree server. A controller only reports its objects, and creates and removes pods.
//
// An [Agent] holds the view: the current ReplicaSets and pods. The controller reports changes ([Agent.ApplyPod], [Agent.RemovePod],
// [Agent.ApplyReplicaSet], [Agent.RemoveReplicaSet]) or complete lists ([Agent.SyncPods], [Agent.SyncReplicaSets]).
// The controller also provides a [Cluster], which the Agent calls for the operations of the server. The Agent gives every
// state a version, lists the view to the server, streams changes in order, sends exactly one outcome for each operation, and reconnects.
// docs/protocol.md specifies the rules.
//
// The Agent is for a process that is itself the cluster and runs as a single instance: the Agent has no Lease, and its epoch is 0.
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

// Cluster creates and removes the things that pods represent. The Agent calls its methods concurrently, each with a deadline.
// The outcome of a call that misses its deadline is TIMEOUT. Until that call returns, its name is not requested again,
// its pod counts as being created, and its effect enters the view when it returns.
//
// A [*Failure] says that the call had no effect, and why. After any other error, or a panic, the effect is unknown: the server retries, and
// repeats a create under the same name.
type Cluster interface {
	// Create creates the pod with this name and returns it. The Agent fills in empty fields: namespace, name, controller, version, the labels of
	// the template and the creation time. Other fields must be correct, and the UID is required; otherwise the create fails with INVALID.
	Create(ctx context.Context, owner *v1.ReplicaSet, name string) (*v1.Pod, error)
	// Delete removes exactly this pod, identified by its UID. After a nil error, the pod is gone.
	Delete(ctx context.Context, pod *v1.Pod, reason *v1.Reason) error
}

// Owners is implemented by a [Cluster] that records the controller of a pod. Without it, adoptions and releases only change the view.
type Owners interface {
	// SetController records the controller of a pod; nil releases the pod.
	SetController(ctx context.Context, pod *v1.Pod, controller *v1.OwnerReference) error
}

// Statuses is implemented by a [Cluster] that records the status of a ReplicaSet. Without it, only the view contains the status.
type Statuses interface {
	// WriteStatus records the status of a ReplicaSet.
	WriteStatus(ctx context.Context, replicaSet *v1.ReplicaSet, status *v1.ReplicaSetStatus) error
}

// Failure says that an operation had no effect.
type Failure struct {
	// Class decides how the server reacts.
	Class v1.FailureClass
	// Message is for people. The message of a failed create becomes the message of the condition ReplicaFailure.
	Message string
	// RetryAfter is the delay before the next attempt, for the class THROTTLED; 0 leaves the delay to the server.
	RetryAfter time.Duration
}

// Error returns the message with the class.
func (f *Failure) Error() string { return fmt.Sprintf("%s: %s", f.Class, f.Message) }

// Config identifies and configures the agent. Only ClusterUID is required.
type Config struct {
	// ClusterUID names the cluster, and must be unique on the server: 1 to 128 letters, digits and . _ : / @ -, with a letter or digit at both ends.
	ClusterUID string
	// ClusterName is the display name.
	ClusterName string
	// Instance names this process. If empty, the Agent makes a name from the time and the process ID.
	Instance string
	// Mode is the mode of the agent; unspecified means ENFORCE.
	Mode v1.Mode
	// Options tune decisions; nil means the values of upstream.
	Options *v1.Options
	// OperationTimeout bounds each call of the [Cluster]; 0 means 20 seconds.
	OperationTimeout time.Duration
	// CreatesPerSecond and CreateBurst limit creates: CreateBurst at once, and then CreatesPerSecond; 0 means 20 and 100. A negative CreatesPerSecond
	// means no limit. A create that would wait for longer than OperationTimeout does not start.
	CreatesPerSecond float64
	CreateBurst      int
	// Logf receives ended sessions, objects that the server rejects, and calls of the [Cluster] that fail with anything but a
	// [Failure]; nil discards them. It must not call the Agent.
	Logf func(format string, args ...any)
}

// Agent holds the view and keeps the session. Its methods are safe for concurrent use.
type Agent struct {
	config  Config
	cluster Cluster

	mu              sync.Mutex
	version         uint64
	pods            map[string]*v1.Pod        // by UID; never changed in place, because frames refer to the pods
	replicaSets     map[string]*v1.ReplicaSet // by UID; never changed in place
	applied         map[string]Mark           // when each ReplicaSet was applied last, by UID
	gonePods        removals
	goneReplicaSets removals
	creating        map[podName]string // the UID of the ReplicaSet, for each pod that is being created
	deleting        map[string]bool    // UIDs of the pods that are being deleted
	removed         []string           // UIDs that were removed before their create returned
	pace            *pace
	session         *session // nil without a session
}

type podName struct{ namespace, name string }

// New returns an Agent with an empty view.
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

// ApplyPod adds or updates a pod. The last applied state counts, so never apply a state that was read before a change you already
// reported; for lists, use [Agent.SyncPods]. The Agent ignores a pod whose delete has succeeded.
func (a *Agent) ApplyPod(pod *v1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.gonePods.at[pod.GetUid()].answered {
		a.change(&v1.Event{Event: &v1.Event_PodApplied{PodApplied: a.storePod(proto.CloneOf(pod))}})
	}
}

// RemovePod removes a pod from the view.
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

// ApplyReplicaSet adds or updates a ReplicaSet. Without a status, the last written status stays. The generation must grow with each change.
//
// Like the Kubernetes API server, it refuses a ReplicaSet whose selector is empty, is invalid, or does not match the labels of the template.
// The error names the field, and the view keeps the earlier ReplicaSet.
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

// RemoveReplicaSet removes a ReplicaSet from the view.
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

// Scale sets the desired number of pods of a ReplicaSet, and increments its generation. It returns false if the view has no such ReplicaSet.
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

// Pods returns the pods of the view, sorted by name. Do not change them.
func (a *Agent) Pods() []*v1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.SortedFunc(maps.Values(a.pods), func(one, other *v1.Pod) int {
		return slices.Compare([]string{one.Namespace, one.Name}, []string{other.Namespace, other.Name})
	})
}

// Run keeps a session with the server until the context is done. It then sends the outcomes in flight, closes the stream and returns.
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

// storePod gives a pod the next version and stores it. The caller holds the lock of the Agent, as for all functions below.
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

// dropRemoved removes the pods that were gone before their creates returned. The outcome shows the pod, and an event then removes it.
func (a *Agent) dropRemoved() {
	for _, uid := range a.removed {
		if pod, known := a.pods[uid]; known {
			a.dropPod(pod)
		}
	}
	a.removed = nil
}

// change sends an event. Without a session it sends nothing, because the next session begins with lists.
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

// active counts the active pods of a ReplicaSet, and the pods that are being created.
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
