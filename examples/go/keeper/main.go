// Keeper keeps N local processes running. Decree decides which processes to start and which to stop:
//
//	keeper -server 127.0.0.1:50051 -replicas 3 -folder /tmp/kept sleep 1000
//
// Each line on standard input is a new number of replicas. When the input ends, Keeper stops all processes and exits.
// The processes outlive a keeper that is stopped with SIGTERM or killed. Each process has a file in the folder that is locked while the process runs;
// the next keeper finds the process by this file.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/decree-dev/decree/clients/go/agent"
	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

var labels = map[string]string{"kept-by": "keeper"}

// keeper is the cluster: each process represents a pod.
type keeper struct {
	folder  string
	command []string
	agent   *agent.Agent
	isOver  bool
	ended   sync.Map // name → channel that is closed when the process has ended
}

func (k *keeper) Create(_ context.Context, _ *v1.ReplicaSet, name string) (*v1.Pod, error) {
	file, err := os.OpenFile(filepath.Join(k.folder, name), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, &agent.Failure{Class: v1.FailureClass_FAILURE_CLASS_UNAVAILABLE, Message: err.Error()}
	}
	defer file.Close()
	// The process inherits the file and its lock, so a failed attempt to lock the file shows that the process runs.
	failOn(syscall.Flock(int(file.Fd()), syscall.LOCK_EX))
	command := exec.Command("sh", append([]string{"-c", `echo $$ > "$0"; exec > /dev/null "$@"`, filepath.Join(k.folder, name)}, k.command...)...)
	command.ExtraFiles, command.SysProcAttr = []*os.File{file}, &syscall.SysProcAttr{Setpgid: true}
	output, err := command.StdoutPipe()
	failOn(err)
	failOn(command.Start())
	_, err = io.Copy(io.Discard, output) // Its end shows that the file has the ID.
	failOn(err)
	go command.Wait()
	fmt.Println("started", name, command.Process.Pid)
	return k.watch(name), nil
}

func (k *keeper) Delete(_ context.Context, pod *v1.Pod, reason *v1.Reason) (*v1.Pod, error) {
	ended, known := k.ended.Load(pod.Name)
	text, err := os.ReadFile(filepath.Join(k.folder, pod.Name))
	var id int
	if _, none := fmt.Sscan(string(text), &id); !known || err != nil || none != nil {
		return nil, &agent.Failure{Class: v1.FailureClass_FAILURE_CLASS_NOT_FOUND, Message: "no such process"}
	}
	fmt.Println("stopped", pod.Name, "because", reason.GetDetail())
	_ = syscall.Kill(id, syscall.SIGTERM)
	kill := time.AfterFunc(5*time.Second, func() { _ = syscall.Kill(id, syscall.SIGKILL) })
	go func() { <-ended.(chan struct{}); kill.Stop() }()
	return pod, nil // The pod is being deleted: nothing waits for its end, which `watch` tells.
}

// stop stops all processes and waits for their ends.
func (k *keeper) stop() {
	pods := k.agent.Pods()
	for _, pod := range pods {
		_, _ = k.Delete(context.Background(), pod, &v1.Reason{Detail: "the input has ended"})
	}
	for _, pod := range pods {
		ended, _ := k.ended.Load(pod.Name)
		<-ended.(chan struct{})
	}
}

// watch returns the pod of a running process, and tells the agent when the process has ended.
func (k *keeper) watch(name string) *v1.Pod {
	ended := make(chan struct{})
	k.ended.Store(name, ended)
	go func() {
		file, err := os.Open(filepath.Join(k.folder, name))
		failOn(err)
		failOn(syscall.Flock(int(file.Fd()), syscall.LOCK_EX)) // Waits for the end of the process.
		file.Close()
		_ = os.Remove(filepath.Join(k.folder, name))
		fmt.Println("ended", name)
		k.agent.RemovePod(name)
		close(ended)
	}()
	return &v1.Pod{
		Namespace: "local", Name: name, Uid: name, Labels: labels,
		Phase: v1.PodPhase_POD_PHASE_RUNNING, NodeName: "localhost", Ready: &v1.ReadyCondition{Ready: true},
		Controller: &v1.OwnerReference{Kind: "ReplicaSet", Name: "processes", Uid: k.folder},
	}
}

// find takes over the processes that an earlier keeper left. From then on the agent knows all of them.
func (k *keeper) find() {
	files, _ := filepath.Glob(filepath.Join(k.folder, "processes-*"))
	for _, path := range files {
		file, err := os.Open(path)
		failOn(err)
		if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.Remove(path)
		} else {
			fmt.Println("found", filepath.Base(path))
			failOn(k.agent.ApplyPod(k.watch(filepath.Base(path))))
		}
		file.Close()
	}
	k.agent.Synced()
}

// scale reads numbers of replicas. When the input ends, it scales to 0.
func (k *keeper) scale(stop func()) {
	defer func() { k.isOver = true; stop() }()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		replicas, err := strconv.ParseInt(lines.Text(), 10, 32)
		failOn(err)
		k.agent.Scale(k.folder, int32(replicas))
	}
}

func failOn(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	server := flag.String("server", "127.0.0.1:50051", "the decision server")
	replicas := flag.Int("replicas", 3, "how many processes to keep")
	folder := flag.String("folder", "/tmp/decree-keeper", "where the processes have their files; its path names the cluster")
	flag.Parse()
	failOn(os.MkdirAll(*folder, 0o700))
	lock, err := os.Create(filepath.Join(*folder, ".lock"))
	failOn(err)
	failOn(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)) // One keeper at a time.
	conn, err := grpc.NewClient(*server, grpc.WithTransportCredentials(insecure.NewCredentials()))
	failOn(err)
	k := &keeper{folder: *folder, command: flag.Args()}
	k.agent = agent.New(agent.Config{Conn: conn, ClusterUID: "folder:" + k.folder}, k)
	wanted := int32(*replicas)
	failOn(k.agent.ApplyReplicaSet(&v1.ReplicaSet{
		Namespace: "local", Name: "processes", Uid: k.folder, Generation: 1, Replicas: &wanted,
		Selector: &v1.LabelSelector{MatchLabels: labels}, TemplateLabels: labels,
	}))
	k.find()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	go k.scale(stop)
	failOn(k.agent.Run(ctx))
	if k.isOver {
		k.stop()
	}
}
