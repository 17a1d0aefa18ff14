package dev.decree.agent;

import dev.decree.v1.OwnerReference;
import dev.decree.v1.Pod;
import dev.decree.v1.Reason;
import dev.decree.v1.ReplicaSet;
import dev.decree.v1.ReplicaSetStatus;

/**
 * Creates and removes the things that pods represent. The Agent calls its methods from several threads. A call that takes longer than
 * {@link Limits#operationTimeout} is interrupted, and its outcome is TIMEOUT. Until that call returns, its name is not requested again, its pod counts as
 * being created, and its effect enters the view when it returns. A {@link Failure} says that the call had no effect. After any other exception the effect
 * is unknown, and the server retries.
 */
public interface Cluster {
    /**
     * Creates the pod with this name and returns it. The Agent fills in empty fields: namespace, name, controller, version, the labels of the template and
     * the creation time. Other fields must be correct, and the UID is required; otherwise the create fails with INVALID.
     */
    Pod create(ReplicaSet owner, String name) throws Exception;

    /** Removes exactly this pod, identified by its UID, and returns when the pod is gone. */
    void delete(Pod pod, Reason reason) throws Exception;

    /** Records the controller of a pod; null releases the pod. By default, only the view contains the controller. */
    default void setController(Pod pod, OwnerReference controller) throws Exception {}

    /** Records the status of a ReplicaSet. By default, only the view contains the status. */
    default void writeStatus(ReplicaSet replicaSet, ReplicaSetStatus status) throws Exception {}
}
