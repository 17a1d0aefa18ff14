//! Tier: a real API server, and the programs of this workspace as processes beside it.
//!
//! All tests share one API server, with a separate namespace each; see [`tests::real`]. If it can neither be found nor built, the
//! tests are skipped with a notice; with `CI` set, they fail.

mod acts;
mod agent;
mod another;
mod audit;
mod beside;
mod budget;
mod busy;
mod check;
mod checked;
mod custom_resource;
mod extended;
mod faults;
mod files;
mod from_nothing;
mod gate;
mod growth;
mod helm;
mod helm_test;
mod instead;
mod kubectl;
mod large;
mod lasting;
mod leading;
mod manifests;
mod metrics;
mod modes;
mod mutants;
mod names;
mod night;
mod objects;
mod permissions;
mod policies;
mod proxies;
mod recording;
mod rendered;
mod restored;
mod roll_out;
mod scenarios;
mod server;
mod shadow;
mod shards;
mod stand;
mod take_over;
mod tokens;
mod workload;
mod writing;
