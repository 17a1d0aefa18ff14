//! Tier: a real API server, and the programs of this workspace as processes beside it.
//!
//! All tests share one API server, with a separate namespace each; see [`tests::real`]. If it can neither be found nor built, the
//! tests are skipped with a notice; with `CI` set, they fail.

mod acts;
mod advice;
mod ahead;
mod another;
mod audit;
mod beside;
mod break_glass;
mod budget;
mod busy;
mod check;
mod console;
mod costs;
mod custom_resource;
mod drains;
mod eviction_webhook;
mod evictions;
mod extended;
mod faults;
mod files;
mod gate;
mod growth;
mod helm;
mod helm_test;
mod kubectl;
mod kubelets;
mod lasting;
mod leading;
mod manifests;
mod modes;
mod mutants;
mod objects;
mod permissions;
mod policies;
mod preferences;
mod proxies;
mod read_at_once;
mod recording;
mod rendered;
mod restored;
mod scenarios;
mod take_over;
mod timeouts;
mod tokens;
mod workload;
mod writing;
