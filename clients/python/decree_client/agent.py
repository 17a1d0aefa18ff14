"""Implements the agent's side of a session with a Decree server, with threads. A controller only reports its objects, and creates and removes pods.

The Agent is for a process that is itself the cluster. Only one process may act: run a single one, or elect one and count the elections (`epoch`).
docs/protocol.md specifies the rules.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import grpc

from decree_client.base import BaseAgent
from decree_client.cluster import is_unstarted
from decree_client.engine import notice_failed
from decree_client.failure import UnstartedError
from decree_client.operations import Operation
from decree_client.session import Session
from decree_client.v1 import batch_pb2 as batches, decision_service_pb2 as service
from decree_client.v1.decision_service_pb2_grpc import DecisionServiceStub
from decree_client.workers import Workers

Metadata = Iterable[tuple[str, str | bytes]]


class Agent(BaseAgent):
    """Holds the view and keeps the session, and calls a `Cluster` from several threads."""

    def run(self, channel: grpc.Channel, metadata: Callable[[], Metadata] = tuple) -> None:
        """Keeps a session with the server until `stop`. It calls `metadata` for each session, so that the token can change.

        Raises RefusedError if the server refuses the agent for a reason that no retry can change, such as a later epoch, and RuntimeError if it
        runs already.
        """
        _Threads(self, channel, metadata).run()


class _Threads:
    """The threads of a run: this one waits for timers, another one reads the stream, gRPC sends, and workers make calls."""

    def __init__(self, agent: BaseAgent, channel: grpc.Channel, metadata: Callable[[], Metadata]) -> None:
        self.engine, self.metadata = agent._engine, metadata
        self.news, self.workers = threading.Condition(self.engine.lock), Workers()
        self.stub = DecisionServiceStub(channel)

    def run(self) -> None:
        engine = self.engine
        with engine.lock:
            engine.enter(self.news.notify_all, self.start_call, self.start_notice)
        try:
            while not engine.stopping:
                began, session = engine.clock(), Session(engine)
                self.hold(session)
                with engine.lock:
                    pause = engine.pause_after(session, began)
                self.wait_until(lambda: engine.stopping, pause)
        finally:
            engine.leave()

    def hold(self, session: Session) -> None:
        """Runs a session to its end, and waits for its calls: the lists of the next session contain their writes."""
        try:
            with self.engine.lock:
                session.open()
            self.connect(session)
            self.wait_until(lambda: session.is_closed)
        finally:
            with self.engine.lock:
                session.closed(None)
        self.wait_until(lambda: not session.works)

    def connect(self, session: Session) -> None:
        try:
            metadata = tuple(self.metadata())
        except Exception as error:  # pylint: disable=broad-except  # Such as a token that cannot be read now.
            with self.engine.lock:
                session.closed(error)
            return
        call = self.stub.Reconcile(self.frames(session), metadata=metadata)
        session.cancel = call.cancel
        threading.Thread(target=self.read, args=[session, call], daemon=True, name="decree-read").start()

    def wait_until(self, is_done: Callable[[], bool], longest: float = float("inf")) -> None:
        """Runs the timers until something is done."""
        end = self.engine.clock() + longest
        with self.engine.lock:
            while not is_done():
                due, left = self.engine.advance(), end - self.engine.clock()
                if left <= 0:
                    return
                if not is_done():
                    self.news.wait(min(left, threading.TIMEOUT_MAX if due is None else due))

    def frames(self, session: Session) -> Iterator[service.ReconcileRequest]:
        """Yields the frames of a session. gRPC sends them."""
        while True:
            with self.news:
                self.news.wait_for(lambda: session.frames or session.is_over())
                frame = None if session.ended else session.next_frame()
            if frame is None:
                return
            yield frame

    def read(self, session: Session, call: Iterable[service.ReconcileResponse]) -> None:
        error: BaseException | None = None
        try:
            for frame in call:
                with self.engine.lock:
                    session.receive(frame)
        except Exception as raised:  # pylint: disable=broad-except
            error = raised
        with self.engine.lock:
            session.closed(error)

    def start_call(self, operation: Operation) -> None:
        self.workers.submit(partial(self.call, operation))

    def start_notice(self, call: Callable[[], object]) -> None:
        self.workers.submit(partial(self.notice, call))

    def notice(self, call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as error:  # pylint: disable=broad-except
            notice_failed(error)

    def call(self, operation: Operation) -> None:
        """Makes a call. Whatever it raises, the operation has an outcome."""
        returned: object = None
        error: BaseException | None = None
        try:
            returned = operation.call()
            if is_unstarted(returned):
                getattr(returned, "close", tuple)()
                text = f"{operation.what} returned a {type(returned).__name__}: it must be an ordinary function"
                error = UnstartedError(batches.FAILURE_CLASS_INVALID, text)
        except BaseException as raised:  # pylint: disable=broad-except
            error = raised
        with self.engine.lock:
            operation.returned(returned, error)
