"""A controller that executes the commands of a test. Each line on standard input is a command; each printed line is a response or an event."""

import logging
import sys
import threading

import grpc

from decree import Agent, Failure
from decree.v1 import batch_pb2 as batches, object_pb2 as objects


class Puppet:
    def __init__(self, address, timeout, per_second, burst, mode):
        self.channel = grpc.insecure_channel(address)
        # The behavior of the next creates and deletes.
        self.how, self.released, self.since = {"create": ["make"], "delete": ["remove"]}, threading.Event(), 0
        self.agent = Agent(self, "puppet", mode=int(mode), operation_timeout=int(timeout) / 1_000,
                           creates_per_second=float(per_second) or None, create_burst=int(burst))

    def create(self, _owner, name):
        (how, *rest), released = self.next("create")
        say("create", name)
        if how == "pod":
            return decoded(rest[0], objects.Pod)
        if how == "nothing":
            return None
        if how == "wrong":
            return {"uid": name}
        return self.act(how, released) or objects.Pod(
            uid=name, node_name="made", phase=objects.POD_PHASE_RUNNING, ready=objects.ReadyCondition(ready=True))

    def delete(self, pod, _reason):
        (how, *_), released = self.next("delete")
        say("delete", pod.name)
        return self.act(how, released)

    def next(self, call):
        """Returns the behavior of a call. After a test sees a call, it can change the behavior of the next one."""
        return self.how[call], self.released

    def act(self, how, released):
        """Does something other than success."""
        match how:
            case "throw":
                raise ValueError("boom")
            case "exit":
                sys.exit("boom")
            case "async":
                return never_awaited()
            case "hang":
                released.wait()
            case "throttled":
                raise Failure(batches.FAILURE_CLASS_THROTTLED, "slow down", retry_after=1.5)
        return None

    def run(self):
        self.agent.run(self.channel)
        say("stopped")

    def obey(self, word, rest):
        match word:
            case "create" | "delete":
                self.how[word] = rest
            case "release":
                self.released.set()
                self.released = threading.Event()
            case "run":
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
                say("pods", *sorted(f"{pod.name}@{pod.node_name}" for pod in self.agent.pods.values()))


async def never_awaited():
    raise AssertionError("nobody awaits this")


def decoded(text, kind):
    return kind.FromString(bytes.fromhex(text))


def say(*words):
    sys.stdout.write(" ".join(words).split("\n", maxsplit=1)[0] + "\n")
    sys.stdout.flush()


class Log(logging.Handler):
    def emit(self, record):
        say("log", record.getMessage())


logging.getLogger("decree").addHandler(Log())
logging.getLogger("decree").setLevel(logging.INFO)
puppet = Puppet(*sys.argv[1:])
for line in sys.stdin:
    command, *arguments = line.split()
    try:
        puppet.obey(command, arguments)
        say("ok", command)
    except ValueError as error:
        say("refused", str(error))
