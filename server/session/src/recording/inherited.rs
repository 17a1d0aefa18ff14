//! The lost creates that a session takes over from an earlier one, with the requests to resume them, as a record.

use std::time::Duration;

use decree_api::recording::v1::{Account, Inherited, ResumeRequest};
use decree_core::{Account as Known, Ledger, Span, Timestamp};

/// Writes what a session inherits.
pub(crate) fn record(left: &Ledger, ago: Duration) -> Inherited {
    let accounts = left.iter().map(|(namespace, name, account)| Account {
        namespace: namespace.to_string(),
        name: name.to_string(),
        lost: account.lost,
        desired: account.desired,
        grant_at_nanos: account.grant_at.0,
        period_nanos: account.period.0,
        lost_at_nanos: account.lost_at.0,
        resume_at_nanos: account.resume_at.map(|at| at.0),
        resumed_at_nanos: account.resumed_at.map(|at| at.0),
    });
    let requests = left.requests();
    let requests = requests.map(|(namespace, name, value)| ResumeRequest {
        namespace: namespace.to_string(),
        name: name.to_string(),
        value: value.to_string(),
    });
    Inherited {
        accounts: accounts.collect(),
        requests: requests.collect(),
        ago_nanos: u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX),
    }
}

/// Reads what [`record`] wrote.
pub(crate) fn read(inherited: Inherited) -> (Ledger, Duration) {
    let mut left = Ledger::default();
    for account in inherited.accounts {
        let Account {
            namespace,
            name,
            lost,
            desired,
            grant_at_nanos,
            period_nanos,
            lost_at_nanos,
            resume_at_nanos,
            resumed_at_nanos,
        } = account;
        let lost_at = lost_at_nanos.min(0);
        let account = Known {
            lost,
            desired,
            grant_at: Timestamp(grant_at_nanos.max(lost_at)),
            period: Span(period_nanos),
            lost_at: Timestamp(lost_at),
            resume_at: resume_at_nanos.map(Timestamp),
            resumed_at: resumed_at_nanos.map(Timestamp),
            ..Known::default()
        };
        left.insert(namespace.into(), name.into(), account);
    }
    for request in inherited.requests {
        let ResumeRequest {
            namespace,
            name,
            value,
        } = request;
        left.insert_request(namespace.into(), name.into(), value.into());
    }
    (left, Duration::from_nanos(inherited.ago_nanos))
}
