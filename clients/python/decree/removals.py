"""The latest removals. They stop older lists and states from restoring removed objects."""

# The number of removals to remember.
REMOVALS_MAX = 10_000


class Removals:
    """Maps a UID to the version of its removal, and to whether the removal was the outcome of a delete."""

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
        """Returns the version of the removal, or 0."""
        return self.known.get(uid, (0, False))[0]

    def is_answered(self, uid):
        return self.known.get(uid, (0, False))[1]

    def check(self, since):
        """Raises ValueError if removals since a mark may have been forgotten."""
        if since < self.forgotten:
            raise ValueError("the mark is too old: take another one and list again")
