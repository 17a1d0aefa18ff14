"""Keeps N local processes running. Decree decides which processes to start and which to stop.

    python keeper.py --server 127.0.0.1:50051 --replicas 3 --folder /tmp/kept -- sleep 1000

Each line on standard input is a new number of replicas. When the input ends, the keeper stops all processes and exits.
The processes outlive a keeper that is stopped with SIGTERM or killed. Each process has a file in the folder that is locked while the process runs;
the next keeper finds the process by this file.
"""

import argparse
import contextlib
import fcntl
import logging
import os
import pathlib
import signal
import subprocess
import sys
import threading

import grpc

from decree_client import Agent, Failure
from decree_client.v1 import batch_pb2 as batches, object_pb2 as objects, report_pb2 as reports

LABELS = {"kept-by": "keeper"}
# The process inherits the open file and its lock, so a failed attempt to lock the file shows that the process runs.
# The end of its output shows that the file has the ID.
WRITE_ID = 'echo $$ > "$0"; exec > /dev/null "$@"'


class Keeper:
    """The whole cluster: each process represents a pod."""

    def __init__(self, folder, replicas, command):
        self.folder, self.command, self.ended, self.is_over = folder, command, {}, False
        self.agent = Agent(self, cluster_uid=f"folder:{folder}")
        self.agent.apply_replica_set(objects.ReplicaSet(
            namespace="local", name="processes", uid=str(folder), generation=1, replicas=replicas,
            selector=objects.LabelSelector(match_labels=LABELS), template_labels=LABELS))
        for file in folder.glob("processes-*"):
            self.find(file)
        self.agent.synced()

    def create(self, _owner, name):
        try:
            with open(self.folder / name, "x", encoding="ascii") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                process = subprocess.Popen(  # In its own session, so that Ctrl+C ends only the keeper.
                    ["sh", "-c", WRITE_ID, file.name, *self.command], pass_fds=[file.fileno()],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
                with process.stdout as output:
                    output.read()
        except OSError as error:
            raise Failure(batches.FAILURE_CLASS_UNAVAILABLE, str(error)) from error
        threading.Thread(target=process.wait, daemon=True).start()
        say("started", name, process.pid)
        return self.watch(name)

    def delete(self, pod, reason):
        try:
            process = int((self.folder / pod.name).read_text())
        except (OSError, ValueError) as error:
            raise Failure(batches.FAILURE_CLASS_NOT_FOUND, "no such process") from error
        say("stopped", pod.name, "because", reason.detail)
        for how in (signal.SIGTERM, signal.SIGKILL):
            os.kill(process, how)
            if self.ended[pod.name].wait(5):
                return
        raise TimeoutError("the process does not end")

    def watch(self, name):
        """Returns the pod of a running process, and tells the agent when the process has ended."""
        self.ended[name] = threading.Event()
        threading.Thread(target=self.await_end, args=[name], daemon=True).start()
        return objects.Pod(
            namespace="local", name=name, uid=name, labels=LABELS, phase=objects.POD_PHASE_RUNNING, node_name="localhost",
            ready=objects.ReadyCondition(ready=True),
            controller=objects.OwnerReference(kind="ReplicaSet", name="processes", uid=str(self.folder)))

    def await_end(self, name):
        with open(self.folder / name, encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
        (self.folder / name).unlink()
        say("ended", name)
        self.agent.remove_pod(name)
        self.ended[name].set()

    def find(self, path):
        """Takes over a process of an earlier keeper, if the process still runs."""
        with open(path, encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            except BlockingIOError:
                say("found", path.name)
                self.agent.apply_pod(self.watch(path.name))

    def read_replicas(self):
        for line in sys.stdin:
            self.agent.scale(str(self.folder), int(line))
        self.is_over = True
        self.agent.stop()

    def stop(self, *_signal):
        threading.Thread(target=self.agent.stop).start()  # A signal handler must not wait for locks.


def say(*words):
    """Prints a whole line, even when several threads print."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def connect(flags):
    """Opens the channel: TLS if there is a CA certificate, otherwise plain text, which is only for the local machine."""
    if not flags.tls_ca:
        return grpc.insecure_channel(flags.server)
    files = [path and pathlib.Path(path).read_bytes() for path in (flags.tls_ca, flags.tls_key, flags.tls_cert)]
    return grpc.secure_channel(flags.server, grpc.ssl_channel_credentials(*files))


def token(path):
    """Returns the metadata that authenticates the caller. It reads the file for each session, because a token and its session expire together."""
    return [("authorization", f"Bearer {pathlib.Path(path).read_text(encoding='ascii').strip()}")] if path else []


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default="127.0.0.1:50051")
    parser.add_argument("--tls-ca", help="the CA certificates that the server is checked by")
    parser.add_argument("--tls-cert", help="the certificate that proves who this is, with --tls-key")
    parser.add_argument("--tls-key")
    parser.add_argument("--token-file", help="a token that proves who this is")
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--folder", type=pathlib.Path, default="/tmp/decree-keeper", help="where the processes have their files; its path names the cluster")
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def main():
    flags = parsed()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    flags.folder.mkdir(parents=True, exist_ok=True)
    with open(flags.folder / ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # One keeper at a time.
        keeper = Keeper(flags.folder, flags.replicas, flags.command)
        threading.Thread(target=keeper.read_replicas, daemon=True).start()
        signal.signal(signal.SIGTERM, keeper.stop)
        keeper.agent.run(connect(flags), lambda: token(flags.token_file))
        for pod in keeper.agent.pods() if keeper.is_over else []:
            with contextlib.suppress(Failure):  # It has ended by itself.
                keeper.delete(pod, reports.Reason(detail="the input has ended"))


if __name__ == "__main__":
    main()
