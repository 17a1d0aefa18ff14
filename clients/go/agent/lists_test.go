package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// made starts a session and lets the agent create three pods.
func made(t *testing.T, config Config) (*play, *scripted) {
	t.Helper()
	p := start(t, config, things{}, 3).run()
	p.agent.Synced()
	session := p.session()
	session.listed()
	session.create("set-bbbbb", "set-ccccc", "set-ddddd")
	for range 3 {
		if session.outcome().GetDone().GetPod() == nil {
			t.Fatal("not created")
		}
	}
	return p, session
}

// expectMarker applies a pod, whose event must be the next one: nothing was sent before it.
func expectMarker(t *testing.T, p *play, session *scripted) {
	t.Helper()
	must(t, p.agent.ApplyPod(&v1.Pod{Namespace: "local", Name: "marker", Uid: "marker"}))
	if event := session.event(); event.GetPodApplied().GetUid() != "marker" {
		t.Fatalf("an event that nobody expects: %v", event)
	}
}

func TestListThatLagsRemovesNothingThatWasCreated(t *testing.T) {
	p, session := made(t, Config{})
	for range 20 {
		must(t, p.agent.SyncPods(nil, p.agent.Mark()))
	}
	expectMarker(t, p, session)
	// The list has caught up: from now on it counts.
	all := []*v1.Pod{samplePod("set-bbbbb"), samplePod("set-ccccc"), samplePod("set-ddddd")}
	must(t, p.agent.SyncPods(all, p.agent.Mark()))
	must(t, p.agent.SyncPods(all[:2], p.agent.Mark()))
	if pods := p.agent.Pods(); len(pods) != 2 {
		t.Fatal(pods)
	}
}

func TestPodThatNoListShowsEndsAfterTheTimeToSettleOrAtOnceIfRemoved(t *testing.T) {
	p, _ := made(t, Config{Settle: time.Hour})
	p.agent.RemovePod("set-bbbbb")
	if pods := p.agent.Pods(); len(pods) != 2 {
		t.Fatal(pods)
	}
	p.agent.locked(func() { p.agent.now = func() time.Time { return time.Now().Add(time.Hour) } })
	must(t, p.agent.SyncPods(nil, p.agent.Mark()))
	if pods := p.agent.Pods(); len(pods) != 0 {
		t.Fatal(pods)
	}
}

func TestListThatLagsBringsNothingBack(t *testing.T) {
	p, session := made(t, Config{})
	must(t, p.agent.ApplyReplicaSet(sample(2)))
	session.delete("set-bbbbb")
	if !session.outcome().GetDone().GetGone() {
		t.Fatal("not gone")
	}
	p.agent.RemovePod("set-ccccc")
	all := []*v1.Pod{samplePod("set-bbbbb"), samplePod("set-ccccc"), samplePod("set-ddddd")}
	must(t, p.agent.SyncPods(all, p.agent.Mark()))
	if pods := p.agent.Pods(); len(pods) != 1 {
		t.Fatal(pods)
	}
	p.agent.locked(func() { p.agent.now = func() time.Time { return time.Now().Add(time.Hour) } })
	must(t, p.agent.SyncPods(all, p.agent.Mark()))
	if pods := p.agent.Pods(); len(pods) != 3 {
		t.Fatal(pods)
	}
}

func TestListThatLagsBringsNothingBackAfterManyRemovals(t *testing.T) {
	a := New(Config{}, things{})
	now := time.Now()
	a.now = func() time.Time { return now }
	for number := range goneMax + 100 {
		a.RemovePod(fmt.Sprint(number))
	}
	lagging := []*v1.Pod{samplePod("0"), samplePod("99")}
	must(t, a.SyncPods(lagging, a.Mark()))
	must(t, a.SyncPods(lagging, 0))
	if pods := a.Pods(); len(pods) != 0 {
		t.Fatal(pods)
	}
	// Lists have caught up with all of them.
	now = now.Add(time.Hour)
	a.RemovePod("last")
	if len(a.gonePods.at) != goneMax || len(a.gonePods.order) != goneMax {
		t.Fatal(len(a.gonePods.at), len(a.gonePods.order))
	}
	mustFail(t, a.SyncPods(nil, 100), "the mark is too old")
	must(t, a.SyncPods(nil, 101))
}

