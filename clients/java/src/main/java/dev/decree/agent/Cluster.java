package dev.decree.agent;

import dev.decree.v1.OwnerReference;
import dev.decree.v1.Pod;
import dev.decree.v1.Reason;
import dev.decree.v1.ReplicaSet;
import dev.decree.v1.ReplicaSetStatus;

/**
 * Makes and removes the things that pods stand for. Its methods are called from several threads. A call that takes longer than
 * {@link Limits#operationTimeout} is interrupted and answered with TIMEOUT, and keeps its place until it returns: its name is not asked for again, it counts as
 * being created, and what it does goes into the view then. A {@link Failure} says that the call had no effect; after anything else that is thrown the effect
 * counts as unknown, and the server asks again.
 */
public interface Cluster {
    /**
     * Makes the pod of that name and returns it. What is left empty is filled in: namespace, name, controller, version, the labels of the template and the time
     * of creation. What is not empty must be right, and there must be a uid; else the create has failed with INVALID.
     */
    Pod create(ReplicaSet owner, String name) throws Exception;

    /** Removes exactly that pod, which is identified by its uid, and returns when it is gone. */
    void delete(Pod pod, Reason reason) throws Exception;

    /** Records the controller of a pod; null releases it. As it is here, the view alone has it. */
    default void setController(Pod pod, OwnerReference controller) throws Exception {}

    /** Records the status of a ReplicaSet. As it is here, the view alone has it. */
    default void writeStatus(ReplicaSet replicaSet, ReplicaSetStatus status) throws Exception {}
}
