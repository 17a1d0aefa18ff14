"""Executes one batch: in rounds, with a bound on concurrent calls, and with exactly one outcome for each operation."""

from collections import deque
from typing import TYPE_CHECKING

from decree_client.operations import Adopt, Create, Delete, Operation, Release, WriteStatus
from decree_client.outcomes import guarded, not_started
from decree_client.v1 import batch_pb2 as batches, object_pb2 as objects, session_pb2 as sessions

if TYPE_CHECKING:
    from decree_client.session import Session

# The maximum number of concurrent operations of one batch, so that a batch leaves places to others.
OPERATIONS_MAX = 32
# An unspecified mode means ENFORCE.
ENFORCING = (sessions.MODE_UNSPECIFIED, sessions.MODE_ENFORCE)


class Work:
    """One batch in execution. The Agent's lock guards it."""

    def __init__(self, session: "Session", batch: batches.Batch) -> None:
        self.session, self.batch, self.engine, self.view = session, batch, session.engine, session.engine.view
        self.action = batch.WhichOneof("action")
        self.operations = self.all_operations()
        self.waiting: deque[Operation] = deque()
        # The end of the round, its next size, and how many of its operations have begun without an outcome.
        self.end, self.size, self.running = 0, len(self.operations), 0
        self.has_failed = self.is_starting = False
        if self.action == "create":
            self.size = max(batch.create.slow_start_initial, 1)

    def all_operations(self) -> list[Operation]:
        match self.action:
            case "create":
                return [Create(self, at, name) for at, name in enumerate(self.batch.create.names)]
            case "delete":
                return [Delete(self, at, victim) for at, victim in enumerate(self.batch.delete.victims)]
            case "claim":
                claim = self.batch.claim
                adopts = [Adopt(self, at, one) for at, one in enumerate(claim.adopts)]
                return [*adopts, *(Release(self, at, one) for at, one in enumerate(claim.releases, len(adopts)))]
            case "write_status":
                return [WriteStatus(self, 0, self.batch.write_status.status)]
        return []

    def proceed(self) -> None:
        """Begins operations, and the next round after the end of one. Creates stop after the first round with a failure."""
        if self.is_starting:
            return  # An operation that begins may end at once.
        self.is_starting = True
        while self.running < OPERATIONS_MAX:
            if self.waiting:
                self.running += 1
                self.waiting.popleft().begin()
            elif self.running or not self.next_round():
                break
        self.is_starting = False
        if not self.running and not self.waiting:
            self.session.finished(self)

    def next_round(self) -> bool:
        """Lets the operations of the next round wait for their begin, and returns whether there is one."""
        begin, self.end, self.size = self.end, self.end + self.size, 2 * self.size
        operations = self.operations[begin:self.end]
        if not self.has_failed:
            self.waiting.extend(operations)
            return bool(operations)
        for one in self.operations[begin:]:
            self.report(one, not_started(batches.NOT_STARTED_CAUSE_SLOW_START, "an earlier create failed"))
        return False

    def ended(self, operation: Operation, outcome: batches.Outcome) -> None:
        """Reports the outcome of an operation that has begun."""
        self.running -= 1
        self.has_failed = self.has_failed or outcome.HasField("failed")
        self.report(operation, outcome)
        self.proceed()

    def report(self, operation: Operation, outcome: batches.Outcome) -> None:
        """Sends an outcome, unless the session has ended."""
        if self.engine.session is self.session:
            outcome.batch_id, outcome.operation = self.batch.id, operation.at
            self.session.send_outcome(outcome)

    def refused(self) -> batches.Outcome | None:
        """Returns the reason why no operation of the batch may start, or None."""
        guard, name = self.batch.guard, self.batch.replica_set
        owner = self.view.replica_sets.get(name.uid)
        if not self.session.id or (guard.session_id, guard.epoch) != (self.session.id, self.engine.hello.epoch):
            return guarded("session: the batch is of another session or epoch")
        if self.engine.hello.mode not in ENFORCING or not self.session.is_live():
            return not_started(batches.NOT_STARTED_CAUSE_NOT_ENFORCING, "the agent only watches, or drains")
        if not self.session.is_listed:
            return guarded("view: the agent has listed nothing yet")
        if not owner or (owner.namespace, owner.name) != (name.namespace, name.name):
            return guarded("reference: there is no such ReplicaSet")
        if owner.HasField("deletion_timestamp") and self.action != "write_status":
            return guarded("reference: the ReplicaSet is being deleted")
        return None

    @property
    def owner(self) -> objects.ReplicaSet:
        return self.view.replica_sets[self.batch.replica_set.uid]

    def wanted(self) -> int:
        return self.owner.replicas if self.owner.HasField("replicas") else 1
