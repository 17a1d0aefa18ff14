"""Errors of the controller and of the server, and the outcomes of failed operations."""

import logging

from decree_client.v1 import batch_pb2 as batches

logger = logging.getLogger("decree_client")


class Failure(Exception):
    """Says that an operation had no effect, by a class of `decree_client.v1.batch_pb2.FailureClass` and a message for people.

    `retry_after` is the delay in seconds before the next attempt, for the class THROTTLED.
    """

    def __init__(self, kind: "batches.FailureClass", message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind, self.message, self.retry_after = kind, message, retry_after


class UnstartedError(Failure):
    """The method of the cluster is async or a generator function, so that its call has done nothing."""


class RefusedError(Exception):
    """The server refuses the agent for a reason that no retry can change, such as an invalid `cluster_uid` or a later epoch.

    `reason` is one of docs/errors.md.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason, self.message = reason, message


def failed(error: BaseException) -> batches.Outcome:
    """Returns the outcome of an error. If the error is not a `Failure`, the effect of the call is unknown."""
    try:
        if isinstance(error, Failure):
            return with_class(error.kind, error.message, error.retry_after)
    except Exception as fault:  # pylint: disable=broad-except  # Such as a class that is none: protobuf does not take it.
        say(logging.WARNING, "the failure %s is invalid: %s", text_of(error), text_of(fault))
        error = fault
    return with_class(batches.FAILURE_CLASS_TIMEOUT, f"{type(error).__name__}: {text_of(error)}")


def with_class(kind: "batches.FailureClass", message: str, retry_after: float | None = None) -> batches.Outcome:
    outcome = batches.Failed(failure_class=kind, message=utf8(str(message)))
    if retry_after:
        outcome.retry_after.FromMilliseconds(int(retry_after * 1_000))
    return batches.Outcome(failed=outcome)


def text_of(error: BaseException) -> str:
    """Returns the text of an error, even of one that has none: the code of a controller may raise anything."""
    try:
        return str(error)
    except Exception:  # pylint: disable=broad-except
        return "it has no text"


def utf8(text: str) -> str:
    """Replaces characters that file names can contain and protobuf does not accept."""
    return text.encode(errors="replace").decode()


def say(level: int, text: str, *words: object, error: BaseException | None = None) -> None:
    """Writes a line of the log. A handler that raises must not keep an operation from its outcome."""
    try:
        logger.log(level, text, *words, exc_info=error)
    except Exception:  # pylint: disable=broad-except
        pass
