//! The words for differences.

use std::time::Duration;

use decree::v1::{self, Departure, Difference};
use server_core::wording::count;

use crate::age;

/// The word for the explanation of a difference.
pub(super) const fn departure(departure: Departure) -> &'static str {
    match departure {
        Departure::Unspecified => "<none>",
        Departure::OrderOfDeletion => "OrderOfDeletion",
        Departure::ReplicaFailure => "ReplicaFailure",
        Departure::NamespaceEnding => "NamespaceEnding",
        Departure::DeletedByOthers => "DeletedByOthers",
    }
}

pub(super) const fn subject(subject: v1::Subject) -> &'static str {
    match subject {
        v1::Subject::Unspecified => "Unknown",
        v1::Subject::Count => "Count",
        v1::Subject::Victims => "Victims",
        v1::Subject::Status => "Status",
        v1::Subject::Adoption => "Adoption",
    }
}

/// Whether nothing explains a difference.
pub(super) fn is_unexplained(difference: &Difference) -> bool {
    difference.departure() == Departure::Unspecified
}

/// The differences that nothing explains, and the others.
pub(super) fn parts(answer: &v1::ListDifferencesResponse) -> (Vec<&Difference>, Vec<&Difference>) {
    let all = answer.differences.iter();
    all.partition(|difference| is_unexplained(difference))
}

/// The share of comparisons without a difference, in percent, rounded down: `100 %` only if all agree.
pub(super) fn share(agreement: &v1::Agreement) -> String {
    let v1::Agreement {
        compared,
        explained,
        unexplained,
        ..
    } = agreement;
    let alike = compared.saturating_sub(explained + unexplained);
    match u128::from(alike) * 10_000 / u128::from((*compared).max(1)) {
        _ if *compared == 0 => "-".to_owned(),
        10_000 => "100 %".to_owned(),
        share => format!("{}.{:02} %", share / 100, share % 100),
    }
}

pub(super) fn total(agreements: &[v1::Agreement]) -> v1::Agreement {
    let sum = |of: fn(&v1::Agreement) -> u64| agreements.iter().map(of).sum();
    v1::Agreement {
        subject: v1::Subject::Unspecified.into(),
        compared: sum(|it| it.compared),
        explained: sum(|it| it.explained),
        unexplained: sum(|it| it.unexplained),
        not_compared: sum(|it| it.not_compared),
    }
}

/// The result of all comparisons.
pub(super) fn verdict(answer: &v1::ListDifferencesResponse) -> String {
    let v1::Agreement {
        compared,
        explained,
        unexplained,
        not_compared,
        ..
    } = total(&answer.agreements);
    let explained = match explained {
        0 => String::new(),
        explained => format!(", {explained} explained"),
    };
    format!(
        "{compared} compared, {unexplained} unexplained{explained}; {not_compared} not compared"
    )
}

/// The number of compared ReplicaSets, and the duration of the comparison.
pub(super) fn extent(answer: &v1::ListDifferencesResponse) -> String {
    let sets = count(answer.replica_sets, "ReplicaSet");
    let since = answer.since.as_ref().and_then(age::wire_time);
    let long = since.map(|since| jiff::Timestamp::now().duration_since(since));
    let long = long.and_then(|long| Duration::try_from(long).ok());
    match long {
        Some(long) => format!("{sets}, for {}", age::human(long)),
        None => sets.to_string(),
    }
}