func TestPodThatLeavesTwiceIsForgottenByItsLastRemoval(t *testing.T) {
	a := New(Config{Settle: -1}, things{})
	must(t, a.ApplyPod(samplePod("twice")))
	a.RemovePod("twice")
	must(t, a.ApplyPod(samplePod("twice")))
	for number := range goneMax - 1 {
		a.RemovePod(fmt.Sprint(number))
	}
	before := a.Mark()
	a.RemovePod("twice")
	must(t, a.SyncPods([]*v1.Pod{samplePod("twice")}, before))
	if pods := a.Pods(); len(pods) != 0 {
		t.Fatal(pods)
	}
}

func TestListWithManyChangesKeepsTheSession(t *testing.T) {
	const count = framesMax + 1
	p := start(t, Config{}, things{}, 0).run()
	p.agent.Synced()
	session := p.session()
	session.listed()
	pods := make([]*v1.Pod, count)
	for at := range pods {
		pods[at] = samplePod(fmt.Sprint("set-", at))
	}
	must(t, p.agent.SyncPods(pods, p.agent.Mark()))
	frames := 0
	for come := 0; come < count; frames++ {
		events := session.next().GetEvents()
		if size := proto.Size(events); size > frameBytes {
			t.Fatal(size)
		}
		for _, event := range events.GetEvents() {
			come++
			if want := fmt.Sprint(come + 3); event.GetPodApplied().GetResourceVersion() != want {
				t.Fatal(event, want)
			}
		}
	}
	if frames > 1000 {
		t.Fatal(frames)
	}
	expectMarker(t, p, session)
}

func TestServerThatReadsNoEventsIsGivenUp(t *testing.T) {
	a, _ := many(0)
	ended := 0
	a.session.end = func(error) { ended++ }
	huge := samplePod("huge")
	huge.Labels["app"] = strings.Repeat("x", frameBytes)
	for range eventsBytesMax/frameBytes - 1 {
		a.locked(func() { a.change(&v1.Event{Event: &v1.Event_PodApplied{PodApplied: huge}}) })
	}
	if ended > 0 || len(a.session.frames) != eventsBytesMax/frameBytes-1 {
		t.Fatal(ended, len(a.session.frames))
	}
	a.locked(func() { a.change(&v1.Event{Event: &v1.Event_PodApplied{PodApplied: huge}}) })
	if ended != 1 {
		t.Fatal(ended)
	}
}

func TestListsGoOutOnlyAfterTheFirstListOfTheController(t *testing.T) {
	p := start(t, Config{}, things{}, 5).run()
	session := p.session()
	// The first list fails, and the next one has a pod that its ReplicaSet would not select: the view is not complete.
	bad := samplePod("set-bad")
	bad.Labels = map[string]string{"app": "y"}
	mustFail(t, p.agent.SyncPods([]*v1.Pod{bad}, p.agent.Mark()), "local/set-bad", `app must be "x"`)
	must(t, p.agent.ApplyPod(samplePod("set-1")))
	all := []*v1.Pod{samplePod("set-1"), samplePod("set-2"), samplePod("set-3"), samplePod("set-4"), samplePod("set-5")}
	must(t, p.agent.SyncPods(all, p.agent.Mark()))
	if count := session.listed(); count != 5 {
		t.Fatal("the first list has not all pods:", count)
	}
	expectMarker(t, p, session)
}

