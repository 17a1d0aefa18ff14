//! The rule that refuses an operation, and its message.

use decree_api::v1::NotStartedCause;

/// The longest message of a refusal. It repeats texts of the server.
const MESSAGE_MAX: usize = 1024;

/// Why an operation is refused, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The batch is of another session or epoch.
    Session,
    /// The batch has more operations than the session may have in flight.
    Limit,
    /// The batch names no ReplicaSet, one by the UID of another, or a namespace that is not allowed.
    Reference,
    /// The batch comes before both kinds are listed in its session: the agent's knowledge may be old.
    View,
    /// The template of the generation has been replaced, or has not been seen.
    Template,
    /// The name is none that pods of the ReplicaSet may have.
    Name,
    /// There are at least as many pods as desired.
    Surplus,
    /// There are no more pods than desired.
    Shortage,
    /// The pod is controlled by another, or by none, or has another name than its UID says.
    Ownership,
    /// The ReplicaSet or the pod is gone, has ended or is being deleted.
    Inactive,
    /// The selector does not allow the operation.
    Selector,
    /// The status differs from what the agent sees.
    Status,
    /// The [budget](crate::budget) is used up.
    Budget,
    /// Another controller creates pods of the ReplicaSet.
    OtherController,
    /// The mode, the preferences of the ReplicaSet, the owner of the cost or the pace does not allow advice; or the mode allows nothing else.
    Advice,
}

/// Why an operation is not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The cause in the contract.
    pub cause: NotStartedCause,
    /// The rule that refuses it; `None` where the agent executes nothing at all.
    pub rule: Option<Rule>,
    /// The reason, for people.
    pub message: String,
}

impl Rule {
    /// All rules with the values of a metric's label, in order.
    pub const ALL: [(Self, &'static str); 15] = [
        (Self::Session, "session"),
        (Self::Limit, "limit"),
        (Self::Reference, "reference"),
        (Self::View, "view"),
        (Self::Template, "template"),
        (Self::Name, "name"),
        (Self::Surplus, "surplus"),
        (Self::Shortage, "shortage"),
        (Self::Ownership, "ownership"),
        (Self::Inactive, "inactive"),
        (Self::Selector, "selector"),
        (Self::Status, "status"),
        (Self::Budget, "budget"),
        (Self::OtherController, "other_controller"),
        (Self::Advice, "advice"),
    ];

    /// Returns the value of a metric's label.
    pub const fn as_str(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

impl Refusal {
    /// The message is cut, because each operation of the batch gets a copy.
    pub(crate) fn new(rule: Rule, mut message: String) -> Self {
        message.truncate(message.floor_char_boundary(MESSAGE_MAX));
        Self {
            cause: NotStartedCause::Guard,
            rule: Some(rule),
            message,
        }
    }

    pub(crate) fn not_enforcing(message: &str) -> Self {
        Self {
            cause: NotStartedCause::NotEnforcing,
            rule: None,
            message: message.to_owned(),
        }
    }
}
