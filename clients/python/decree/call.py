"""Makes one call of the cluster. Every call has exactly one outcome."""

import inspect
import logging
import threading

from decree.v1 import batch_pb2 as batches

logger = logging.getLogger("decree")


class Failure(Exception):
    """Says that an operation had no effect, by a class of `decree.v1.batch_pb2.FailureClass` and a message for people.

    `retry_after` is the delay in seconds before the next attempt, for the class THROTTLED.
    """

    def __init__(self, kind, message, *, retry_after=None):
        super().__init__(message)
        self.kind, self.message, self.retry_after = kind, message, retry_after


class Call(threading.Thread):
    """A call on a separate thread, which does not keep the process alive."""

    def __init__(self, what, method, *arguments):
        super().__init__(daemon=True)
        self.what, self.method, self.arguments = what, method, arguments
        self.returned, self.error = None, None

    def run(self):
        try:
            self.returned = self.method(*self.arguments)
            if is_unstarted(self.returned):
                if inspect.iscoroutine(self.returned):
                    self.returned.close()
                raise Failure(batches.FAILURE_CLASS_INVALID, f"{self.what} returned a {type(self.returned).__name__}: it must be an ordinary function")
        except BaseException as error:  # pylint: disable=broad-except  # Whatever it is, the operation has an outcome.
            self.error = error

    def outcome(self, finish):
        """Returns the outcome: the result of `finish` for a returned value, or the failure. The Agent is locked."""
        try:
            return failed(self.error) if self.error else finish(self.returned)
        except Exception as error:  # pylint: disable=broad-except  # Such as a class that is none: protobuf does not take it.
            logger.warning("%s failed", self.what, exc_info=error)
            return failed(error)

    def tell(self, target):
        """Logs the failure of the call, unless the failure is a `Failure`: any other error is a fault of the controller."""
        if self.error and (not isinstance(self.error, Failure) or is_unstarted(self.returned)):
            logger.warning("%s of %s/%s failed: %s", self.what, target.namespace, target.name, self.error, exc_info=self.error)


def is_unstarted(returned):
    """Returns whether a function is async or a generator, so that its call has done nothing yet."""
    return inspect.isawaitable(returned) or inspect.isgenerator(returned) or inspect.isasyncgen(returned)


def failed(error):
    """Returns the outcome of an error. If the error is not a `Failure`, the effect of the call is unknown."""
    if not isinstance(error, Failure):
        text = f"{type(error).__name__}: {error}"
        return {"failed": batches.Failed(**{"class": batches.FAILURE_CLASS_TIMEOUT, "message": utf8(text)})}
    outcome = batches.Failed(**{"class": error.kind, "message": utf8(str(error.message))})
    if error.retry_after:
        outcome.retry_after.FromMilliseconds(int(error.retry_after * 1_000))
    return {"failed": outcome}


def utf8(text):
    """Replaces characters that file names can contain and protobuf does not accept."""
    return text.encode(errors="replace").decode()