func TestWhatAListForgetsIsFilledInAndWhatNoReplicaSetSelectsIsRefused(t *testing.T) {
	p, session := made(t, Config{})
	bare := func(labels map[string]string) (pods []*v1.Pod) {
		for _, name := range []string{"set-bbbbb", "set-ccccc", "set-ddddd"} {
			pods = append(pods, &v1.Pod{Namespace: "local", Name: name, Uid: name, Labels: labels})
		}
		return pods
	}
	must(t, p.agent.SyncPods(bare(nil), p.agent.Mark()))
	wrong := bare(map[string]string{"host": "a"})
	mustFail(t, p.agent.SyncPods(wrong, p.agent.Mark()), "pod local/set-ccccc", `app must be "x"`)
	mustFail(t, p.agent.ApplyPod(wrong[0]), "pod local/set-bbbbb", `app must be "x"`)
	expectMarker(t, p, session)
	ready := bare(nil)[0]
	ready.Phase = v1.PodPhase_POD_PHASE_RUNNING
	must(t, p.agent.ApplyPod(ready))
	applied := session.event().GetPodApplied()
	if applied.Labels["app"] != "x" || applied.Controller.GetUid() != "set-uid" || applied.Phase != ready.Phase {
		t.Fatal(applied)
	}
}

func TestListMayShowAPodBeforeItsCreateReturnsAndForgetItsLabels(t *testing.T) {
	var p *play
	create := func(_ context.Context, name string) (*v1.Pod, error) {
		listed := &v1.Pod{Namespace: "local", Name: name, Uid: name, Labels: map[string]string{"host": "a"}, NodeName: "listed"}
		return &v1.Pod{Uid: name}, p.agent.SyncPods([]*v1.Pod{listed}, p.agent.Mark())
	}
	p = start(t, Config{}, things{create: create}, 1)
	p.agent.Synced()
	session := p.run().session()
	session.create("set-bbbbb")
	pod := session.outcome().GetDone().GetPod()
	if pod.GetLabels()["app"] != "x" || pod.Controller.GetUid() != "set-uid" || pod.NodeName != "listed" {
		t.Fatal(pod)
	}
}

// bare is a pod of a list that forgets labels and controllers.
func bare(name string) *v1.Pod { return &v1.Pod{Namespace: "local", Name: name, Uid: name} }

func TestListThatForgetsWhosePodsTheyAreDoesNotCompleteTheViewAfterARestart(t *testing.T) {
	a := New(Config{}, things{})
	must(t, a.ApplyReplicaSet(sample(3)))
	listed := []*v1.Pod{bare("set-bbbbb"), bare("set-ccccc"), bare("other"), bare("set-a"), bare("net-bbbbb")}
	mustFail(t, a.SyncPods(listed, a.Mark()), "pod local/set-bbbbb", "pod local/set-ccccc", "ReplicaSet set", `app must be "x"`)
	mustFail(t, a.ApplyPod(listed[0]), "pod local/set-bbbbb", `app must be "x"`)
	if len(a.Pods()) != 3 || a.synced {
		t.Fatal(a.Pods(), a.synced)
	}
	// A pod that has ended, one of another namespace, and one that was released do not come into question.
	ended, elsewhere := bare("set-ddddd"), bare("set-fffff")
	ended.Phase, elsewhere.Namespace = v1.PodPhase_POD_PHASE_SUCCEEDED, "elsewhere"
	must(t, a.SyncPods([]*v1.Pod{ended, elsewhere}, a.Mark()))
	// A known state stays.
	must(t, a.ApplyPod(samplePod("set-bbbbb")))
	mustFail(t, a.ApplyPod(bare("set-bbbbb")), "pod local/set-bbbbb")
	a.RemoveReplicaSet("set-uid")
	must(t, a.ApplyPod(bare("set-ccccc")))
	mustFail(t, a.ApplyReplicaSet(sample(3)), "pod local/set-ccccc", `app must be "x"`)
	a.RemovePod("set-ccccc")
	must(t, a.ApplyReplicaSet(sample(3)))
}

func TestBarePodOfARunningCreateIsFilledIn(t *testing.T) {
	var p *play
	create := func(_ context.Context, name string) (*v1.Pod, error) {
		_ = p.agent.SyncPods([]*v1.Pod{bare(name)}, p.agent.Mark())
		return nil, p.agent.SyncPods([]*v1.Pod{bare(name)}, p.agent.Mark())
	}
	p = start(t, Config{}, things{create: create}, 1)
	p.agent.Synced()
	session := p.run().session()
	session.listed()
	session.create("set-bbbbb")
	applied := session.event().GetPodApplied()
	if applied.GetLabels()["app"] != "x" || applied.Controller.GetUid() != "set-uid" {
		t.Fatal(applied)
	}
	if outcome := session.outcome(); outcome.GetFailed() == nil {
		t.Fatal(outcome)
	}
	must(t, p.agent.SyncPods([]*v1.Pod{bare("set-bbbbb")}, p.agent.Mark()))
	expectMarker(t, p, session)
}

