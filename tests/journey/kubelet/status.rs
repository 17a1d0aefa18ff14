//! The status of a pod.

use serde_json::{Value, json};

use super::clock;

/// The conditions of a pod, each with the time of its last change.
#[derive(Debug)]
pub(crate) struct Conditions {
    since: String,
    is_ready: (bool, String),
    is_initialized: (bool, String),
}

impl Conditions {
    /// The conditions of a pod that has just come to its node.
    pub(crate) fn new() -> Self {
        let now = clock::now();
        Self {
            is_ready: (false, now.clone()),
            is_initialized: (false, now.clone()),
            since: now,
        }
    }

    /// The time since which the pod is here.
    pub(crate) fn since(&self) -> &str {
        &self.since
    }

    /// Notes the current state of the pod, and returns its conditions.
    pub(crate) fn told(&mut self, is_ready: bool, is_initialized: bool) -> Value {
        for (told, is_so) in [
            (&mut self.is_ready, is_ready),
            (&mut self.is_initialized, is_initialized),
        ] {
            if told.0 != is_so {
                *told = (is_so, clock::now());
            }
        }
        let scheduled = (true, self.since.clone());
        let conditions = [
            ("PodScheduled", &scheduled),
            ("Initialized", &self.is_initialized),
            ("ContainersReady", &self.is_ready),
            ("Ready", &self.is_ready),
        ];
        let conditions = conditions.map(|(kind, (is_so, since))| {
            let status = if *is_so { "True" } else { "False" };
            json!({"type": kind, "status": status, "lastTransitionTime": since})
        });
        conditions.to_vec().into()
    }
}

/// Whether a status has the required content: controllers of nodes write to it too.
pub(crate) fn says(status: &Value, wanted: &Value) -> bool {
    let containers = |key: &str| of_containers(&status[key]) == of_containers(&wanted[key]);
    status["phase"] == wanted["phase"]
        && says_conditions(status, wanted)
        && containers("initContainerStatuses")
        && containers("containerStatuses")
}

/// Whether a status has the required conditions.
pub(crate) fn says_conditions(status: &Value, wanted: &Value) -> bool {
    let mut conditions = wanted["conditions"].as_array().into_iter().flatten();
    conditions.all(|wanted| {
        let mut there = status["conditions"].as_array().into_iter().flatten();
        there.any(|it| it["type"] == wanted["type"] && it["status"] == wanted["status"])
    })
}

fn of_containers(statuses: &Value) -> Vec<[&Value; 4]> {
    let each = statuses.as_array().into_iter().flatten();
    each.map(|it| {
        let state = ["running", "waiting", "terminated"].map(|name| &it["state"][name]);
        let why = state.into_iter().find(|state| !state.is_null());
        let why = why.unwrap_or(&Value::Null);
        [
            &it["ready"],
            &it["restartCount"],
            &it["started"],
            &why["reason"],
        ]
    })
    .collect()
}
