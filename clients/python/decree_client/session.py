"""One session: ordered frames, lists, heartbeats, and its end. It does no I/O, and the Agent's lock guards it."""

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from google.protobuf import duration_pb2

from decree_client.failure import say
from decree_client.operations import Operation
from decree_client.timers import Timer
from decree_client.v1 import batch_pb2 as batches, decision_service_pb2 as service, event_pb2 as events, object_pb2 as objects
from decree_client.v1 import session_pb2 as sessions
from decree_client.work import Work

if TYPE_CHECKING:
    from decree_client.engine import Engine

# The maximum size of the objects, events or outcomes in one frame, so that lists do not delay outcomes.
FRAME_BYTES = 256 << 10
# The maximum number of frames that wait for a server that reads none, and of the bytes of the events in them.
FRAMES_MAX = 100_000
EVENTS_BYTES_MAX = 256 << 20
STOP_SECONDS = 30
# After how many seconds without a first list the log says what the session waits for.
SYNC_SECONDS = 10


class Session:
    """Takes the frames of the server (`receive`), and has those for it (`next_frame`)."""

    def __init__(self, engine: "Engine") -> None:
        self.engine, self.view = engine, engine.view
        self.frames: deque[service.ReconcileRequest] = deque()
        self.works: set[Work] = set()
        # Operations that wait for their begin, and what follows when they may not begin any more.
        self.waiting: dict[Operation, Callable[[], None]] = {}
        self.id, self.interval, self.received, self.sent = "", 5.0, 0, 0
        self.last_received = self.last_sent = engine.clock()
        # The bytes of the last frame, if more events or outcomes fit into it.
        self.tail_bytes = FRAME_BYTES
        # The bytes of the events in each frame, and in all of them.
        self.weights: deque[int] = deque()
        self.waiting_bytes = 0
        self.is_listed = self.draining = self.ended = self.is_closed = False
        self.cause, self.after = "", 0.0
        self.error: BaseException | None = None
        self.timers: dict[str, Timer] = {}
        # Ends the stream.
        self.cancel: Callable[[], object] | None = None

    def open(self) -> None:
        """Sends Hello. After the first complete list of the controller, both kinds are listed, and every change follows in order."""
        self.engine.session = self
        self.send(hello=self.engine.hello)
        if self.engine.is_synced:
            self.list_all()
        else:
            self.arm("explain", SYNC_SECONDS, self.explain)
        self.beat()
        self.listen()

    def explain(self) -> None:
        if not self.is_listed:
            say(logging.WARNING, "the server decides nothing before the first list: call sync_pods, or synced when apply_pod has been called for all pods")

    def list_all(self) -> None:
        self.is_listed = True
        self.list(objects.KIND_REPLICA_SET)
        self.list(objects.KIND_POD)
        self.tell_synced()

    def tell_synced(self) -> None:
        """Calls `on_synced` after both the Welcome and the lists."""
        if self.id and self.is_listed:
            self.engine.tell_synced()

    def list(self, kind: "objects.Kind") -> None:
        known: dict[str, Any] = self.view.pods if kind == objects.KIND_POD else self.view.replica_sets
        field = "pods" if kind == objects.KIND_POD else "replica_sets"
        self.send(snapshot_begin=events.SnapshotBegin(kind=kind))
        part: list[Any] = []
        size = 0
        for one in known.values():
            if part and size + one.ByteSize() > FRAME_BYTES:
                self.send(snapshot_objects=events.SnapshotObjects(**{field: part}))
                part, size = [], 0
            part.append(one)
            size += one.ByteSize()
        if part:
            self.send(snapshot_objects=events.SnapshotObjects(**{field: part}))
        version = str(self.view.next_version())
        self.send(snapshot_end=events.SnapshotEnd(kind=kind, resource_version=version, count=len(known)))

    # Frames for the server.

    def send(self, **frame: Any) -> None:
        """Queues a frame, so that frames leave in the order of their versions."""
        if len(self.frames) < FRAMES_MAX:
            self.frames.append(service.ReconcileRequest(**frame))
            self.weights.append(0)
            self.tail_bytes = FRAME_BYTES
            self.engine.wake()
        else:
            self.end("the server does not read its stream")

    def send_event(self, event: events.Event) -> None:
        size = event.ByteSize()
        if self.waiting_bytes + size > EVENTS_BYTES_MAX:
            return self.end("the server does not read its stream")
        if self.has_room("events", size):
            self.frames[-1].events.events.append(event)
        else:
            self.send(events=events.Events(events=[event]))
            self.tail_bytes = size
        self.weights[-1] += size
        self.waiting_bytes += size
        return None

    def send_outcome(self, outcome: batches.Outcome) -> None:
        size = outcome.ByteSize()
        if self.has_room("outcomes", size):
            self.frames[-1].outcomes.outcomes.append(outcome)
        else:
            self.send(outcomes=batches.Outcomes(outcomes=[outcome]))
            self.tail_bytes = size

    def has_room(self, kind: str, size: int) -> bool:
        """Returns whether the last frame, which has not left yet, takes one more. If so, it counts the bytes."""
        self.tail_bytes += size
        return bool(self.frames) and self.tail_bytes <= FRAME_BYTES and self.frames[-1].WhichOneof("frame") == kind

    def next_frame(self) -> service.ReconcileRequest | None:
        """Takes the next frame, if there is one."""
        if not self.frames:
            return None
        frame = self.frames.popleft()
        self.waiting_bytes -= self.weights.popleft()
        self.sent += 1
        frame.sequence = self.sent
        self.last_sent = self.engine.clock()
        return frame

    def beat(self) -> None:
        """Sends a heartbeat after an interval without frames."""
        left = self.last_sent + self.interval - self.engine.clock()
        if left <= 0 and not self.frames:
            self.send(heartbeat=sessions.Heartbeat(last_sequence=self.received, view_age=duration_pb2.Duration()))
        self.arm("beat", left if left > 0 else self.interval, self.beat)

    def is_live(self) -> bool:
        """Returns whether operations may start."""
        return self.engine.session is self and not self.draining

    def is_over(self) -> bool:
        """Returns whether no frame follows those that are queued."""
        return self.ended or (self.draining and not self.works)

    # Frames of the server.

    def receive(self, frame: service.ReconcileResponse) -> None:
        self.received += 1
        self.last_received = self.engine.clock()
        if frame.sequence != self.received:
            return self.end(f"frame {frame.sequence} came where {self.received} was due")
        match frame.WhichOneof("frame"):
            case "welcome":
                self.id = frame.welcome.session_id
                self.interval = interval_of(frame.welcome)
                self.beat()
                self.listen()
                self.tell_synced()
            case "batches":
                for batch in frame.batches.batches:
                    self.start(batch)
            case "resync" if self.is_listed:
                self.list(frame.resync.kind)
            case "drain":
                self.after = seconds(frame.drain.reconnect_after)
                self.drain()
            case "rejection":
                for one in frame.rejection.objects:
                    say(logging.WARNING, "rejected %s: %s", one.object.name, one.violations)
        return None

    def start(self, batch: batches.Batch) -> None:
        work = Work(self, batch)
        self.works.add(work)
        work.proceed()

    def finished(self, work: Work) -> None:
        self.works.discard(work)
        self.engine.wake()

    def listen(self) -> None:
        """Ends the session unless the server sends something in time."""
        left = self.last_received + 4 * self.interval - self.engine.clock()
        if left > 0:
            self.arm("listen", left, self.listen)
        else:
            self.end("the server was silent for four heartbeat intervals")

    def arm(self, what: str, seconds_from_now: float, action: Callable[[], None]) -> None:
        """Sets one of the timers of the session."""
        if what in self.timers:
            self.timers[what].cancel()
        self.timers[what] = self.engine.after(seconds_from_now, action)

    # The end.

    def drain(self) -> None:
        """Begins to drain: no further operation starts, and the stream is closed after the last outcome."""
        if not self.draining:
            self.draining = True
            self.resume_waiting()
            self.arm("stop", STOP_SECONDS, lambda: self.end("the session did not end in time"))
            self.engine.wake()

    def end(self, why: str) -> None:
        """Ends the stream."""
        if not self.ended:
            self.ended, self.cause = True, why
            self.engine.wake()
            if self.cancel:
                self.cancel()

    def closed(self, error: BaseException | None) -> None:
        """Is called after the end of the stream."""
        if not self.is_closed:
            self.is_closed, self.error = True, error
            self.engine.session = None
            for timer in self.timers.values():
                timer.cancel()
            self.end("")
            self.resume_waiting()
            self.engine.wake()

    def resume_waiting(self) -> None:
        """Answers the operations that wait: they may not start any more."""
        for one, over in list(self.waiting.items()):
            if one.resume():
                over()


def interval_of(welcome: sessions.Welcome) -> float:
    """Returns the interval of heartbeats, within bounds; 10 seconds where it is absent or not positive."""
    interval = seconds(welcome.heartbeat_interval)
    return min(max(interval, 0.1), 60.0) if interval > 0 else 10.0


def seconds(duration: duration_pb2.Duration) -> float:
    return duration.seconds + duration.nanos / 1e9
