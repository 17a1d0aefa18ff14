"""Keeps N local processes alive, with Decree deciding which to start and which to stop.

The "pods" of this cluster are child processes: the contract does not care what a replica is.

    python keeper.py --server 127.0.0.1:50051 --replicas 3 -- sleep 1000

Each line on standard input is a new number of replicas; the end of the input stops all processes and ends.
The modules below `decree` are generated from `proto/` (see README.md).
"""

import argparse
import itertools
import pathlib
import queue
import subprocess
import sys
import threading
import time
import uuid

import grpc

from decree.v1 import batch_pb2 as batch, decision_service_pb2 as service, decision_service_pb2_grpc as rpc
from decree.v1 import event_pb2 as event, object_pb2 as objects, session_pb2 as session
NAMESPACE, LABELS = "local", {"kept-by": "keeper"}


class Keeper:
    """The whole cluster: one ReplicaSet, its processes, and a version that grows with every change."""

    def __init__(self, replicas, command):
        self.command = command
        self.lock = threading.Lock()
        self.frames = queue.SimpleQueue()
        self.versions = map(str, itertools.count(1))
        self.processes, self.closing, self.uid = {}, False, str(uuid.uuid4())
        self.replica_set = objects.ReplicaSet(
            namespace=NAMESPACE, name="processes", uid=self.uid, resource_version=next(self.versions), generation=1,
            replicas=replicas, selector=objects.LabelSelector(match_labels=LABELS), template_labels=LABELS)

    def run(self, stub, metadata):
        """Runs one session: what the server asks for is done, one frame after the other."""
        for answer in stub.Reconcile(iter(self.open().get, None), metadata=metadata):
            for one in answer.batches.batches:
                self.execute(one)
            if answer.HasField("heartbeat"):
                self.send(heartbeat=session.Heartbeat(last_sequence=answer.sequence))

    def open(self):
        """Says hello and lists both kinds: the server decides nothing before it has seen everything."""
        with self.lock:
            self.frames = queue.SimpleQueue()
            self.send(hello=session.Hello(protocol_min=1, protocol_max=1, agent_instance=self.uid, cluster_uid=self.uid))
            self.list(objects.KIND_REPLICA_SET, replica_sets=[self.replica_set])
            self.list(objects.KIND_POD, pods=[pod for _, pod in self.processes.values()])
            return self.frames

    def list(self, kind, **listed):
        self.send(snapshot_begin=event.SnapshotBegin(kind=kind))
        self.send(snapshot_objects=event.SnapshotObjects(**listed))
        count = sum(map(len, listed.values()))
        self.send(snapshot_end=event.SnapshotEnd(kind=kind, resource_version=next(self.versions), count=count))

    def change(self, **change):
        self.send(events=event.Events(events=[event.Event(**change)]))

    def send(self, **frame):
        self.frames.put(service.ReconcileRequest(**frame))

    def scale(self, replicas):
        with self.lock:
            self.replica_set.replicas = replicas
            self.replica_set.generation += 1
            self.replica_set.resource_version = next(self.versions)
            self.change(replica_set_applied=self.replica_set)

    def execute(self, work):
        """Carries out one batch and reports exactly one outcome for each of its operations."""
        with self.lock:
            # Processes are born with their owner and keep it, so a claim, the fourth action, is never asked for.
            done = [self.start(name) for name in work.create.names] + [self.stop(one) for one in work.delete.victims]
            if work.WhichOneof("action") == "write_status":
                done.append(self.write_status(work.write_status.status))
            outcomes = [batch.Outcome(batch_id=work.id, operation=at, **one) for at, one in enumerate(done)]
            self.send(outcomes=batch.Outcomes(outcomes=outcomes))

    def start(self, name):
        process = subprocess.Popen(self.command)
        pod = objects.Pod(
            namespace=NAMESPACE, name=name, uid=str(uuid.uuid4()), resource_version=next(self.versions), labels=LABELS,
            phase=objects.POD_PHASE_RUNNING, node_name="localhost", ready=objects.ReadyCondition(ready=True),
            controller=objects.OwnerReference(kind="ReplicaSet", name=self.replica_set.name, uid=self.uid))
        self.processes[name] = process, pod
        threading.Thread(target=self.await_end, args=(name, process, pod)).start()
        print(f"started {name} {process.pid}", flush=True)
        return {"done": batch.Done(uid=pod.uid, resource_version=pod.resource_version, pod=pod)}

    def stop(self, victim):
        process, pod = self.processes.get(victim.pod.name, (None, objects.Pod()))
        if pod.uid != victim.pod.uid:
            return {"failed": batch.Failed(**{"class": batch.FAILURE_CLASS_NOT_FOUND})}
        del self.processes[victim.pod.name]
        process.terminate()
        print(f"stopped {victim.pod.name} because {victim.reason.detail}", flush=True)
        return {"done": batch.Done(gone=True, resource_version=next(self.versions))}

    def write_status(self, status):
        self.replica_set.status.CopyFrom(status)
        self.replica_set.resource_version = next(self.versions)
        return {"done": batch.Done(resource_version=self.replica_set.resource_version, replica_set=self.replica_set)}

    def await_end(self, name, process, pod):
        """Waits for a process to end, and tells the server if nobody had asked for it."""
        process.wait()
        with self.lock:
            lost = self.processes.get(name) == (process, pod) and not self.closing
            print("lost" if lost else "ended", name, flush=True)
            if lost:
                del self.processes[name]
                gone = objects.ObjectRef(namespace=NAMESPACE, name=name, uid=pod.uid)
                version = next(self.versions)
                self.change(deleted=event.Deleted(kind=objects.KIND_POD, object=gone, resource_version=version))

    def read_replicas(self):
        for line in sys.stdin:
            self.scale(int(line))
        self.closing = True
        self.frames.put(None)


def connect(flags):
    """Opens the channel: TLS if there is a CA to check the server by, else plain text, which is for this machine only."""
    if not flags.tls_ca:
        return grpc.insecure_channel(flags.server)
    files = [path and pathlib.Path(path).read_bytes() for path in (flags.tls_ca, flags.tls_key, flags.tls_cert)]
    return grpc.secure_channel(flags.server, grpc.ssl_channel_credentials(*files))


def token(path):
    """Returns the metadata that proves who calls. The file is read for each session: a token expires, and its session with it."""
    return [("authorization", f"Bearer {pathlib.Path(path).read_text().strip()}")] if path else []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default="127.0.0.1:50051")
    parser.add_argument("--tls-ca", help="the CA certificates that the server is checked by")
    parser.add_argument("--tls-cert", help="the certificate that proves who this is, with --tls-key")
    parser.add_argument("--tls-key")
    parser.add_argument("--token-file", help="a token that proves who this is")
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("command", nargs="+")
    flags = parser.parse_args()
    keeper = Keeper(flags.replicas, flags.command)
    threading.Thread(target=keeper.read_replicas, daemon=True).start()
    stub = rpc.DecisionServiceStub(connect(flags))
    while not keeper.closing:
        try:
            keeper.run(stub, token(flags.token_file))
        except grpc.RpcError as error:
            print(f"away {error.code().name}", flush=True)
            time.sleep(1)
    for process, _ in list(keeper.processes.values()):
        process.terminate()


if __name__ == "__main__":
    main()
