"""Plays random sessions by the rules of the client for Python alone, without threads, a server or time: `rules.py FIRST LAST` has the seeds.

It begins with the cases of `cases.py`. After each step of a session the indexes of the view are as if they were counted, and at its end
- each operation has exactly one outcome, whatever its call returned or raised, and whenever,
- a batch of creates stopped after its first round with a failure,
- changes of pods came in the order of their versions, and
- the server, which has seen only the frames, knows the pods of the view.
"""

import collections
import logging
import random
import sys

from cases import OWNER, SET, play_cases
from decree_client.engine import Engine
from decree_client.failure import Failure
from decree_client.pace import Pace
from decree_client.session import Session
from decree_client.v1 import batch_pb2 as batches, decision_service_pb2 as service, object_pb2 as objects, session_pb2 as sessions


class Cluster:
    def create(self, owner, name):
        raise AssertionError("the play answers calls")

    delete = create


class Play:
    def __init__(self, seed):
        self.dice, self.now, self.calls, self.batch = random.Random(seed), 0.0, [], 0
        pick = self.dice.choice
        pace = Pace(pick([None, 1.0]), pick([1, 100]))
        self.engine = Engine(Cluster(), sessions.Hello(), operation_timeout=20.0, pace=pace, settle=pick([0.0, 60.0]), calls_max=pick([1, 3, 100]),
                             clock=lambda: self.now)
        self.engine.start_call, self.view = self.start_call, self.engine.view
        self.view.apply_replica_set(SET)
        self.engine.synced()
        self.open()

    def open(self):
        self.session, self.sequence, self.last = Session(self.engine), 0, 0
        self.asked, self.answered, self.known = collections.Counter(), collections.Counter(), {}
        # The first round of each batch of creates, and its outcomes by number.
        self.creates = {}
        self.session.open()
        self.say(welcome=sessions.Welcome(session_id="s"))

    def say(self, **frame):
        self.sequence += 1
        self.session.receive(service.ReconcileResponse(sequence=self.sequence, **frame))

    def start_call(self, operation):
        if self.dice.random() < 0.02:
            raise RuntimeError("no more threads")
        self.calls.append(operation)

    def name(self):
        return "set-" + "".join(self.dice.choices("bcdfg", k=5))

    def some_pod(self):
        pods = [*self.view.pods.values(), objects.Pod(namespace="local", name="none", uid="none")]
        pod = self.dice.choice(pods)
        return objects.ObjectRef(namespace=pod.namespace, name=pod.name, uid=pod.uid)

    # The steps.

    def ask(self):
        """The server sends a batch, which may be none for this agent."""
        pick, self.batch = self.dice.choice, self.batch + 1
        batch = batches.Batch(id=self.batch, replica_set=OWNER, guard=batches.Guard(session_id=pick(["s", "s", "s", "other"])))
        count = self.dice.randint(1, 6)
        match pick(["create", "create", "delete", "claim", "status"]):
            case "create":
                batch.create.names.extend(self.name() for _ in range(count))
                batch.create.slow_start_initial = pick([0, 1, 2, 9])
                self.creates[self.batch] = (max(1, batch.create.slow_start_initial), {})
            case "delete":
                batch.delete.victims.extend(batches.Victim(pod=self.some_pod()) for _ in range(count))
            case "claim":
                batch.claim.adopts.extend(self.some_pod() for _ in range(count))
                batch.claim.releases.append(self.some_pod())
                count += 1
            case "status":
                batch.write_status.status.replicas = count = 1
        self.asked.update((self.batch, at) for at in range(count))
        self.say(batches=batches.Batches(batches=[batch]))

    def answer(self):
        """A call returns or raises anything, also one that was answered with TIMEOUT."""
        if not self.calls:
            return
        call, pick = self.calls.pop(self.dice.randrange(len(self.calls))), self.dice.choice
        if self.dice.random() < 0.4:
            call.returned(None, pick([ValueError("x"), Failure(6, "f"), Failure("none", "f"), SystemExit(1)]))
        elif call.what == "create":
            made = objects.Pod(uid=pick([call.name, call.name, "same"]), node_name="here")
            call.returned(pick([made, made, made, None, 7, objects.Pod()]), None)
        else:
            call.returned(pick([None, getattr(call, "pod", None)]), None)

    def wait(self):
        self.now += self.dice.choice([0.1, 1.0, 25.0])
        self.session.last_received = self.now
        self.engine.advance()

    def scale(self):
        self.view.scale("u", self.dice.randint(0, 8))

    def apply(self):
        pick = self.dice.choice
        pod = objects.Pod(namespace="local", name=self.name(), uid=pick(["a", "b", self.name()]), labels=pick([{}, {"app": "x"}, {"app": "y"}]))
        if pod.uid in self.view.pods:
            pod.name = self.view.pods[pod.uid].name
        pod.controller.uid = pick(["u", ""])
        if pick([True, False, False, False]):
            pod.deletion_timestamp.FromSeconds(1)
        try:
            self.view.apply_pod(pod)
        except ValueError as error:
            assert str(error).startswith("pod local/"), error

    def remove(self):
        self.view.remove_pod(self.some_pod().uid)

    def sync(self):
        since = max(0, self.view.version - self.dice.choice([0, 0, 3]))
        self.view.sync_pods([pod for pod in self.view.pods.values() if self.dice.random() < 0.8], since)

    def reopen(self):
        """The stream ends, and the next session follows when the calls have ended."""
        self.read()
        self.session.closed(None)
        while self.session.works:
            self.wait()
        self.open()

    # What must hold.

    def read(self):
        """Reads the frames as the server does."""
        while frame := self.session.next_frame():
            for pod in frame.snapshot_objects.pods:
                self.known[pod.uid] = pod
            for event in frame.events.events:
                if event.HasField("pod_applied"):
                    self.see(event.pod_applied.uid, event.pod_applied.resource_version, event.pod_applied)
                elif event.deleted.kind == objects.KIND_POD:
                    self.see(event.deleted.object.uid, event.deleted.resource_version, None)
            for outcome in frame.outcomes.outcomes:
                self.answered[outcome.batch_id, outcome.operation] += 1
                if outcome.batch_id in self.creates:
                    self.creates[outcome.batch_id][1][outcome.operation] = outcome
                pod = outcome.done.pod
                if pod.uid and int(pod.resource_version) > int(getattr(self.known.get(pod.uid), "resource_version", 0)):
                    self.known[pod.uid] = pod
                if outcome.done.gone:
                    self.known.pop(outcome.done.uid, None)

    def see(self, uid, version, pod):
        assert int(version) > self.last, "changes come in order"
        self.last = int(version)
        self.known.pop(uid, None)
        if pod:
            self.known[uid] = pod

    def check(self):
        pods, view = self.view.pods, self.view
        active = collections.Counter(pod.controller.uid for pod in pods.values() if pod.controller.uid and view.is_active(pod))
        assert active == view.active, (active, view.active)
        assert all(uid in view.names[pod.namespace, pod.name] for uid, pod in pods.items())
        for index in (view.names, view.groups):
            assert sum(map(len, index.values())) == len(pods)
        assert all(uid in view.groups[pod.controller.uid or (pod.namespace, pod.name[:-5])] for uid, pod in pods.items())
        assert view.creating.keys() == {name for some in view.creating_of.values() for name in some}
        assert view.creating.keys() == {("local", call.name) for call in self.calls if call.what == "create"}
        assert sum(not call.is_late for call in self.calls) == self.engine.calls <= self.engine.calls_max
        assert view.deleting == {call.pod.uid for call in self.calls if call.what == "delete"}
        assert view.owned | view.leaving | view.settling.keys() <= pods.keys()
        assert all(pods[uid].HasField("deletion_timestamp") for uid in view.leaving)

    def check_rounds(self):
        slow = batches.NOT_STARTED_CAUSE_SLOW_START
        for size, outcomes in self.creates.values():
            begin, has_failed = 0, False
            while begin < len(outcomes):
                part = [outcomes[at] for at in range(begin, min(begin + size, len(outcomes)))]
                assert {one.not_started.cause == slow for one in part} == {has_failed}
                has_failed = has_failed or any(one.HasField("failed") for one in part)
                begin, size = begin + size, 2 * size

    def run(self):
        steps = [self.ask, self.ask, self.answer, self.answer, self.answer, self.wait, self.scale, self.apply, self.remove, self.sync, self.reopen]
        for step in self.dice.choices(steps, weights=[3] * 10 + [1], k=self.dice.randint(10, 150)):
            step()
            self.check()
        while self.session.works:
            self.wait()
        assert self.engine.calls == 0
        self.read()
        assert self.answered == self.asked, (self.answered, self.asked)
        assert self.known == self.view.pods
        self.check_rounds()


def main():
    logging.disable()
    play_cases()
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        try:
            Play(seed).run()
        except BaseException:
            print("seed", seed, flush=True)
            raise
    print("kept")


main()
