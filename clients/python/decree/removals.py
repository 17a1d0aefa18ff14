"""The latest removals, which keep lists and states that began before them from bringing back what is gone."""

# How many are remembered.
REMOVALS_MAX = 10_000


class Removals:
    """Says by uid at which version something was removed, and whether a delete of ours was answered so."""

    def __init__(self):
        self.known, self.forgotten = {}, 0

    def add(self, uid, version, answered=False):
        self.known.pop(uid, None)
        self.known[uid] = (version, answered)
        if len(self.known) > REMOVALS_MAX:
            self.forgotten, _ = self.known.pop(next(iter(self.known)))

    def discard(self, uid):
        self.known.pop(uid, None)

    def version(self, uid):
        """Returns when it was removed, or 0."""
        return self.known.get(uid, (0, False))[0]

    def is_answered(self, uid):
        return self.known.get(uid, (0, False))[1]

    def check(self, since):
        """Raises ValueError where removals since a mark may have been forgotten."""
        if since < self.forgotten:
            raise ValueError("the mark is too old: take another one and list again")
