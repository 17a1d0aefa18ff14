//! Tier: a real API server, and the programs of this workspace as processes beside it.
//!
//! All tests share one API server and keep to a namespace each; see [`tests::real`]. Where it can be neither found nor built, they
//! say so and are skipped; with `CI` set that is a failure.

mod acts;
mod agent;
mod another;
mod audit;
mod believed;
mod beside;
mod budget;
mod check;
mod checked;
mod custom_resource;
mod extended;
mod faults;
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
mod standby;
mod tokens;
mod workload;
mod writing;
