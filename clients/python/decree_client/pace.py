"""Limits the rate of creates, so that a mistake creates few things before somebody notices it."""


class Pace:
    """A token bucket: a burst of creates at once, and then a number per second. None a second means no limit."""

    def __init__(self, per_second: float | None, burst: int) -> None:
        self.per_second, self.burst = per_second, burst
        # If negative, the number of creates that wait.
        self.tokens = float(burst)
        self.at: float | None = None

    def reserve(self, now: float, longest: float) -> tuple[float, str]:
        """Takes a token, and returns the wait in seconds and an empty text. If the wait is longer than `longest`, returns the reason instead."""
        if not self.per_second:
            return 0.0, ""
        if self.at is not None:
            self.tokens = min(self.burst, self.tokens + (now - self.at) * self.per_second)
        self.at = now
        wait = max(0.0, 1 - self.tokens) / self.per_second
        if wait > longest:
            return 0.0, f"pace: {self.per_second:g} creates a second are allowed, and more are waiting than may start in time"
        self.tokens -= 1
        return wait, ""

    def give_back(self) -> None:
        """Takes the token of a create back that does not begin: the creates of the next session need not wait for it."""
        self.tokens = min(self.burst, self.tokens + 1)
