//! Pods of ReplicaSets that another controller creates: two controllers that act on one ReplicaSet undo what the other does.
//!
//! A user who may create pods in a namespace can give them any owner, and feign another controller. So such a pod holds its ReplicaSet and
//! no other, and only if both are in the same namespace.

use decree::v1;

use crate::api::object_ref;

/// The longest name of a writer in Kubernetes; longer names are cut.
const WRITER_BYTES_MAX: usize = 128;

/// A pod of a ReplicaSet that another controller created while the agent executes decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodOfOther {
    /// The ReplicaSet.
    pub replica_set: v1::ObjectRef,
    /// The name of the pod.
    pub pod: String,
    /// The pod's creator, as its managed fields name it.
    pub writer: String,
}

impl PodOfOther {
    pub(crate) fn new(set: &v1::ReplicaSet, pod: &v1::Pod, writer: &str) -> Self {
        Self {
            replica_set: object_ref(set),
            pod: pod.name.clone(),
            writer: writer[..writer.floor_char_boundary(WRITER_BYTES_MAX)].to_owned(),
        }
    }
}
