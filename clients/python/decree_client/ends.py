"""Why a session ended: how long the agent waits, what it logs, and what no retry changes."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import grpc
from google.rpc import error_details_pb2, status_pb2

from decree_client.failure import RefusedError, text_of

# How long a superseded agent stays away. Without this delay, two agents would end each other's sessions forever.
SUPERSEDED_SECONDS = 60.0
SUPERSEDED = "SESSION_SUPERSEDED"
# Reasons of docs/errors.md that no retry changes: they depend on the agent and the version of the server. A later epoch does not end.
FINAL = {"BURST_UNSUPPORTED", "CAPABILITY_UNSUPPORTED", "EPOCH_TOO_OLD", "INVALID_FIELD", "PROTOCOL_UNSUPPORTED", "UNIMPLEMENTED"}
# Reasons of which each server tells a few in ordinary times.
ORDINARY = {"SERVER_DRAINING"}


class End(NamedTuple):
    """The end of a session. `cause` is the same for all ends with the same cause; `after` is the delay in seconds that the server asks for."""

    cause: str
    text: str
    after: float = 0.0
    is_ordinary: bool = False
    refusal: RefusedError | None = None


def end_of(error: BaseException | None, cause: str, was_welcome: bool) -> End:
    """Returns the end of a session with the error of its stream, or with a cause that the agent found."""
    if cause:
        return End(cause, cause)
    if error is None:
        return End("closed", "the server has closed it", is_ordinary=True)
    if not isinstance(error, grpc.RpcError) or not hasattr(error, "trailing_metadata"):
        return End(type(error).__name__, f"{type(error).__name__}: {text_of(error)}")
    status: Any = error  # A grpc.Call, or an AioRpcError.
    code, details = status.code().name, status.details() or ""
    reason, after = details_of(status.trailing_metadata() or ())
    refusal = RefusedError(reason, details) if reason in FINAL and not was_welcome and not after else None
    if reason == SUPERSEDED:
        details, after = f"another agent of this cluster has taken over; stop one of the two: {details}", max(after, SUPERSEDED_SECONDS)
    elif not reason and code == "UNAVAILABLE":
        details = f"the server cannot be reached: {details}"
    elif not reason and code == "UNIMPLEMENTED":
        details = f"what answers is no decision server: {details}"
    return End(reason or code, f"{code}: {details}", after, reason in ORDINARY, refusal)


def details_of(metadata: Iterable[tuple[str, bytes]]) -> tuple[str, float]:
    """Returns the reason of the server, and the delay in seconds that it asks for. Without them, they are empty."""
    reason, after = "", 0.0
    for key, value in metadata:
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                retry, info = error_details_pb2.RetryInfo(), error_details_pb2.ErrorInfo()
                if detail.Unpack(retry):
                    after = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
                elif detail.Unpack(info) and info.domain == "decree.dev":
                    reason = info.reason
    return reason, after
