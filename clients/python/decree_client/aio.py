"""The agent's side of a session with asyncio: the same rules as `Agent`, and a cluster of coroutines."""

import asyncio
import inspect
import threading
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine
from typing import Any

import grpc

from decree_client.agent import Metadata
from decree_client.base import BaseAgent
from decree_client.engine import notice_failed
from decree_client.operations import Operation
from decree_client.session import Session
from decree_client.v1 import decision_service_pb2 as service
from decree_client.v1.decision_service_pb2_grpc import DecisionServiceStub


class AsyncAgent(BaseAgent):
    """Holds the view and keeps the session, and calls an `AsyncCluster` in the event loop. Only `run` is a coroutine."""

    _is_async = True

    async def run(self, channel: grpc.aio.Channel, metadata: Callable[[], Metadata | Awaitable[Metadata]] = tuple) -> None:
        """Keeps a session with the server until `stop`, as `Agent.run`. If it is cancelled, it closes the stream at once."""
        await _Tasks(self, channel, metadata).run()


class _Tasks:
    """The tasks of a run: this one waits for timers, two read and write the stream, and each call is one."""

    def __init__(self, agent: BaseAgent, channel: grpc.aio.Channel, metadata: Callable[[], Metadata | Awaitable[Metadata]]) -> None:
        self.engine, self.metadata, self.stub = agent._engine, metadata, DecisionServiceStub(channel)
        self.loop, self.thread = asyncio.get_running_loop(), threading.get_ident()
        # Set when the first task, or the one that writes, has something to do.
        self.news, self.writable = asyncio.Event(), asyncio.Event()
        self.calls: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        engine = self.engine
        engine.enter(self.wake, self.start_call, self.start_notice)
        try:
            while not engine.stopping:
                began, session = engine.clock(), Session(engine)
                await self.hold(session)
                with engine.lock:
                    pause = engine.pause_after(session, began)
                await self.wait_until(lambda: engine.stopping, pause)
        finally:
            engine.leave()

    async def hold(self, session: Session) -> None:
        """Runs a session to its end, and waits for its calls: the lists of the next session contain their writes."""
        tasks = []
        try:
            with self.engine.lock:
                session.open()
            try:
                metadata = self.metadata()
                metadata = tuple(await metadata if inspect.isawaitable(metadata) else metadata)
            except Exception as error:  # pylint: disable=broad-except  # Such as a token that cannot be read now.
                with self.engine.lock:
                    session.closed(error)
            else:
                call = self.stub.Reconcile(metadata=metadata)
                session.cancel = lambda: self.loop.call_soon_threadsafe(call.cancel)
                tasks = [self.loop.create_task(one) for one in (self.read(session, call), self.write(session, call))]
            await self.wait_until(lambda: session.is_closed)
        finally:
            with self.engine.lock:
                session.closed(None)
            for task in tasks:
                task.cancel()
        await self.wait_until(lambda: not session.works)

    async def wait_until(self, is_done: Callable[[], bool], longest: float | None = None) -> None:
        """Runs the timers until something is done."""
        end = None if longest is None else self.engine.clock() + longest
        while True:
            self.news.clear()
            with self.engine.lock:
                wait = self.engine.advance()
            left = None if end is None else end - self.engine.clock()
            if is_done() or left is not None and left <= 0:
                return
            waits = [one for one in (wait, left) if one is not None]
            try:
                await asyncio.wait_for(self.news.wait(), min(waits, default=None))
            except asyncio.TimeoutError:
                pass

    def wake(self) -> None:
        if threading.get_ident() == self.thread:
            self.set_events()
        else:
            self.loop.call_soon_threadsafe(self.set_events)

    def set_events(self) -> None:
        self.news.set()
        self.writable.set()

    async def read(self, session: Session, call: AsyncIterable[service.ReconcileResponse]) -> None:
        error: BaseException | None = None
        try:
            async for frame in call:
                with self.engine.lock:
                    session.receive(frame)
        except asyncio.CancelledError:  # By this task's end, or by that of the call.
            pass
        except Exception as raised:  # pylint: disable=broad-except
            error = raised
        with self.engine.lock:
            session.closed(error)

    async def write(self, session: Session, call: Any) -> None:
        try:
            while True:
                self.writable.clear()
                with self.engine.lock:
                    frame = None if session.ended else session.next_frame()
                    is_over = session.is_over()
                if frame is not None:
                    await call.write(frame)
                elif is_over:
                    await call.done_writing()
                    return
                else:
                    await self.writable.wait()
        except (asyncio.CancelledError, asyncio.InvalidStateError, grpc.RpcError):
            pass  # The reader meets the end of the call.

    def start_call(self, operation: Operation) -> None:
        operation.cancel = self.start(self.call(operation)).cancel

    def start_notice(self, call: Callable[[], object]) -> None:
        """Makes a call, in the event loop also if another thread has completed the lists."""
        self.loop.call_soon_threadsafe(lambda: self.start(self.notice(call)))

    def start(self, call: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self.loop.create_task(call)
        self.calls.add(task)
        task.add_done_callback(self.calls.discard)
        return task

    async def notice(self, call: Callable[[], object]) -> None:
        try:
            returned = call()
            if inspect.isawaitable(returned):
                await returned
        except Exception as error:  # pylint: disable=broad-except
            notice_failed(error)

    async def call(self, operation: Operation) -> None:
        """Makes a call. Whatever it raises, the operation has an outcome."""
        returned: Any = None
        error: BaseException | None = None
        try:
            returned = operation.call()
            if inspect.isawaitable(returned):
                returned = await returned
        except BaseException as raised:  # pylint: disable=broad-except
            error = raised
        with self.engine.lock:
            operation.returned(returned, error)
        if isinstance(error, KeyboardInterrupt):
            raise error
