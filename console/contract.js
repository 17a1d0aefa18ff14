// The fields of the contract that the page reads in recordings. A test of the server compares them with the contract: each line is JSON.

/** By message: the name of each field, its number, its type, and 1 if it is repeated. */
export const MESSAGES = {
  "Header": {"server_version": [1, "string"], "session_id": [2, "string"], "wall_nanos": [4, "number"], "hello": [6, "ReconcileRequest"]},
  "Record": {"elapsed_nanos": [1, "number"], "drift_nanos": [2, "zigzag"], "frame": [3, "ReconcileRequest"], "timeout": [4, "Timeout"], "drain": [5, "recording.Drain"], "closed": [6, "Closed"], "poll": [7, "Poll"], "end": [8, "End"], "more": [9, "bool"]},
  "Timeout": {},
  "recording.Drain": {},
  "Closed": {},
  "Poll": {"frame": [1, "ReconcileResponse"]},
  "End": {"reason": [1, "number"], "session_end": [2, "string"]},
  "ReconcileRequest": {"sequence": [1, "number"], "hello": [2, "Hello"], "snapshot_begin": [3, "SnapshotBegin"], "snapshot_objects": [4, "SnapshotObjects"], "snapshot_end": [5, "SnapshotEnd"], "events": [6, "Events"], "outcomes": [7, "Outcomes"], "heartbeat": [8, "Heartbeat"]},
  "ReconcileResponse": {"sequence": [1, "number"], "welcome": [2, "Welcome"], "batches": [3, "Batches"], "resync": [4, "Resync"], "drain": [5, "Drain"], "heartbeat": [6, "Heartbeat"], "rejection": [7, "Rejection"]},
  "Hello": {"agent_instance": [4, "string"], "cluster_uid": [5, "string"], "cluster_name": [6, "string"], "shard": [7, "string"], "epoch": [8, "number"], "mode": [9, "number"]},
  "Welcome": {"session_id": [2, "string"], "server_version": [5, "string"]},
  "Heartbeat": {},
  "Resync": {"kind": [1, "number"], "cause": [2, "string"]},
  "Drain": {},
  "Rejection": {"kind": [1, "number"], "object": [2, "ObjectRef"], "violations": [3, "FieldViolation", 1]},
  "FieldViolation": {"field": [1, "string"], "description": [2, "string"]},
  "SnapshotBegin": {"kind": [1, "number"]},
  "SnapshotObjects": {"pods": [1, "Pod", 1], "replica_sets": [2, "ReplicaSet", 1]},
  "SnapshotEnd": {"kind": [1, "number"], "count": [3, "number"]},
  "Events": {"events": [1, "Event", 1]},
  "Event": {"pod_applied": [1, "Pod"], "replica_set_applied": [2, "ReplicaSet"], "deleted": [3, "Deleted"], "bookmark": [4, "Bookmark"], "traceparent": [5, "string"]},
  "Deleted": {"kind": [1, "number"], "object": [2, "ObjectRef"]},
  "Bookmark": {"kind": [1, "number"]},
  "Batches": {"batches": [1, "Batch", 1]},
  "Batch": {"id": [1, "number"], "replica_set": [2, "ObjectRef"], "create": [7, "Create"], "delete": [8, "Delete"], "claim": [9, "Claim"], "write_status": [10, "WriteStatus"], "reasons": [11, "Reason", 1]},
  "Create": {"names": [1, "string", 1]},
  "Delete": {"victims": [1, "Victim", 1]},
  "Victim": {"pod": [1, "ObjectRef"], "reason": [3, "Reason"]},
  "Claim": {"adopts": [1, "ObjectRef", 1], "releases": [2, "ObjectRef", 1]},
  "WriteStatus": {"status": [1, "ReplicaSetStatus"]},
  "Outcomes": {"outcomes": [1, "Outcome", 1]},
  "Outcome": {"batch_id": [1, "number"], "operation": [2, "number"], "done": [3, "Done"], "failed": [4, "Failed"], "not_started": [5, "NotStarted"], "traceparent": [6, "string"]},
  "Done": {"pod": [3, "Pod"], "replica_set": [4, "ReplicaSet"], "gone": [5, "bool"]},
  "Failed": {"class": [1, "number"], "message": [2, "string"]},
  "NotStarted": {"cause": [1, "number"], "message": [2, "string"]},
  "Reason": {"rule": [1, "number"], "detail": [2, "string"]},
  "ObjectRef": {"namespace": [1, "string"], "name": [2, "string"], "uid": [3, "string"]},
  "OwnerReference": {"uid": [4, "string"]},
  "ReadyCondition": {"ready": [1, "bool"]},
  "Timestamp": {},
  "Pod": {"namespace": [1, "string"], "name": [2, "string"], "uid": [3, "string"], "resource_version": [4, "string"], "controller": [6, "OwnerReference"], "deleted": [8, "Timestamp"], "node_name": [9, "string"], "phase": [10, "number"], "ready": [11, "ReadyCondition"]},
  "ReplicaSet": {"namespace": [1, "string"], "name": [2, "string"], "uid": [3, "string"], "resource_version": [4, "string"], "deleted": [6, "Timestamp"], "replicas": [8, "number"], "status": [12, "ReplicaSetStatus"]},
  "ReplicaSetStatus": {"replicas": [1, "number"], "ready_replicas": [3, "number"], "available_replicas": [4, "number"]}
};

/** Values of enums by number. */
export const ENUMS = {
  "Mode": ["UNSPECIFIED", "ENFORCE", "SHADOW", "DRY_RUN"],
  "Kind": ["UNSPECIFIED", "POD", "REPLICA_SET"],
  "PodPhase": ["UNSPECIFIED", "PENDING", "UNKNOWN", "RUNNING", "SUCCEEDED", "FAILED"],
  "FailureClass": ["UNSPECIFIED", "NAME_TAKEN", "NOT_FOUND", "PRECONDITION", "FORBIDDEN", "QUOTA", "NAMESPACE_TERMINATING", "INVALID", "CONFLICT", "TIMEOUT", "THROTTLED", "UNAVAILABLE", "OWNER_CHANGED"],
  "NotStartedCause": ["UNSPECIFIED", "SLOW_START", "GUARD", "NOT_ENFORCING"],
  "Rule": ["UNSPECIFIED", "TOO_FEW_REPLICAS", "TOO_MANY_REPLICAS", "ALL_GO", "UNASSIGNED", "PHASE", "NOT_READY", "DELETION_COST", "CROWDED_NODE", "READY_RECENTLY", "RESTARTS", "CREATED_RECENTLY", "UID", "ORPHAN_MATCHES", "NO_LONGER_MATCHES", "STATUS_DIFFERS", "IN_SYNC", "BATCH_IN_FLIGHT", "VIEW_OLDER_THAN_WRITE", "PARTIAL_VIEW", "BACKOFF", "AVAILABILITY_CHECK", "BEING_DELETED", "QUARANTINED", "NAMESPACE_TERMINATING", "BURST_LIMITED", "REFUSED_BY_AGENT", "THROTTLED", "PODS_DO_NOT_LAST"],
  "EndReason": ["UNSPECIFIED", "SESSION", "FULL", "BEHIND", "FAILED"]
};
