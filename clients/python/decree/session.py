"""One session: ordered frames, lists, heartbeats, and its end. The Agent's lock guards the fields that both share."""

import collections
import logging
import threading
import time

from google.rpc import error_details_pb2, status_pb2

from decree.batch import Work
from decree.v1 import decision_service_pb2 as service, event_pb2 as events, object_pb2 as objects, session_pb2 as sessions

# The maximum size of the part of a list in one frame, so that lists do not delay outcomes.
LIST_BYTES = 256 << 10
# The maximum number of frames that wait for a server that reads none.
FRAMES_MAX = 100_000
STOP_SECONDS = 30
# How long a superseded agent stays away. Without this delay, two agents would end each other's sessions forever.
SUPERSEDED_SECONDS = 60.0
logger = logging.getLogger("decree")


class Session:
    def __init__(self, agent):
        self.agent, self.lock = agent, agent.lock
        self.frames, self.threads = collections.deque(), set()
        # Set when no further operation may start.
        self.over = threading.Event()
        self.id, self.interval, self.received, self.sent = "", 5.0, 0, 0
        self.draining, self.ended, self.cause, self.after, self.call, self.silent = False, False, "", 0.0, None, None

    def run(self, stub, metadata):
        """Runs the session to its end. If the server drains it, `after` is the delay in seconds that the server asks for."""
        with self.lock:
            if self.agent.stopping:
                return
            self.open()
            self.call = stub.Reconcile(self.numbered(), metadata=metadata)
            self.expect_frame()
        try:
            for frame in self.call:
                with self.lock:
                    self.handle(frame)
        finally:
            with self.lock:
                self.agent.session = None
                self.over.set()
                self.silent.cancel()
                self.end("")

    def wait_for_calls(self):
        """Waits for the calls to the cluster: the lists of the next session contain their writes."""
        for thread in list(self.threads):
            thread.join()

    def open(self):
        """Sends Hello and lists both kinds. After it, every change follows in order."""
        self.agent.session = self
        self.send(hello=self.agent.hello)
        self.list(objects.KIND_REPLICA_SET)
        self.list(objects.KIND_POD)

    def list(self, kind):
        field, known = ("pods", self.agent.pods) if kind == objects.KIND_POD else ("replica_sets", self.agent.replica_sets)
        self.send(snapshot_begin=events.SnapshotBegin(kind=kind))
        part, size = [], 0
        for one in known.values():
            if part and size + one.ByteSize() > LIST_BYTES:
                self.send(snapshot_objects=events.SnapshotObjects(**{field: part}))
                part, size = [], 0
            part.append(one)
            size += one.ByteSize()
        if part:
            self.send(snapshot_objects=events.SnapshotObjects(**{field: part}))
        version = self.agent.next_version()
        self.send(snapshot_end=events.SnapshotEnd(kind=kind, resource_version=version, count=len(known)))

    def send(self, **frame):
        """Queues a frame, so that frames leave in the order of their versions."""
        if len(self.frames) < FRAMES_MAX:
            self.frames.append(service.ReconcileRequest(**frame))
            self.lock.notify_all()
        else:
            self.end("the server does not read its stream")

    def numbered(self):
        """Yields numbered frames, and a heartbeat after an interval without frames."""
        while True:
            with self.lock:
                self.wait_for_frame()
                if not self.frames:
                    return
                frame = self.frames.popleft()
                self.sent += 1
                frame.sequence = self.sent
            yield frame

    def wait_for_frame(self):
        """Waits for a frame, a heartbeat that is due, or the end. A Welcome may shorten the interval during the wait."""
        since = time.monotonic()
        while not self.frames and not self.is_over():
            left = since + self.interval - time.monotonic()
            if left > 0:
                self.lock.wait(left)
            else:
                self.send(heartbeat=sessions.Heartbeat(last_sequence=self.received, view_age={"seconds": 0}))

    def is_over(self):
        return self.ended or (self.draining and not self.threads)

    def handle(self, frame):
        self.received += 1
        if frame.sequence != self.received:
            return self.end(f"frame {frame.sequence} came where {self.received} was due")
        match frame.WhichOneof("frame"):
            case "welcome":
                self.id = frame.welcome.session_id
                self.interval = min(max(seconds(frame.welcome.heartbeat_interval), 0.1), 60.0)
                self.lock.notify_all()
            case "batches":
                for batch in frame.batches.batches:
                    self.start(batch)
            case "resync":
                self.list(frame.resync.kind)
            case "drain":
                self.after = seconds(frame.drain.reconnect_after)
                self.drain()
            case "rejection":
                for one in [frame.rejection, *frame.rejection.others]:
                    logger.warning("rejected %s: %s", one.object.name, one.violations)
        self.expect_frame()

    def start(self, batch):
        work = Work(self, batch)
        thread = threading.Thread(target=work.run, daemon=True)
        self.threads.add(thread)
        thread.start()

    def finished(self, thread):
        with self.lock:
            self.threads.discard(thread)
            self.lock.notify_all()

    def expect_frame(self):
        """Ends the session unless the server sends something in time."""
        if self.silent:
            self.silent.cancel()
        self.silent = threading.Timer(4 * self.interval, self.end, ["the server was silent for four heartbeat intervals"])
        self.silent.daemon = True
        self.silent.start()

    def drain(self):
        """Begins to drain: no further operation starts, and the stream is closed after the last outcome."""
        if not self.draining:
            self.draining = True
            self.over.set()
            cut = threading.Timer(STOP_SECONDS, self.end, ["the session did not end in time"])
            cut.daemon = True
            cut.start()
            self.lock.notify_all()

    def end(self, why):
        with self.lock:
            self.ended, self.cause = True, self.cause or why
            self.lock.notify_all()
        if self.call:
            self.call.cancel()


def seconds(duration):
    return duration.seconds + duration.nanos / 1e9


def retry_after(error):
    """Returns the delay in seconds that the end of a session asks for."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                retry, error_info = error_details_pb2.RetryInfo(), error_details_pb2.ErrorInfo()
                if detail.Unpack(retry):
                    return seconds(retry.retry_delay)
                if detail.Unpack(error_info) and (error_info.domain, error_info.reason) == ("decree.dev", "SESSION_SUPERSEDED"):
                    return SUPERSEDED_SECONDS
    return 0.0