func TestUIDDecidesWhosePodItIs(t *testing.T) {
	p := start(t, Config{}, things{}, 1)
	pod := samplePod("set-old")
	pod.Controller = &v1.OwnerReference{Uid: "set-uid"}
	must(t, p.agent.ApplyPod(pod))
	if owner := p.agent.Pods()[0].Controller; owner.Kind != ownerKind || owner.Name != "set" {
		t.Fatal(owner)
	}
	pod.Controller.Kind = "MachineSet"
	mustFail(t, p.agent.ApplyPod(pod), "pod local/set-old", "controller.kind", "MachineSet")
}

func TestListThatHasOnlyTheUIDOfAControllerIsNewsOnlyIfSomethingElseChanges(t *testing.T) {
	p := start(t, Config{}, things{}, 1).run()
	pod := samplePod("set-old")
	pod.Controller = &v1.OwnerReference{Uid: "set-uid"}
	list := func() {
		t.Helper()
		must(t, p.agent.SyncPods([]*v1.Pod{pod}, p.agent.Mark()))
		must(t, p.agent.SyncPods([]*v1.Pod{pod}, p.agent.Mark()))
	}
	list()
	session := p.session()
	session.listed()
	list()
	pod.NodeName = "other"
	list()
	applied := session.event().GetPodApplied()
	if applied.GetNodeName() != "other" || applied.Controller.GetKind() != ownerKind || applied.Controller.GetName() != "set" {
		t.Fatal(applied)
	}
	// The reference of a pod that has ended stays as it is listed.
	pod.Phase = v1.PodPhase_POD_PHASE_SUCCEEDED
	list()
	if applied := session.event().GetPodApplied(); applied.GetPhase() != pod.Phase {
		t.Fatal(applied)
	}
	expectMarker(t, p, session)
	pod.Phase, pod.Controller.Name = v1.PodPhase_POD_PHASE_RUNNING, "other"
	mustFail(t, p.agent.SyncPods([]*v1.Pod{pod}, p.agent.Mark()), "pod local/set-old", "controller.name")
}

func TestObjectsThatCannotBeSentAreErrorsByName(t *testing.T) {
	p := start(t, Config{}, things{}, 1).run()
	p.agent.Synced()
	session := p.session()
	session.listed()
	pod, set := func(pod *v1.Pod, part string) {
		t.Helper()
		mustFail(t, p.agent.ApplyPod(pod), part)
		mustFail(t, p.agent.SyncPods([]*v1.Pod{pod}, p.agent.Mark()), part)
	}, func(replicaSet *v1.ReplicaSet, part string) {
		t.Helper()
		mustFail(t, p.agent.ApplyReplicaSet(replicaSet), part)
		// The list has the known ReplicaSet, too, so that nothing changes.
		mustFail(t, p.agent.SyncReplicaSets([]*v1.ReplicaSet{sample(1), replicaSet}, p.agent.Mark()), part)
	}
	pod(nil, "pod: it is nil")
	pod(&v1.Pod{Namespace: "local", Name: "a"}, "pod local/a: uid: it is empty")
	pod(&v1.Pod{Namespace: "local", Name: "a", Uid: "u", NodeName: "\xff"}, `pod "local"/"a": node_name: it is not UTF-8`)
	pod(&v1.Pod{Namespace: "local", Name: "a", Uid: "u", Labels: map[string]string{"\xff": "x"}}, `labels["\xff"]: it is not UTF-8`)
	set(nil, "ReplicaSet: it is nil")
	one := sample(1)
	one.Uid = ""
	set(one, `ReplicaSet "local"/"set": uid: it is empty`)
	one.Uid, one.TemplateLabels = "other-uid", map[string]string{"app": "x", "zone": "\xff"}
	set(one, `ReplicaSet "local"/"set": template_labels["zone"]: it is not UTF-8`)
	one.TemplateLabels, one.Selector.MatchExpressions = one.Selector.MatchLabels, []*v1.LabelSelectorRequirement{nil}
	set(one, "ReplicaSet local/set: selector.match_expressions[0].operator: it is \"\"")
	one.Selector.MatchExpressions, one.Status = nil, &v1.ReplicaSetStatus{Conditions: []*v1.ReplicaSetCondition{nil}}
	must(t, p.agent.ApplyReplicaSet(one))
	if event := session.event(); event.GetReplicaSetApplied().GetUid() != "other-uid" {
		t.Fatal(event)
	}
	expectMarker(t, p, session)
	mustFail(t, New(Config{Conn: p.agent.config.Conn, ClusterUID: "a\xff"}, things{}).Run(t.Context()), "configuration", "cluster_uid")
}

