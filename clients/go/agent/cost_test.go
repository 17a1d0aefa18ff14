package agent

import (
	"fmt"
	"testing"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// many returns an agent with many pods, and a batch that wants one more.
func many(count int) (*Agent, work) {
	a := New(Config{CreatesPerSecond: -1}, things{})
	_ = a.ApplyReplicaSet(sample(1 << 30))
	for number := range count {
		_ = a.ApplyPod(samplePod(fmt.Sprintf("set-%d", number)))
	}
	a.session = &session{agent: a, id: "id", listed: true, over: make(chan struct{}), wake: make(chan struct{}, 1), end: func(error) {}}
	return a, work{a.session, &v1.Batch{ReplicaSet: replicaSetRef(sample(0)), Guard: &v1.Guard{SessionId: "id"}}}
}

// names are different names that a server can choose.
func name(number int) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	text := []byte("set-bbbbb")
	for at := 4; at < len(text); at++ {
		text[at] = letters[number%len(letters)]
		number /= len(letters)
	}
	return string(text)
}

// An operation looks at its own pod and at counts, however many pods there are.
func TestOperationVisitsNoOtherPod(t *testing.T) {
	a, batch := many(1000)
	for number := range 1000 {
		finish := batch.create(t.Context(), name(number))
		a.locked(func() { batch.report(0, finish()) })
	}
	_ = a.ApplyReplicaSet(sample(0))
	for number := range 1000 {
		pod := &v1.ObjectRef{Namespace: "local", Name: name(number), Uid: name(number)}
		finish := batch.delete(t.Context(), &v1.Victim{Pod: pod})
		a.locked(func() { batch.report(0, finish()) })
	}
	if len(a.view.pods) != 1000 || len(a.view.named) != 1000 || a.view.active["set-uid"] != 1000 || a.view.visits != 0 {
		t.Fatal(len(a.view.pods), len(a.view.named), a.view.active, a.view.visits)
	}
}

// A first list can have all pods before their ReplicaSets.
func TestNewReplicaSetVisitsNoPodOfOthers(t *testing.T) {
	a, _ := many(1000)
	for number := range 100 {
		pod := samplePod(fmt.Sprintf("new-%d-bbbbb", number))
		pod.Controller.Name, pod.Controller.Uid = "", fmt.Sprintf("uid-%d", number)
		must(t, a.ApplyPod(pod))
	}
	for number := range 200 {
		one := sample(1)
		one.Name, one.Uid = fmt.Sprintf("new-%d", number), fmt.Sprintf("uid-%d", number)
		must(t, a.ApplyReplicaSet(one))
	}
	if a.view.visits != 100 {
		t.Fatal(a.view.visits)
	}
}

func BenchmarkCreate(b *testing.B) {
	for _, count := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("of=%d", count), func(b *testing.B) {
			a, batch := many(count)
			number := 0
			for b.Loop() {
				finish := batch.create(b.Context(), name(number))
				a.locked(func() { batch.report(0, finish()); a.session.frames = a.session.frames[:0] })
				number++
			}
		})
	}
}

func BenchmarkSyncPods(b *testing.B) {
	a, _ := many(100_000)
	pods := a.Pods()
	for b.Loop() {
		_ = a.SyncPods(pods, a.Mark())
	}
}
