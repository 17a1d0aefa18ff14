// Puppet is a controller that executes the commands of a test. Each line on standard input is a command; each printed line is a response or an event.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/decree-dev/decree/clients/go/agent"
	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
)

type puppet struct {
	mu       sync.Mutex
	how      map[string][]string // the behavior of the next creates and deletes
	released chan struct{}
	agent    *agent.Agent
	since    agent.Mark
}

func (p *puppet) Create(_ context.Context, _ *v1.ReplicaSet, name string) (*v1.Pod, error) {
	how, released := p.next("create")
	say("create", name)
	switch how[0] {
	case "pod":
		return decoded(how[1], &v1.Pod{}), nil
	case "nothing":
		return nil, nil
	case "wrong":
		return &v1.Pod{Uid: name, NodeName: "\xff"}, nil
	}
	ready := &v1.ReadyCondition{Ready: true}
	return &v1.Pod{Uid: name, NodeName: "made", Phase: v1.PodPhase_POD_PHASE_RUNNING, Ready: ready}, act(how[0], released)
}

func (p *puppet) Delete(_ context.Context, pod *v1.Pod, _ *v1.Reason) (*v1.Pod, error) {
	how, released := p.next("delete")
	say("delete", pod.Name)
	return nil, act(how[0], released)
}

// next returns the behavior of a call. After a test sees a call, it can change the behavior of the next one.
func (p *puppet) next(call string) ([]string, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.how[call], p.released
}

// act does something other than success.
func act(how string, released <-chan struct{}) error {
	switch how {
	case "throw":
		panic("boom")
	case "exit":
		runtime.Goexit()
	case "hang":
		<-released
	case "throttled":
		return &agent.Failure{Class: v1.FailureClass_FAILURE_CLASS_THROTTLED, Message: "slow down", RetryAfter: 1500 * time.Millisecond}
	}
	return nil
}

func (p *puppet) obey(word string, rest []string) error {
	switch word {
	case "create", "delete":
		p.mu.Lock()
		defer p.mu.Unlock()
		p.how[word] = rest
	case "release":
		p.mu.Lock()
		defer p.mu.Unlock()
		close(p.released)
		p.released = make(chan struct{})
	case "apply-replica-set":
		return p.agent.ApplyReplicaSet(decoded(rest[0], &v1.ReplicaSet{}))
	case "apply-pod":
		return p.agent.ApplyPod(decoded(rest[0], &v1.Pod{}))
	case "remove-pod":
		p.agent.RemovePod(rest[0])
	case "mark":
		p.since = p.agent.Mark()
	case "sync-pods":
		var pods []*v1.Pod
		for _, text := range rest {
			pods = append(pods, decoded(text, &v1.Pod{}))
		}
		return p.agent.SyncPods(pods, p.since)
	case "sync-replica-sets":
		var sets []*v1.ReplicaSet
		for _, text := range rest {
			sets = append(sets, decoded(text, &v1.ReplicaSet{}))
		}
		return p.agent.SyncReplicaSets(sets, p.since)
	case "pods":
		names := []string{"pods"}
		for _, pod := range p.agent.Pods() {
			names = append(names, pod.Name+"@"+pod.NodeName)
		}
		slices.Sort(names[1:])
		say(names...)
	}
	return nil
}

func decoded[M proto.Message](text string, message M) M {
	bytes, err := hex.DecodeString(text)
	if err != nil || proto.Unmarshal(bytes, message) != nil {
		panic("not a message: " + text)
	}
	return message
}

func say(words ...string) {
	line, _, _ := strings.Cut(strings.Join(words, " "), "\n")
	os.Stdout.WriteString(line + "\n")
}

// logged prints each warning as a line: what was called, of which object, and its error.
type logged struct{ slog.Handler }

func (logged) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (logged) Handle(_ context.Context, record slog.Record) error {
	attributes := map[string]string{}
	record.Attrs(func(one slog.Attr) bool { attributes[one.Key] = one.Value.String(); return true })
	call, rest, _ := strings.Cut(record.Message, " ")
	say("log", call, "of", attributes["object"], rest+":", attributes["error"])
	return nil
}

// The arguments are the server's address, the timeout of a call in milliseconds, creates per second (0 for no limit), the burst, the mode, and
// the time in milliseconds by which lists can be behind.
func main() {
	numbers := make([]float64, 5)
	for at := range numbers {
		numbers[at], _ = strconv.ParseFloat(os.Args[2+at], 64)
	}
	if numbers[1] == 0 {
		numbers[1] = -1
	}
	p := &puppet{how: map[string][]string{"create": {"make"}, "delete": {"remove"}}, released: make(chan struct{})}
	conn, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	p.agent = agent.New(agent.Config{
		Conn: conn, ClusterUID: "puppet", OperationTimeout: time.Duration(numbers[0]) * time.Millisecond,
		CreatesPerSecond: numbers[1], CreateBurst: int(numbers[2]), Mode: v1.Mode(numbers[3]),
		Settle: time.Duration(numbers[4]) * time.Millisecond, Logger: slog.New(logged{}),
	}, p)
	ctx, stop := context.WithCancel(context.Background())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch words[0] {
		case "run":
			p.agent.Synced()
			go func() { _ = p.agent.Run(ctx); say("stopped") }()
		case "stop":
			stop()
		}
		if err := p.obey(words[0], words[1:]); err != nil {
			say("refused", err.Error())
		} else {
			say("ok", words[0])
		}
	}
}
