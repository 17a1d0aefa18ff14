"""Single cases of the rules of the client for Python, without threads, a server or time. `rules.py` plays them before its random sessions."""

import threading

import grpc
from google.protobuf import duration_pb2
from google.rpc import error_details_pb2, status_pb2

from decree_client import Agent, session as session_module
from decree_client.ends import end_of
from decree_client.engine import Engine
from decree_client.failure import Failure
from decree_client.pace import Pace
from decree_client.removals import REMOVALS_MAX
from decree_client.session import Session, interval_of
from decree_client.view import copied
from decree_client.v1 import batch_pb2 as batches, decision_service_pb2 as service, object_pb2 as objects, session_pb2 as sessions

LABELS = {"app": "x"}
OWNER = objects.ObjectRef(namespace="local", name="set", uid="u")
SET = objects.ReplicaSet(namespace="local", name="set", uid="u", generation=1, replicas=3, template_labels=LABELS,
                         selector=objects.LabelSelector(match_labels=LABELS))
OTHER = objects.ReplicaSet(namespace="local", name="other", uid="o", generation=1, template_labels=LABELS, selector=SET.selector)


def pod(name, uid="", labels=None, controller=None, kind="ReplicaSet", name_of_owner="set"):
    """Returns a pod as its source shows it: of the ReplicaSet, or with nothing but the UID of a controller."""
    labels = LABELS if labels is None else labels
    owner = objects.OwnerReference(uid=controller) if controller is not None else objects.OwnerReference(kind=kind, name=name_of_owner, uid="u")
    return objects.Pod(namespace="local", name=name, uid=uid or name, labels=labels, controller=owner)


class Cluster:
    """Its calls do nothing: a case answers them."""

    def create(self, owner, name):
        pass

    def delete(self, pod, reason):
        pass

    def set_controller(self, pod, controller):
        pass

    def write_status(self, replica_set, status):
        pass


class Case:
    """An engine with a session, whose time and calls the case determines."""

    def __init__(self, settle=60.0):
        self.now, self.calls, self.sequence = 0.0, [], 0
        self.engine = Engine(Cluster(), sessions.Hello(), operation_timeout=20.0, pace=Pace(None, 1), settle=settle, calls_max=100,
                             clock=lambda: self.now)
        self.engine.start_call, self.view = self.calls.append, self.engine.view
        self.session = Session(self.engine)

    def open(self, replica_set=SET):
        self.view.apply_replica_set(replica_set)
        self.engine.synced()
        self.welcome()
        return self

    def welcome(self):
        self.session.open()
        self.say(welcome=sessions.Welcome(session_id="s"))

    def say(self, **frame):
        self.sequence += 1
        self.session.receive(service.ReconcileResponse(sequence=self.sequence, **frame))

    def ask(self, **action):
        """Asks for operations, and returns the call of the first one, if there is one."""
        batch = batches.Batch(id=self.sequence, replica_set=OWNER, guard=batches.Guard(session_id="s"), **action)
        self.say(batches=batches.Batches(batches=[batch]))
        return self.calls.pop() if self.calls else None

    def create(self, name):
        return self.ask(create=batches.Create(names=[name]))

    def delete(self, name):
        target = objects.ObjectRef(namespace="local", name=name, uid=name)
        return self.ask(delete=batches.Delete(victims=[batches.Victim(pod=target)]))

    def sync(self, *pods):
        return self.view.sync_pods(pods, self.view.version)

    def frames(self):
        """Takes the frames for the server."""
        frames = []
        while frame := self.session.next_frame():
            frames.append(frame)
        return frames

    def events(self):
        return [event for frame in self.frames() for event in frame.events.events]

    def outcome(self):
        return [outcome for frame in self.frames() for outcome in frame.outcomes.outcomes][-1]


def refused(call, *arguments):
    """Returns the text with which a call is refused."""
    try:
        call(*arguments)
    except ValueError as error:
        return str(error)
    raise AssertionError("it is not refused")


def case_list_that_lags_keeps_a_pod_that_a_watch_has_shown_before_its_create_returned():
    case = Case().open()
    call = case.create("set-bbbbb")
    case.view.apply_pod(pod("set-bbbbb"))
    call.returned(pod("set-bbbbb"), None)
    case.sync()
    assert list(case.view.pods) == ["set-bbbbb"]
    case.now = 61.0
    case.sync()
    assert not case.view.pods


