//! The sizes of the load, from the environment.

use std::{env, str::FromStr};

use crate::objects::Shape;

/// The shape of `replica_sets` ReplicaSets with `pods` pods each, or the part of it in `DECREE_MUCH_PART`.
pub(crate) fn shape(replica_sets: usize, pods: usize) -> Shape {
    Shape {
        replica_sets: share(replica_sets),
        pods,
    }
}

/// The part of this number in `DECREE_MUCH_PART`, at least 1.
pub(crate) fn share(whole: usize) -> usize {
    (whole / number("DECREE_MUCH_PART", 1)).max(1)
}

/// The number in a variable, or the default.
pub(crate) fn number<T: FromStr>(variable: &str, default: T) -> T {
    let Ok(text) = env::var(variable) else {
        return default;
    };
    let number = text.parse().ok();
    number.unwrap_or_else(|| panic!("{variable}={text:?} is not a number"))
}
