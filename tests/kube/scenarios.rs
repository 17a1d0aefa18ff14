//! What upstream's own integration tests say of a ReplicaSet controller, each told anew.
//!
//! No kubelet runs: where a pod has to run, be ready or stop, the test says so in its place.
//!
//! Upstream runs two scenarios with a gate of kube-controller-manager switched off as well. They do not apply here, as nothing in
//! Decree can be switched so: the cost of deletion always counts, and the pods that terminate are always counted. What does apply
//! is an API server whose own gate is off: see `status`.

mod adoption;
mod lifecycle;
mod scaling;
mod status;
mod victims;
