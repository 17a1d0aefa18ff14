//! The depth of the tests: what a change can break, or everything that the project promises; and the seeds and numbers of runs,
//! if a variable sets them.
//!
//! `.ci/run` runs the former, and `.ci/run full` the latter; its table in CONTRIBUTING.md has the differences.

use std::{env, str::FromStr};

use crate::tools;

/// Returns whether the tests run at full depth, with `DECREE_DEPTH=full`.
///
/// # Panics
/// If the variable has another value: an unknown value must not reduce the depth.
pub fn is_full() -> bool {
    match env::var("DECREE_DEPTH").as_deref() {
        Ok("full") => true,
        Ok("gate") | Err(_) => false,
        Ok(other) => panic!("DECREE_DEPTH is `{other}`: it is `gate` or `full`"),
    }
}

/// Returns whether the tests run at full depth. If not, a notice says what a full run does more.
///
/// # Panics
/// As [`is_full`].
pub fn is_full_or_told(more: &str) -> bool {
    let is_full = is_full();
    if !is_full {
        tools::notice(&format!("notice: {more} with DECREE_DEPTH=full alone"));
    }
    is_full
}

/// Returns whether all worlds are simulated: in a full run, by its optimized build. A debug build simulates as many worlds as the
/// gate does, because the optimized build simulates the rest.
///
/// # Panics
/// As [`is_full`].
pub fn is_full_for_worlds() -> bool {
    is_full() && !cfg!(debug_assertions)
}

/// Returns the number in an environment variable, if it is set.
///
/// # Panics
/// If the value is not a number.
pub fn number<N: FromStr>(variable: &str) -> Option<N> {
    let text = env::var(variable).ok()?;
    let number = text.parse().ok();
    Some(number.unwrap_or_else(|| panic!("{variable}={text} is not a number")))
}
