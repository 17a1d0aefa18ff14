"""What threads and asyncio share: the view, the session, the timers, and the pause between sessions. It does no I/O."""

import logging
import random
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from decree_client.ends import end_of
from decree_client.failure import say, text_of
from decree_client.pace import Pace
from decree_client.session import Session
from decree_client.timers import Timer, Timers
from decree_client.v1 import event_pb2 as events, session_pb2 as sessions
from decree_client.view import View

if TYPE_CHECKING:
    from decree_client.operations import Operation

FIRST_WAIT, LAST_WAIT, LONGEST_WAIT = 0.1, 2.0, 300.0
# After how many quiet seconds a cause is worth another warning.
QUIET_SECONDS = 600.0


class Engine:
    """The state of an Agent. The lock guards all of it; each method needs the lock."""

    def __init__(self, cluster: object, hello: sessions.Hello, *, operation_timeout: float, pace: Pace, settle: float, calls_max: int,
                 on_synced: Callable[[], object] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        hello.protocol_min = hello.protocol_max = 1
        hello.agent_instance = str(uuid.uuid4())
        self.cluster, self.hello, self.pace, self.operation_timeout, self.clock = cluster, hello, pace, operation_timeout, clock
        self.lock = threading.RLock()
        self.view, self.timers = View(self.change, clock, settle), Timers()
        self.session: Session | None = None
        # The number of calls that have not missed their deadline, its limit, and the operations that wait for a place.
        self.calls, self.calls_max = 0, calls_max
        self.queue: deque[Operation] = deque()
        self.is_synced = self.is_running = self.stopping = False
        self.wait = FIRST_WAIT
        # When each cause ended a session last.
        self.told: dict[str, float] = {}
        self.wake: Callable[[], None] = nothing
        self.start_call: Callable[[Operation], None] = unset
        self.on_synced = on_synced
        self.start_notice: Callable[[Callable[[], object]], None] = unset_notice

    def enter(self, wake: Callable[[], None], start_call: "Callable[[Operation], None]", start_notice: Callable[[Callable[[], object]], None]) -> None:
        """Begins to run with a driver: `wake` says that there is a frame, a timer or an end, and `start_call` makes the call of an operation.

        `start_notice` makes a call without an outcome.
        """
        if self.is_running:
            raise RuntimeError("this agent is running already")
        self.is_running, self.wake, self.start_call, self.start_notice = True, wake, start_call, start_notice

    def leave(self) -> None:
        """Ends the run."""
        self.is_running, self.wake, self.start_call, self.start_notice = False, nothing, unset, unset_notice

    def tell_synced(self) -> None:
        """Calls `on_synced`, without the lock."""
        if self.on_synced:
            try:
                self.start_notice(self.on_synced)
            except RuntimeError as error:  # The process cannot start more threads.
                notice_failed(error)

    def change(self, event: events.Event) -> None:
        """Sends an event. Without a session it sends nothing, because the next session begins with lists."""
        if self.session and self.session.is_listed:
            self.session.send_event(event)

    def synced(self) -> None:
        """Lets the lists go out."""
        self.is_synced = True
        if self.session and not self.session.is_listed:
            self.session.list_all()

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        timer = self.timers.add(self.clock() + seconds, action)
        self.wake()
        return timer

    def advance(self) -> float | None:
        """Runs the timers that are due, and returns the seconds to the next one."""
        due = self.timers.advance(self.clock())
        return None if due is None else max(0.0, due - self.clock())

    def call_ended(self) -> None:
        """Gives the place of a call to the next operation."""
        self.calls -= 1
        while self.queue and self.calls < self.calls_max:
            operation = self.queue.popleft()
            if operation.resume():
                operation.start()

    def stop(self) -> None:
        self.stopping = True
        if self.session:
            self.session.drain()
        self.wake()

    def pause_after(self, session: Session, began: float) -> float:
        """Returns the pause in seconds after a session. Raises RefusedError if no retry helps."""
        now = self.clock()
        end = end_of(session.error, session.cause, bool(session.id))
        if self.stopping or session.draining:
            say(logging.INFO, "session ended: %s", end.text)
        else:
            if end.refusal:
                raise end.refusal
            is_known = end.is_ordinary or now - self.told.get(end.cause, -QUIET_SECONDS) < QUIET_SECONDS
            self.told[end.cause] = now
            again = "" if end.is_ordinary else "; the agent tries again, and repeats this line only after ten quiet minutes"
            say(logging.INFO if is_known else logging.WARNING, "session ended: %s%s", end.text, "" if is_known else again)
        if now - began > self.wait:
            self.wait = FIRST_WAIT
        pause = max(self.wait * random.uniform(0.5, 1), min(max(end.after, session.after), LONGEST_WAIT))
        self.wait = min(2 * self.wait, LAST_WAIT)
        return pause


def nothing() -> None:
    """Is what an Agent that does not run is woken by."""


def unset(_operation: "Operation") -> None:
    raise RuntimeError("the agent does not run")


def unset_notice(_call: Callable[[], object]) -> None:
    """Is what an Agent that does not run notifies with."""


def notice_failed(error: BaseException) -> None:
    say(logging.WARNING, "on_synced failed: %s", text_of(error), error=error)