func TestReplicaSetThatComesAfterItsPodsChecksThem(t *testing.T) {
	a := New(Config{}, things{})
	bare := samplePod("set-bare")
	bare.Controller = &v1.OwnerReference{Uid: "set-uid"}
	must(t, a.ApplyPod(bare))
	bad := samplePod("set-bad")
	bad.Labels = nil
	must(t, a.ApplyPod(bad))
	mustFail(t, a.ApplyReplicaSet(sample(2)), "pod local/set-bad", `app must be "x"`)
	mustFail(t, a.SyncReplicaSets([]*v1.ReplicaSet{sample(2)}, a.Mark()), "pod local/set-bad", `app must be "x"`)
	a.RemovePod("set-bad")
	must(t, a.ApplyReplicaSet(sample(2)))
	if owner := a.Pods()[0].Controller; owner.Kind != ownerKind || owner.Name != "set" {
		t.Fatal(owner)
	}
}

// A field that the comparison of a listed pod forgets would never reach the server.
func TestChangeOfEachFieldIsNews(t *testing.T) {
	a := New(Config{}, things{})
	full := func() *v1.Pod { return filled((&v1.Pod{}).ProtoReflect()).Interface().(*v1.Pod) }
	known := full()
	if a.isNews(full(), known) {
		t.Fatal("an equal pod is news")
	}
	check := func(name protoreflect.FullName, listed *v1.Pod) {
		if isVersion := name == "decree.v1.Pod.resource_version"; a.isNews(listed, known) == isVersion {
			t.Error(name)
		}
	}
	fields := known.ProtoReflect().Descriptor().Fields()
	for at := range fields.Len() {
		field := fields.Get(at)
		if field.Name() == "uid" || field.Name() == "creation_timestamp" {
			continue // The uid identifies the pod, and an absent time of creation is filled in.
		}
		listed := full()
		listed.ProtoReflect().Clear(field)
		check(field.FullName(), listed)
		if field.Message() == nil || field.IsMap() {
			continue
		}
		for inner := range field.Message().Fields().Len() {
			listed := full()
			part := field.Message().Fields().Get(inner)
			listed.ProtoReflect().Mutable(field).Message().Clear(part)
			check(part.FullName(), listed)
		}
	}
}

// filled sets each field of a message to a value that is not its default.
func filled(message protoreflect.Message) protoreflect.Message {
	fields := message.Descriptor().Fields()
	for at := range fields.Len() {
		field := fields.Get(at)
		switch {
		case field.IsMap():
			message.Mutable(field).Map().Set(protoreflect.ValueOfString("key").MapKey(), protoreflect.ValueOfString("value"))
		case field.Message() != nil:
			filled(message.Mutable(field).Message())
		case field.Kind() == protoreflect.StringKind:
			message.Set(field, protoreflect.ValueOfString("text"))
		case field.Kind() == protoreflect.BoolKind:
			message.Set(field, protoreflect.ValueOfBool(true))
		case field.Kind() == protoreflect.EnumKind:
			message.Set(field, protoreflect.ValueOfEnum(2))
		case field.Kind() == protoreflect.Int64Kind:
			message.Set(field, protoreflect.ValueOfInt64(2))
		default:
			message.Set(field, protoreflect.ValueOfInt32(2))
		}
	}
	return message
}
