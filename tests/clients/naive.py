"""An agent written from the .proto files alone: it lists, executes and reports, and ignores all other rules of docs/protocol.md.

The conformance kit must find its faults.
"""

import itertools
import pathlib
import queue
import sys
import time

import grpc

from decree_client.v1 import batch_pb2 as batches, decision_service_pb2 as service, decision_service_pb2_grpc as services
from decree_client.v1 import event_pb2 as events, object_pb2 as objects, session_pb2 as sessions

ADDRESS, REPLICAS, FOLDER = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
SET = objects.ReplicaSet(namespace="local", name="files", uid="files", resource_version="1", generation=1, replicas=REPLICAS,
                         selector=objects.LabelSelector())
CONTROLLER = objects.OwnerReference(kind="ReplicaSet", name="files", uid="files")
versions, uids = map(str, itertools.count(2)), itertools.count(1)


def pod(name):
    uid = (FOLDER / name).read_text(encoding="ascii")
    return objects.Pod(namespace="local", name=name, uid=uid, resource_version=next(versions), controller=CONTROLLER)


def create(name):
    (FOLDER / name).write_text(f"{name}-{next(uids)}", encoding="ascii")
    made = pod(name)
    return {"done": batches.Done(uid=made.uid, resource_version=made.resource_version, pod=made)}


def delete(victim):
    (FOLDER / victim.pod.name).unlink()
    return {"done": batches.Done(resource_version=next(versions), gone=True)}


def write_status(status):
    SET.status.CopyFrom(status)
    SET.resource_version = next(versions)
    return {"done": batches.Done(resource_version=SET.resource_version, replica_set=SET)}


def opening():
    yield {"hello": sessions.Hello(protocol_min=1, protocol_max=1, agent_instance="naive", cluster_uid="naive")}
    pods = [pod(file.name) for file in FOLDER.iterdir()]
    for kind, listed in ((objects.KIND_REPLICA_SET, {"replica_sets": [SET]}), (objects.KIND_POD, {"pods": pods})):
        yield {"snapshot_begin": events.SnapshotBegin(kind=kind)}
        yield {"snapshot_objects": events.SnapshotObjects(**listed)}
        count = len(next(iter(listed.values())))
        yield {"snapshot_end": events.SnapshotEnd(kind=kind, resource_version=next(versions), count=count)}


def run(stub):
    frames = queue.SimpleQueue()
    for frame in opening():
        frames.put(service.ReconcileRequest(**frame))
    for answer in stub.Reconcile(iter(frames.get, None)):
        for batch in answer.batches.batches:
            done = [create(name) for name in batch.create.names] + [delete(victim) for victim in batch.delete.victims]
            if batch.HasField("write_status"):
                done.append(write_status(batch.write_status.status))
            outcomes = [batches.Outcome(batch_id=batch.id, operation=at, **one) for at, one in enumerate(done)]
            frames.put(service.ReconcileRequest(outcomes=batches.Outcomes(outcomes=outcomes)))


while True:
    try:
        run(services.DecisionServiceStub(grpc.insecure_channel(ADDRESS)))
    except grpc.RpcError:
        time.sleep(0.1)
