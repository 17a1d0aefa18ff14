"""The latest removals. They stop older lists and states from restoring removed objects."""

from collections.abc import Callable
from typing import NamedTuple

# The number of removals to remember, and more if lists may lag behind them.
REMOVALS_MAX = 10_000


LONG_AGO = float("-inf")


class Removal(NamedTuple):
    """The version of a removal, whether it was the outcome of a delete, and when it was, if lists may lag behind it."""

    version: int = 0
    is_answered: bool = False
    at: float = LONG_AGO


NEVER = Removal()


class Removals:
    """The removals by UID, oldest first."""

    def __init__(self, clock: Callable[[], float], settle: float) -> None:
        self.clock, self.settle = clock, settle
        self.known: dict[str, Removal] = {}
        self.forgotten = 0

    def add(self, uid: str, removal: Removal) -> None:
        self.known.pop(uid, None)
        self.known[uid] = removal
        while len(self.known) > REMOVALS_MAX:
            first, oldest = next(iter(self.known.items()))
            if self.clock() < oldest.at + self.settle:
                break
            del self.known[first]
            self.forgotten = oldest.version

    def discard(self, uid: str) -> None:
        self.known.pop(uid, None)

    def get(self, uid: str) -> Removal:
        return self.known.get(uid, NEVER)

    def check(self, since: int) -> None:
        """Raises ValueError if removals since a mark may have been forgotten."""
        if since < self.forgotten:
            raise ValueError("the mark is too old: take another one and list again")
