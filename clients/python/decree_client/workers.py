"""Threads that make the calls of a cluster. A call that hangs delays no other call and does not keep the process alive."""

import queue
import threading
from collections.abc import Callable

# After how many seconds an idle thread ends.
IDLE_SECONDS = 10.0


class Workers:
    """Idle threads take the next call. If none is idle, a new thread does."""

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.lock = threading.Lock()
        # The number of threads that wait for a call that nobody has submitted yet.
        self.idle = 0

    def submit(self, call: Callable[[], None]) -> None:
        """Makes a call. Raises RuntimeError if the process cannot start more threads."""
        with self.lock:
            is_taken = self.idle > 0
            self.idle -= is_taken
        if not is_taken:
            threading.Thread(target=self.work, daemon=True, name="decree-call").start()
        self.calls.put(call)

    def work(self) -> None:
        while True:
            try:
                call = self.calls.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self.lock:
                    if self.idle:
                        self.idle -= 1
                        return
                continue  # A call has been submitted.
            call()
            with self.lock:
                self.idle += 1