def case_removal_is_remembered_while_lists_may_lag_behind_it():
    case = Case().open()
    case.sync(pod("set-bbbbb"))
    case.view.remove_pod("set-bbbbb")
    for number in range(REMOVALS_MAX + 1):
        case.view.remove_pod(str(number))
    case.sync(pod("set-bbbbb"))
    assert not case.view.pods
    # More than REMOVALS_MAX are remembered only for as long as lists may lag.
    case.now = 61.0
    mark = case.view.version
    case.view.remove_pod("one-more")
    assert len(case.view.gone_pods.known) == REMOVALS_MAX
    assert "too old" in refused(case.view.sync_pods, [], 1)
    case.view.sync_pods([], mark)


def case_removal_that_is_told_again_counts_once_and_is_the_newest():
    case = Case(settle=0.0).open()
    for number in range(REMOVALS_MAX):
        case.view.remove_pod(str(number))
    mark = case.view.version
    case.view.remove_pod("0")
    case.view.sync_pods([], 1)
    case.view.remove_pod("one-more")
    assert "too old" in refused(case.view.sync_pods, [], 1)
    case.view.sync_pods([pod("set-bbbbb", uid="0"), pod("set-ccccc", uid="1")], mark)
    assert list(case.view.pods) == ["1"], "only the oldest removal is forgotten"


def case_last_applied_state_says_whether_a_pod_is_being_deleted():
    case = Case().open()
    going = pod("set-bbbbb")
    going.deletion_timestamp.FromSeconds(1)
    case.view.apply_pod(going)
    case.view.apply_pod(pod("set-bbbbb"))
    assert not case.view.pods["set-bbbbb"].HasField("deletion_timestamp")
    case.view.apply_pod(going)
    case.view.remove_pod("set-bbbbb")
    case.view.apply_pod(pod("set-bbbbb"))
    assert list(case.view.pods) == ["set-bbbbb"], "a pod that the controller removed comes back"


def case_list_ends_a_pod_at_once_that_a_delete_returned():
    case = Case().open()
    case.create("set-bbbbb").returned(pod("set-bbbbb"), None)
    case.view.scale("u", 0)
    call = case.delete("set-bbbbb")
    call.returned(call.pod, None)
    case.view.apply_pod(pod("set-bbbbb"))
    assert case.view.pods["set-bbbbb"].HasField("deletion_timestamp"), "whatever its source says"
    case.sync()
    assert not case.view.pods
    case.view.apply_pod(pod("set-bbbbb"))
    case.sync(pod("set-bbbbb"))
    assert not case.view.pods, "its delete was answered"


def case_list_ends_a_pod_at_once_whose_delete_returns_before_its_create():
    case = Case().open()
    create = case.create("set-bbbbb")
    case.view.apply_pod(pod("set-bbbbb"))
    case.view.scale("u", 0)
    delete = case.delete("set-bbbbb")
    delete.returned(delete.pod, None)
    create.returned(pod("set-bbbbb"), None)
    case.sync()
    assert not case.view.pods


def case_empty_kind_and_name_of_a_controller_are_filled_in():
    case = Case().open()
    case.view.apply_pod(pod("set-bbbbb", uid="b", controller="u"))
    controller = case.view.pods["b"].controller
    assert (controller.kind, controller.name) == ("ReplicaSet", "set")
    case.frames()
    case.sync(pod("set-bbbbb", uid="b", controller="u"))
    assert not case.frames(), "it is no news"


def case_pod_that_its_replica_set_would_not_count_is_refused():
    case = Case().open()
    apply, elsewhere = case.view.apply_pod, pod("set-ccccc")
    elsewhere.namespace = "elsewhere"
    assert refused(apply, pod("set-bbbbb", kind="MachineSet")) == (
        'pod local/set-bbbbb: controller.kind: it is "MachineSet", and its uid is that of a ReplicaSet')
    assert refused(apply, pod("set-bbbbb", name_of_owner="net")) == (
        'pod local/set-bbbbb: controller.name: it is "net", and the ReplicaSet of its uid is "set"')
    assert refused(apply, elsewhere) == 'pod elsewhere/set-ccccc: namespace: it is "elsewhere", and that of its ReplicaSet is "local"'
    assert len(case.sync(pod("set-bbbbb", kind="MachineSet"), elsewhere, pod("set-ddddd"))) == 2
    elsewhere.phase = objects.POD_PHASE_FAILED
    apply(elsewhere)
    assert sorted(case.view.pods) == ["set-ccccc", "set-ddddd"]


