//! A pure model of the Kubernetes API server and its own controllers, for pods and ReplicaSets.
//!
//! # Theory of operation
//! One value, [`Cluster`], holds the objects as the JSON that the API writes. Calls ([`Cluster::create`], [`Cluster::delete`], …)
//! answer at once, as kube-apiserver does, with its codes, reasons and words. Everything that takes time in a cluster is a
//! task on a timeline: the scheduler binds pods, kubelets start, ready and stop them, the garbage collector follows owner
//! references, the namespace controller empties namespaces, lost nodes come to their end. [`Cluster::advance`] runs what is
//! due; [`Cluster::next_due`] says when to come back. Every change takes the next resource version, goes into one bounded log
//! per kind, and is read from there by any number of watches without being copied.
//!
//! [`Faults`] makes the model misbehave on purpose: calls are refused or delayed. [`Cluster::drop_watches`] ends
//! watches, and [`Cluster::compact`] compacts the log.
//!
//! **Invariant:** the model never asks the time, draws no randomness but from its seed, and waits for nothing: the same configuration and
//! calls give the same bytes.
//!
//! **Invariant:** versions grow by one with every change of any kind; a change of nothing is no change and no event. Only
//! [`Cluster::put_back`] lowers them.
//!
//! **Invariant:** the list of version v, with the events of a watch from v, equals the list of the version that the watch has reached.
//!
//! Outside on purpose: other kinds and their controllers (a Deployment that owns a ReplicaSet is taken to be there),
//! authentication, admission by webhooks, managed fields, resource requests, pagination, names from `generateName`, defaults and rules
//! that no decision depends on, and field pruning: a field that this model does not know stays.

mod cluster;
mod commit;
mod config;
mod controllers;
mod create;
mod defaults;
mod delete;
mod error;
mod faults;
mod interventions;
mod kind;
mod kubelet;
pub mod manifest;
mod names;
mod node;
mod object;
mod patch;
mod quota;
mod random;
mod requests;
mod selector;
mod state;
mod store;
mod timeline;
mod update;
mod validate;
mod wake;
mod watch;

#[cfg(test)]
mod tests;

pub use cluster::Cluster;
pub use config::{ClusterConfig, Kubelet, NodeLoss};
pub use delete::{DeleteOptions, Deletion, Propagation};
pub use error::ApiError;
pub use faults::{Fault, Faults};
pub use kind::Kind;
pub use object::{Object, is_active, is_ready};
pub use requests::{Requests, Verb};
pub use state::List;
pub use watch::{EventKind, OpenWatches, WatchEvent, WatchId, WatchPoll};
