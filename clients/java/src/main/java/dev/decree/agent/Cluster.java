package dev.decree.agent;

import dev.decree.v1.OwnerReference;
import dev.decree.v1.Pod;
import dev.decree.v1.Reason;
import dev.decree.v1.ReplicaSet;
import dev.decree.v1.ReplicaSetStatus;

/**
 * Makes and removes the things that pods stand for. Its methods are called from several threads, and a new session begins only when all have returned, so they
 * must return in time. A {@link Failure} says that the call had no effect; after any other exception the effect counts as unknown, and the server asks again.
 */
public interface Cluster {
    /**
     * Makes the pod of that name and returns it. What is left empty is filled in: namespace, name, controller, version, the labels of the template and the time
     * of creation.
     */
    Pod create(ReplicaSet owner, String name) throws Exception;

    /** Removes exactly that pod, which is identified by its uid, and returns when it is gone. */
    void delete(Pod pod, Reason reason) throws Exception;

    /** Records the controller of a pod; null releases it. As it is here, the view alone has it. */
    default void setController(Pod pod, OwnerReference controller) throws Exception {}

    /** Records the status of a ReplicaSet. As it is here, the view alone has it. */
    default void writeStatus(ReplicaSet replicaSet, ReplicaSetStatus status) throws Exception {}
}
