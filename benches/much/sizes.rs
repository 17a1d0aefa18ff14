//! How much of everything there is, from the environment.

use std::{env, str::FromStr};

use crate::objects::Shape;

/// Returns a shape of so many ReplicaSets of so many pods each, or the part of it that is asked for.
pub(crate) fn shape(replica_sets: usize, pods: usize) -> Shape {
    Shape {
        replica_sets: share(replica_sets),
        pods,
    }
}

/// Returns this number, or the part of it that `DECREE_MUCH_PART` asks for; 1 at least.
pub(crate) fn share(whole: usize) -> usize {
    (whole / number("DECREE_MUCH_PART", 1)).max(1)
}

/// Returns the number that a variable has, or the default.
pub(crate) fn number<T: FromStr>(variable: &str, default: T) -> T {
    let Ok(text) = env::var(variable) else {
        return default;
    };
    let number = text.parse().ok();
    number.unwrap_or_else(|| panic!("{variable}={text:?} is not a number"))
}
