"""What is due at which time. The Agent has one thread, or one task, that waits for the next timer."""

import heapq
import itertools
from collections.abc import Callable


class Timer:
    """An action at a time. A cancelled timer does nothing."""

    def __init__(self, when: float, action: Callable[[], None]) -> None:
        self.when = when
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None


class Timers:
    """The timers, earliest first."""

    def __init__(self) -> None:
        self.heap: list[tuple[float, int, Timer]] = []
        self.order = itertools.count()

    def add(self, when: float, action: Callable[[], None]) -> Timer:
        timer = Timer(when, action)
        heapq.heappush(self.heap, (when, next(self.order), timer))
        return timer

    def advance(self, now: float) -> float | None:
        """Runs the timers that are due, and returns the time of the next one."""
        while self.heap:
            when, _, timer = self.heap[0]
            if timer.action and when > now:
                return when
            heapq.heappop(self.heap)
            if timer.action:
                timer.action()
        return None
