"""A controller that executes the commands of a test. Each line on standard input is a command; each printed line is a response or an event.

With PUPPET_ASYNC set, its agent is an AsyncAgent.
"""

import asyncio
import logging
import os
import sys
import threading

import grpc

from decree_client import Agent, AsyncAgent, Failure, RefusedError
from decree_client.v1 import batch_pb2 as batches, object_pb2 as objects


class Puppet:
    agent_class: type = Agent

    def __init__(self, address, timeout, per_second, burst, mode, settle):
        self.address = address
        # The behavior of the next creates and deletes, and of `on_synced`.
        self.how, self.released, self.since = {"create": ["make"], "delete": ["remove"], "synced": ["return"]}, threading.Event(), 0
        self.agent = self.agent_class(
            self, "puppet", mode=int(mode), operation_timeout=int(timeout) / 1_000,
            creates_per_second=float(per_second) or None, create_burst=int(burst), settle=int(settle) / 1_000,
            on_synced=self.synced)

    def synced(self):
        say("synced", str(len(self.agent.pods())))
        self.act(*self.how["synced"])

    def create(self, _owner, name):
        (how, *rest), released = self.next("create")
        say("create", name)
        if how == "hang":
            released.wait()
        return self.made(how, rest, name)

    def made(self, how, rest, name):
        if how == "pod":
            return decoded(rest[0], objects.Pod)
        if how == "nothing":
            return None
        if how == "wrong":
            return {"uid": name}
        return self.act(how) or objects.Pod(
            uid=name, node_name="made", phase=objects.POD_PHASE_RUNNING, ready=objects.ReadyCondition(ready=True))

    def delete(self, pod, _reason):
        (how, *_), released = self.next("delete")
        say("delete", pod.name)
        if how == "hang":
            released.wait()
        return pod if how == "begin" else self.act(how)

    def next(self, call):
        """Returns the behavior of a call. After a test sees a call, it can change the behavior of the next one."""
        return self.how[call], self.released

    def act(self, how):
        """Does something other than success."""
        match how:
            case "throw":
                raise ValueError("boom")
            case "mute":
                raise MuteError
            case "exit":
                sys.exit("boom")
            case "async":
                return never_awaited()
            case "no-class":
                raise Failure("none", "no class")
            case "throttled":
                raise Failure(batches.FAILURE_CLASS_THROTTLED, "slow down", retry_after=1.5)
        return None

    def run(self):
        try:
            self.serve()
        except (RefusedError, RuntimeError) as error:
            say("raised", type(error).__name__, str(error))

    def serve(self):
        self.agent.run(grpc.insecure_channel(self.address))
        say("stopped")

    def obey(self, word, rest):
        match word:
            case "create" | "delete" | "synced":
                self.how[word] = rest
            case "release":
                self.released.set()
                self.released = threading.Event()
            case "run":
                self.agent.synced()
                threading.Thread(target=self.run, daemon=True).start()
            case "begin":  # Without a first list.
                threading.Thread(target=self.run, daemon=True).start()
            case "stop":
                self.agent.stop()
            case "apply-replica-set":
                self.agent.apply_replica_set(decoded(rest[0], objects.ReplicaSet))
            case "apply-pod":
                self.agent.apply_pod(decoded(rest[0], objects.Pod))
            case "remove-pod":
                self.agent.remove_pod(rest[0])
            case "mark":
                self.since = self.agent.mark()
            case "sync-pods":
                self.agent.sync_pods([decoded(text, objects.Pod) for text in rest], self.since)
            case "sync-replica-sets":
                self.agent.sync_replica_sets([decoded(text, objects.ReplicaSet) for text in rest], self.since)
            case "pods":
                say("pods", *(f"{pod.name}@{pod.node_name}" for pod in self.agent.pods()))


class AsyncPuppet(Puppet):
    agent_class = AsyncAgent

    async def synced(self):
        await asyncio.sleep(0)
        super().synced()

    async def create(self, _owner, name):
        (how, *rest), released = self.next("create")
        say("create", name)
        if how == "hang":
            await without_end(released)
        return self.made(how, rest, name)

    async def delete(self, pod, _reason):
        (how, *_), released = self.next("delete")
        say("delete", pod.name)
        if how == "hang":
            await without_end(released)
        return pod if how == "begin" else self.act(how)

    def serve(self):
        asyncio.run(self.serve_async())

    async def serve_async(self):
        async with grpc.aio.insecure_channel(self.address) as channel:
            await self.agent.run(channel)
            say("stopped")  # Before the loop waits for calls that hang.


class MuteError(Exception):
    def __str__(self):
        raise ValueError("it has no text")


async def without_end(released):
    """Waits for an event, even when it is cancelled."""
    waiting = asyncio.get_running_loop().run_in_executor(None, released.wait)
    while not waiting.done():
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            pass


async def never_awaited():
    raise AssertionError("nobody awaits this")


def decoded(text, kind):
    return kind.FromString(bytes.fromhex(text))


def say(*words):
    sys.stdout.write(" ".join(words).split("\n", maxsplit=1)[0] + "\n")
    sys.stdout.flush()


class Log(logging.Handler):
    def emit(self, record):
        say("warned" if record.levelno >= logging.WARNING and "session ended" in record.msg else "log", record.getMessage())


logging.getLogger("decree_client").addHandler(Log())
logging.getLogger("decree_client").setLevel(logging.INFO)
puppet = (AsyncPuppet if "PUPPET_ASYNC" in os.environ else Puppet)(*sys.argv[1:])
for line in sys.stdin:
    command, *arguments = line.split()
    try:
        puppet.obey(command, arguments)
        say("ok", command)
    except ValueError as error:
        say("refused", str(error))
