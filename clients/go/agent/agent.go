// Package agent implements the agent's side of a session with a Decree server. A controller only reports its objects, and creates and removes pods.
//
// An [Agent] holds the view: the current ReplicaSets and pods. The controller reports changes ([Agent.ApplyPod], [Agent.RemovePod],
// [Agent.ApplyReplicaSet], [Agent.RemoveReplicaSet]) or complete lists ([Agent.SyncPods], [Agent.SyncReplicaSets]).
// The server decides nothing before the view is complete: after the first [Agent.SyncPods], or [Agent.Synced].
// The controller also provides a [Cluster], which the Agent calls for the operations of the server. The Agent gives every
// state a version, lists the view to the server, streams changes in order, sends exactly one outcome for each operation, and reconnects.
// docs/protocol.md specifies the rules.
//
// The Agent is for a process that is itself the cluster. Only one process may act: run a single instance, or elect one and count the
// elections in [Config.Epoch].
package agent

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// Cluster creates and removes the things that pods represent. The Agent calls its methods concurrently, each with a deadline.
// The outcome of a call that misses its deadline is TIMEOUT. Until that call returns, its name is not requested again,
// its pod counts as being created, and its effect enters the view when it returns. Objects that a call receives are copies, for it to keep or change.
//
// A [*Failure] says that the call had no effect, and why. After any other error, or a panic, the effect is unknown: the server retries, and
// repeats a create under the same name.
type Cluster interface {
	// Create creates the pod with this name and returns it. The Agent fills in empty fields: namespace, name, controller, version, the labels of
	// the template and the creation time. Other fields must be correct, and the UID is required; otherwise the create fails with INVALID.
	Create(ctx context.Context, owner *v1.ReplicaSet, name string) (*v1.Pod, error)
	// Delete removes exactly this pod, identified by its UID. Without a pod and an error, the pod is gone. A returned pod is being deleted: it
	// stays in the view, does not count as a replica, and nothing waits for it. When it is gone, call [Agent.RemovePod], or list without it.
	// Return the pod if its end can take longer than a moment.
	Delete(ctx context.Context, pod *v1.Pod, reason *v1.Reason) (*v1.Pod, error)
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

// Config identifies and configures the agent. Only Conn and ClusterUID are required.
type Config struct {
	// Conn is the connection to the server.
	Conn grpc.ClientConnInterface
	// ClusterUID names the cluster, and must be unique on the server: 1 to 128 letters, digits and . _ : / @ -, with a letter or digit at both ends.
	ClusterUID string
	// ClusterName is the display name.
	ClusterName string
	// Instance names this process. If empty, the Agent makes a name from the time.
	Instance string
	// Shard names the part of the cluster whose objects the Agent reports; empty for the whole cluster.
	Shard string
	// Epoch is the number of elections before this process became the leader. The server refuses an epoch below that of a live session. 0 without elections.
	Epoch int64
	// Platform is what runs the pods; unspecified means OTHER. For KUBERNETES, `decree explain` names commands of kubectl.
	Platform v1.Platform
	// Mode is the mode of the agent; unspecified means ENFORCE. An Agent cannot ADVISE: it writes no deletion costs.
	Mode v1.Mode
	// Options tune decisions; nil means the values of upstream.
	Options *v1.Options
	// OperationTimeout bounds each call of the [Cluster]; 0 means 20 seconds.
	OperationTimeout time.Duration
	// CallsMax limits the concurrent calls of the [Cluster]; 0 means 100, and a negative number no limit. Calls that have missed their deadline do
	// not count. A call that would wait for longer than OperationTimeout does not start.
	CallsMax int
	// CreatesPerSecond and CreateBurst limit creates: CreateBurst at once, and then CreatesPerSecond; 0 means 20 and 100. A negative CreatesPerSecond
	// means no limit. A create that would wait for longer than OperationTimeout does not start.
	CreatesPerSecond float64
	CreateBurst      int
	// Settle is the time by which the lists of the controller can be behind; 0 means a minute, and a negative number that lists are never behind. For
	// this time, a list without a new pod does not remove it, unless an earlier list had it, and a list with a pod that was deleted or removed does not bring it back.
	Settle time.Duration
	// Logger receives ended sessions, objects that the server rejects, and calls of the [Cluster] that fail with anything but a [Failure]. The end of
	// sessions is one warning for each cause. Nil means [slog.Default]. Its handler must not call the Agent.
	Logger *slog.Logger
	// OnSynced, if not nil, is called in each session when the server has welcomed the Agent, and the lists have been sent: from now on it decides.
	OnSynced func()
}

// Agent holds the view and keeps the session. Its methods are safe for concurrent use.
type Agent struct {
	config  Config
	cluster Cluster
	log     *slog.Logger
	slots   chan struct{}    // a place for each concurrent call; nil without a limit
	now     func() time.Time // the time, except in tests

	mu              sync.Mutex
	version         uint64
	view            view
	origins         map[string]*origin        // the pods of the view that this Agent made its own, by UID
	replicaSets     map[string]*v1.ReplicaSet // by UID; never changed in place, because frames refer to them
	bases           map[podName][]string      // UIDs of the ReplicaSets whose pods have names that begin so, before their five letters
	applied         map[string]Mark           // when each ReplicaSet was applied last, by UID
	gonePods        removals
	goneReplicaSets removals
	removed         []string // UIDs that were removed before their create returned
	pace            *pace
	synced          bool     // whether the view is complete
	session         *session // nil without a session
	running         bool
	told            map[string]bool // the causes of ended sessions that were logged
	greeted         bool            // whether the log says that there is a session
}

// New returns an Agent with an empty view.
func New(config Config, cluster Cluster) *Agent {
	if config.Instance == "" {
		config.Instance = fmt.Sprintf("go-%x", time.Now().UnixNano())
	}
	if config.Platform == v1.Platform_PLATFORM_UNSPECIFIED {
		config.Platform = v1.Platform_PLATFORM_OTHER
	}
	if config.OperationTimeout == 0 {
		config.OperationTimeout = 20 * time.Second
	}
	if config.CallsMax == 0 {
		config.CallsMax = defaultCallsMax
	}
	if config.CreatesPerSecond == 0 {
		config.CreatesPerSecond = defaultCreatesPerSecond
	}
	if config.CreateBurst <= 0 {
		config.CreateBurst = defaultCreateBurst
	}
	if config.Settle == 0 {
		config.Settle = defaultSettle
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	a := &Agent{
		config: config, cluster: cluster, log: config.Logger, now: time.Now,
		view: newView(), origins: map[string]*origin{}, replicaSets: map[string]*v1.ReplicaSet{}, bases: map[podName][]string{},
		applied:  map[string]Mark{},
		gonePods: removals{at: map[string]removal{}}, goneReplicaSets: removals{at: map[string]removal{}},
		pace: newPace(config.CreatesPerSecond, config.CreateBurst), told: map[string]bool{},
	}
	if config.CallsMax > 0 {
		a.slots = make(chan struct{}, config.CallsMax)
	}
	return a
}
