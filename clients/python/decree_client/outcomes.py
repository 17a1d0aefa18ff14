"""The outcomes of operations, without the numbers of their batches."""

from decree_client.failure import with_class as failed_with
from decree_client.v1 import batch_pb2 as batches, object_pb2 as objects

__all__ = ["done_gone", "done_pod", "done_set", "failed_with", "guarded", "not_started"]


def done_pod(pod: objects.Pod, *, already_existed: bool = False) -> batches.Outcome:
    return batches.Outcome(done=batches.Done(uid=pod.uid, resource_version=pod.resource_version, pod=pod, already_existed=already_existed))


def done_set(one: objects.ReplicaSet) -> batches.Outcome:
    return batches.Outcome(done=batches.Done(uid=one.uid, resource_version=one.resource_version, replica_set=one))


def done_gone(uid: str, version: int) -> batches.Outcome:
    return batches.Outcome(done=batches.Done(uid=uid, resource_version=str(version), gone=True))


def guarded(message: str) -> batches.Outcome:
    return not_started(batches.NOT_STARTED_CAUSE_GUARD, message)


def not_started(cause: "batches.NotStartedCause", message: str) -> batches.Outcome:
    return batches.Outcome(not_started=batches.NotStarted(cause=cause, message=message))
