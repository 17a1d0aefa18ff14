//! The requirements of upstream's own integration tests for a ReplicaSet controller, each written anew.
//!
//! No kubelet runs: if a pod must run, be ready or stop, the test acts as its kubelet.
//!
//! Upstream runs two scenarios also with a gate of kube-controller-manager turned off. They do not apply here, because Decree has
//! no such gates: the cost of deletion always counts, and terminating pods are always counted. An API server with its own gate
//! off does apply: see `status`.

mod adoption;
mod lifecycle;
mod scaling;
mod status;
mod victims;
