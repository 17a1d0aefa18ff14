//! The flags of `decree top`.

use std::time::Duration;

use clap::{Args as Group, ValueEnum};

use super::{
    number,
    query::{InspectionArgs, ScopeArgs},
};
use crate::format::PrintArgs;

/// A shorter interval costs the server more than it shows.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

#[derive(Debug, Group)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// Count for one interval, print, and exit; formats for programs do so without it
    #[arg(long)]
    pub(crate) once: bool,
    /// For how long decisions are counted until they are shown
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = interval)]
    pub(crate) interval: Duration,
    /// Which ReplicaSets come first: most decisions or operations a second, most in flight, or longest unconverged
    #[arg(long, value_enum, default_value_t)]
    pub(crate) sort_by: Order,
    /// How many ReplicaSets are printed; on a terminal, as many as fit
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = number::at_least::<usize, 0>)]
    pub(crate) rows: usize,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) inspection: InspectionArgs,
}

/// Which ReplicaSets come first. Those that are equal in it are in the order of the others, and then of their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// Those with the most decisions a second
    #[default]
    Decisions,
    /// Those with the most operations a second
    Operations,
    /// Those with the most operations in flight
    InFlight,
    /// Those that have not converged for the longest time
    Unconverged,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = runtime::config::duration(text)?;
    (interval >= INTERVAL_MIN)
        .then_some(interval)
        .ok_or_else(|| "must be 100ms or longer".to_owned())
}
