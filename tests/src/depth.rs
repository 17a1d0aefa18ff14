//! How much the tests prove: what a change can break, or all that is promised; and from where on, and how often, where somebody says so.
//!
//! `.ci/run` proves the first, and `.ci/run full` the second; its table in CONTRIBUTING.md says what differs.

use std::{env, str::FromStr};

/// Returns whether all is to be proven, for which `DECREE_DEPTH` says `full`.
///
/// # Panics
/// Where it says something else: a word that is not understood must not prove less than was asked for.
#[must_use]
pub fn is_full() -> bool {
    match env::var("DECREE_DEPTH").as_deref() {
        Ok("full") => true,
        Ok("gate") | Err(_) => false,
        Ok(other) => panic!("DECREE_DEPTH is `{other}`: it is `gate` or `full`"),
    }
}

/// Returns whether all worlds are to be simulated: in a full run, by the optimized build that it makes for them. A build for debugging simulates
/// as many as the gate does, as the other one has simulated the rest.
///
/// # Panics
/// As [`is_full`].
#[must_use]
pub fn is_full_for_worlds() -> bool {
    is_full() && !cfg!(debug_assertions)
}

/// Returns the number that a variable of the environment gives, if it is set.
///
/// # Panics
/// Where it is no number.
#[must_use]
pub fn number<N: FromStr>(variable: &str) -> Option<N> {
    let text = env::var(variable).ok()?;
    let number = text.parse().ok();
    Some(number.unwrap_or_else(|| panic!("{variable}={text} is not a number")))
}