def case_new_replica_set_completes_and_checks_the_pods_that_were_there_before_it():
    case = Case()
    case.open(OTHER)
    early = [pod("set-bbbbb", controller="u"), pod("set-ccccc"), pod("other-bbbbb", controller="o"), pod("elsewhere", labels={}, controller="")]
    for one in early:
        case.view.apply_pod(one)
    case.frames()
    case.view.apply_replica_set(SET)
    applied = [event.pod_applied for event in case.events() if event.HasField("pod_applied")]
    assert [(one.name, one.controller.name) for one in applied] == [("set-bbbbb", "set")]
    case.view.remove_replica_set("u")
    case.view.apply_pod(pod("set-bbbbb", labels={"app": "y"}))
    case.view.apply_pod(pod("set-ddddd", labels={}, controller=""))
    why = refused(case.view.apply_replica_set, SET)
    assert "pod local/set-bbbbb: labels: " in why and "pod local/set-ddddd: labels: " in why and "ccccc" not in why, why
    assert case.view.sync_replica_sets([SET, OTHER], case.view.version) == [why]
    assert list(case.view.replica_sets) == ["o"]


def case_bare_pod_with_the_name_of_a_replica_set_is_refused_unless_it_was_created_or_released_here():
    case = Case().open()
    for number in range(100):
        case.view.apply_replica_set(objects.ReplicaSet(namespace="local", name=f"net-{number}", uid=str(number), template_labels=LABELS, selector=SET.selector))
    bare = pod("set-bbbbb", labels={}, controller="")
    assert "labels: the selector of ReplicaSet local/set does" in refused(case.view.apply_pod, bare)
    call = case.create("set-bbbbb")
    case.view.apply_pod(bare)
    call.returned(None, Failure(batches.FAILURE_CLASS_TIMEOUT, "it is there nevertheless"))
    case.sync(bare)
    assert case.view.pods["set-bbbbb"].controller.uid == "u"
    case.ask(claim=batches.Claim(releases=[objects.ObjectRef(namespace="local", name="set-bbbbb", uid="set-bbbbb")])).returned(None, None)
    case.view.apply_pod(bare)
    released = case.view.pods["set-bbbbb"]
    assert released.labels == LABELS and not released.controller.uid


def case_pod_of_another_controller_does_not_count_in_place_of_a_create():
    case = Case().open()
    case.create("set-bbbbb")
    for owner, places in [("o", 1), ("u", 1)]:
        case.view.apply_pod(pod("set-bbbbb", uid=owner, controller=owner))
        assert case.view.places("u") == places


def case_calls_receive_copies():
    case = Case().open()
    case.sync(pod("set-bbbbb"), pod("orphan", controller=""))
    status = objects.ReplicaSetStatus(replicas=7)
    orphan = objects.ObjectRef(namespace="local", name="orphan", uid="orphan")
    calls = [case.create("set-ccccc")]
    case.view.scale("u", 0)
    calls += [case.delete("set-bbbbb"), case.ask(claim=batches.Claim(adopts=[orphan])), case.ask(write_status=batches.WriteStatus(status=status))]
    before = {**case.view.pods, **case.view.replica_sets}
    copies = {uid: copied(one) for uid, one in before.items()}
    for call in calls:
        for one in call.call.args:
            if not isinstance(one, str):
                one.Clear()
        call.returned(None, None)
    assert before == copies
    assert case.view.replica_sets["u"].status == status
    assert case.view.pods["orphan"].controller.uid == "u"


def case_list_that_fails_on_its_way_changes_nothing_and_holds_no_lock():
    agent, threads = Agent(Cluster(), "c"), []
    agent.apply_replica_set(SET)
    agent.apply_pod(pod("set-bbbbb"))

    def listing(one):
        threads.append(threading.Thread(target=agent.mark, daemon=True))
        threads[-1].start()
        threads[-1].join(10)
        assert not threads[-1].is_alive(), "the lock is held"
        yield one
        raise OSError("the list breaks off")

    for sync, one in [(agent.sync_pods, pod("set-ccccc")), (agent.sync_replica_sets, OTHER)]:
        try:
            sync(listing(one), agent.mark())
        except OSError:
            continue
        raise AssertionError("it raises")
    assert [one.name for one in agent.pods()] == ["set-bbbbb"]
    assert list(agent._view.replica_sets) == ["u"]


class Refusal(grpc.RpcError):
    """A status of the server."""

    def __init__(self, code, reason="", wait=0):
        super().__init__()
        self.kind, self.status = code, status_pb2.Status()
        if reason:
            self.status.details.add().Pack(error_details_pb2.ErrorInfo(domain="decree.dev", reason=reason))
        if wait:
            self.status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=wait)))

    def code(self):
        return self.kind

    def details(self):
        return "why"

    def trailing_metadata(self):
        return [("grpc-status-details-bin", self.status.SerializeToString())]


