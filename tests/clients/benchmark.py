"""Measures what a create costs the agent.

    python benchmark.py SERVER [--things 10000] [--creates 10000] [--asyncio]   the processor time, against a server
    python benchmark.py --lines                                                the executed lines of Python for each create, without a server

The number of lines must not depend on the number of things.
"""

import argparse
import asyncio
import sys
import threading
import time

import grpc

from decree_client import Agent, AsyncAgent
from decree_client.engine import Engine
from decree_client.pace import Pace
from decree_client.session import Session
from decree_client.v1 import batch_pb2 as batches, decision_service_pb2 as service, object_pb2 as objects, session_pb2 as sessions

LABELS = {"app": "bench"}
LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def replica_set(replicas):
    return objects.ReplicaSet(namespace="local", name="bench", uid="bench", generation=1, replicas=replicas,
                              selector=objects.LabelSelector(match_labels=LABELS), template_labels=LABELS)


def pod(name):
    return objects.Pod(namespace="local", name=name, uid=name, labels=LABELS, node_name="here", phase=objects.POD_PHASE_RUNNING,
                       ready=objects.ReadyCondition(ready=True), controller=objects.OwnerReference(kind="ReplicaSet", name="bench", uid="bench"))


def name_of(number):
    letters = ""
    for _ in range(5):
        number, digit = divmod(number, len(LETTERS))
        letters += LETTERS[digit]
    return f"bench-{letters}"


class Things:
    """Counts the creates, and stops the agent after the last one."""

    def __init__(self, creates):
        self.left, self.agent, self.began = creates, None, 0.0

    def create(self, _owner, name):
        self.began = self.began or time.process_time()
        self.left -= 1
        if not self.left:
            self.agent.stop()
        return objects.Pod(uid=name, node_name="here", phase=objects.POD_PHASE_RUNNING, ready=objects.ReadyCondition(ready=True))

    def delete(self, _pod, _reason):
        raise AssertionError("nothing is deleted")


class AsyncThings(Things):
    async def create(self, owner, name):
        return super().create(owner, name)

    async def delete(self, pod, reason):
        super().delete(pod, reason)


def measure(server, things, creates, is_async):
    cluster = (AsyncThings if is_async else Things)(creates)
    agent = cluster.agent = (AsyncAgent if is_async else Agent)(cluster, "bench", creates_per_second=None)
    agent.apply_replica_set(replica_set(things + creates))
    for number in range(things):
        agent.apply_pod(pod(name_of(number)))
    agent.synced()
    started = count_threads()
    if is_async:
        asyncio.run(serve(agent, server))
    else:
        agent.run(grpc.insecure_channel(server))
    seconds = time.process_time() - cluster.began
    print(f"creates {creates - cluster.left} threads {len(started)} seconds {seconds:.2f} milliseconds-a-create {1_000 * seconds / creates:.3f}")


async def serve(agent, server):
    async with grpc.aio.insecure_channel(server) as channel:
        await agent.run(channel)


def count_threads():
    """Returns a list to which each thread that starts is added."""
    started, start = [], threading.Thread.start

    def counted(thread):
        started.append(thread.name)
        start(thread)

    threading.Thread.start = counted
    return started


def lines_of(things, creates):
    """Returns the lines that a create executes, by the rules alone: without threads, a server or time."""
    cluster = Things(creates + 1)
    engine = Engine(cluster, sessions.Hello(), operation_timeout=20.0, pace=Pace(None, 1), settle=60.0, calls_max=100, clock=lambda: 0.0)
    engine.start_call = lambda operation: operation.returned(operation.call(), None)
    engine.view.apply_replica_set(replica_set(things + creates))
    for number in range(things):
        engine.view.apply_pod(pod(name_of(number)))
    engine.synced()
    session = Session(engine)
    session.open()
    session.receive(service.ReconcileResponse(sequence=1, welcome=sessions.Welcome(session_id="bench")))
    names = [name_of(things + number) for number in range(creates)]
    batch = batches.Batch(id=1, replica_set=objects.ObjectRef(namespace="local", name="bench", uid="bench"), guard=batches.Guard(session_id="bench"),
                          create=batches.Create(names=names, slow_start_initial=creates))
    frame = service.ReconcileResponse(sequence=2, batches=batches.Batches(batches=[batch]))
    lines = 0

    def count(_frame, event, _value):
        nonlocal lines
        lines += event == "line"
        return count

    sys.settrace(count)
    session.receive(frame)
    sys.settrace(None)
    assert len(engine.view.pods) == things + creates
    return lines // creates


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("server", nargs="?")
    parser.add_argument("--things", type=int, default=10_000)
    parser.add_argument("--creates", type=int, default=10_000)
    parser.add_argument("--asyncio", action="store_true")
    parser.add_argument("--lines", action="store_true")
    flags = parser.parse_args()
    if flags.lines:
        print("lines-a-create", lines_of(100, 100), lines_of(10_000, 100))
    elif flags.server:
        measure(flags.server, flags.things, flags.creates, flags.asyncio)
    else:
        parser.error("name a server")


if __name__ == "__main__":
    main()