def case_end_of_a_session_is_what_the_server_says():
    for code, reason in [(grpc.StatusCode.FAILED_PRECONDITION, "EPOCH_TOO_OLD"), (grpc.StatusCode.UNIMPLEMENTED, "UNIMPLEMENTED")]:
        refusal = end_of(Refusal(code, reason), "", False).refusal
        assert refusal and (refusal.reason, refusal.message) == (reason, "why")
        assert not end_of(Refusal(code, reason), "", True).refusal, "the session was welcome"
    another = end_of(Refusal(grpc.StatusCode.UNIMPLEMENTED), "", False)
    assert not another.refusal and another.text == "UNIMPLEMENTED: what answers is no decision server: why"
    nobody = end_of(Refusal(grpc.StatusCode.UNAVAILABLE), "", False)
    assert nobody.text == "UNAVAILABLE: the server cannot be reached: why" and not nobody.is_ordinary
    drains = end_of(Refusal(grpc.StatusCode.UNAVAILABLE, "SERVER_DRAINING", wait=7), "", False)
    assert drains.text == "UNAVAILABLE: why" and drains.is_ordinary and drains.after == 7
    ended = end_of(Refusal(grpc.StatusCode.UNAVAILABLE, "SESSION_ENDED"), "", True)
    assert (ended.cause, ended.text) == ("SESSION_ENDED", "UNAVAILABLE: why") and not ended.is_ordinary


def case_batch_before_the_lists_of_its_session_has_no_effect():
    case = Case()
    case.view.apply_replica_set(SET)
    case.view.apply_pod(pod("set-bbbbb"))
    case.welcome()
    assert not case.create("set-ccccc")
    assert case.outcome().not_started == batches.NotStarted(cause=batches.NOT_STARTED_CAUSE_GUARD, message="view: the agent has listed nothing yet")
    case.engine.synced()
    assert case.create("set-ccccc")


def case_platform_is_another_one_unless_the_controller_says_so():
    for said, platform in [({}, sessions.PLATFORM_OTHER), ({"platform": 0}, sessions.PLATFORM_OTHER), ({"platform": 1}, sessions.PLATFORM_KUBERNETES)]:
        session = Session(Agent(Cluster(), "c", **said)._engine)
        session.open()
        assert session.next_frame().hello.platform == platform


def case_on_synced_follows_both_the_welcome_and_the_lists_of_each_session():
    case, told = Case(), []
    case.engine.on_synced, case.engine.start_notice = case.engine.stop, told.append
    case.welcome()
    assert not told
    case.engine.synced()
    assert told == [case.engine.stop]
    case.say(resync=sessions.Resync(kind=objects.KIND_POD))
    assert len(told) == 1
    case.session.closed(None)
    case.session, case.sequence = Session(case.engine), 0
    case.session.open()
    assert len(told) == 1, "the lists are sent, and the server has not welcomed the agent"
    case.say(welcome=sessions.Welcome(session_id="t"))
    assert len(told) == 2

    async def is_async():
        pass

    try:
        Agent(Cluster(), "c", on_synced=is_async)
    except TypeError as error:
        assert str(error) == "on_synced: it is async; use an AsyncAgent"
    else:
        raise AssertionError("it would do nothing")


def case_create_that_a_session_ends_takes_no_turn():
    case = Case()
    case.engine.pace = Pace(0.1, 1)
    case.open()
    case.create("set-bbbbb")
    case.ask(create=batches.Create(names=["set-ccccc"]))
    assert case.engine.pace.tokens == -1
    case.session.closed(None)
    assert case.engine.pace.tokens == 0


def case_interval_of_heartbeats_has_bounds():
    for given, expected in ((-1, 10.0), (0, 10.0), (1, 1.0), (3600, 60.0)):
        welcome = sessions.Welcome(heartbeat_interval=duration_pb2.Duration(seconds=given))
        assert interval_of(welcome) == expected, given
    assert interval_of(sessions.Welcome()) == 10.0


def case_server_that_reads_no_events_is_given_up():
    case, most = Case().open(), session_module.EVENTS_BYTES_MAX
    session_module.EVENTS_BYTES_MAX = 10_000
    try:
        for number in range(100):
            case.view.apply_pod(pod("set-bbbbb", uid=str(number), labels={**LABELS, "number": "x" * 1_000}))
            case.frames()
        assert not case.session.ended, "a server that reads them is none"
        for number in range(20):
            case.view.apply_pod(pod("set-bbbbb", uid=str(number), labels={**LABELS, "number": "y" * 1_000}))
    finally:
        session_module.EVENTS_BYTES_MAX = most
    assert case.session.cause == "the server does not read its stream"


def case_agent_cannot_advise():
    assert "mode" in refused(lambda: Agent(Cluster(), "c", mode=sessions.MODE_ADVISE))


def play_cases():
    for name, case in list(globals().items()):
        if name.startswith("case_"):
            try:
                case()
            except BaseException:
                print(name, flush=True)
                raise
