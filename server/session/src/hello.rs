//! Reads a Hello: who the agent is, and whether the server can meet its requests.

use decree_api::v1;
use decree_core::{NameSeed, Timestamp};

use crate::{
    config::{Config, FRAME_BYTES, span},
    refusal::Refusal,
    wire::{Fault, Violation, decode, encode::ClusterRef, is_cluster_word, is_token},
};

/// The protocol version of this server.
pub const PROTOCOL: i32 = 1;
/// The capability of an agent that sends nodes.
pub(crate) const NODES: &str = "nodes";
/// The maximum size in bytes of one operation of a batch in a frame: a victim with the longest names, UID and reason.
const OPERATION_BYTES_MAX: usize = 800;
/// The maximum size in bytes of a batch in a frame, without its operations: its ReplicaSet, guard and reasons.
const BATCH_BYTES_MAX: usize = 4 << 10;
/// The maximum number of pods that one batch adopts and releases.
const CLAIMS_MAX: usize = 5_000;
/// The capability of an agent that answers questions for the costs of pods.
const COSTS: &str = "costs";
/// The maximum number of unknown capabilities in a message. A Hello may ask for hundreds of thousands.
const UNKNOWN_NAMED_MAX: usize = 16;
/// The maximum length of a capability in a message, in bytes.
const UNKNOWN_NAME_MAX: usize = 64;

/// The check of a text, and the correct form.
type TextRule = (fn(&str) -> bool, &'static str);

const TOKEN: TextRule = (is_token, "must be 1 to 128 printable ASCII characters");
const CLUSTER_WORD: TextRule = (
    is_cluster_word,
    "must be 1 to 128 letters, digits and . _ : / @ - with a letter or digit at both ends",
);

/// The cluster, the agent and the mode of a session, which never change.
#[derive(Clone, Debug)]
pub struct SessionIdentity {
    /// The session's id. Its owner chooses it, different from all other sessions.
    pub session_id: String,
    /// The cluster.
    pub cluster_uid: String,
    /// The name of the cluster for people; may be empty.
    pub cluster_name: String,
    /// The part of the cluster that the agent serves; may be empty.
    pub shard: String,
    /// The agent's process.
    pub agent_instance: String,
    /// The number of transitions of the agent's Lease, 0 or more.
    pub epoch: i64,
    /// Whether the agent executes decisions.
    pub mode: v1::Mode,
    /// Whether Kubernetes runs the pods, so that a person has kubectl.
    pub is_kubernetes: bool,
    /// The time of the Hello.
    pub started: Timestamp,
}

/// Reads a Hello that came at `now` and opens the session `session_id`.
pub(crate) fn read(
    now: Timestamp,
    session_id: String,
    hello: &v1::Hello,
    config: &Config,
) -> Result<(SessionIdentity, decree_core::Config), Refusal> {
    let mut violations = violations(hello);
    let asks_for = |capability: &str| hello.capabilities.iter().any(|name| name == capability);
    let base = decree_core::Config {
        operations_in_flight_max: config.operations_in_flight_max,
        backoff_max: span(config.backoff_max),
        claims_max: CLAIMS_MAX.min(operations_max(config)),
        asks_costs: asks_for(COSTS),
        ..decree_core::Config::default()
    };
    let options = decode::options(hello.options.as_ref(), base).unwrap_or_else(|mut wrong| {
        violations.append(&mut wrong);
        decree_core::Config::default()
    });
    if !violations.is_empty() {
        return Err(Refusal::Invalid(violations, 0));
    }
    let (min, max) = (hello.protocol_min, hello.protocol_max);
    if !(min..=max).contains(&PROTOCOL) {
        return Err(Refusal::ProtocolUnsupported {
            min,
            max,
            supported: PROTOCOL,
        });
    }
    if unknown_capabilities(hello).next().is_some() || v1::Mode::try_from(hello.mode).is_err() {
        return Err(unsupported(hello));
    }
    let (burst, max) = (options.burst_replicas, operations_max(config));
    if usize::try_from(burst).is_ok_and(|burst| burst > max) {
        return Err(Refusal::BurstUnsupported { burst, max });
    }
    let identity = identity(now, session_id, hello);
    let names = NameSeed::of_session(identity.epoch, &identity.session_id);
    let advises = identity.mode == v1::Mode::Advise;
    let mut core = decree_core::Config {
        names,
        nodes: asks_for(NODES),
        advises,
        ..options
    };
    if advises {
        // The other controller limits no creates.
        (core.create_back_off, core.brake) = (false, None);
    }
    Ok((identity, core))
}

fn violations(hello: &v1::Hello) -> Vec<Violation> {
    let text = |field: &str, text: &str, (is_valid, rule): TextRule| {
        (!is_valid(text)).then(|| Violation::new(field, Fault::Text, rule))
    };
    let optional = |field, value: &str, rule| {
        let is_set = !value.is_empty();
        is_set.then(|| text(field, value, rule)).flatten()
    };
    let (min, max) = (hello.protocol_min, hello.protocol_max);
    let range = (min < 1 || max < min).then(|| {
        let description = format!("{min} to {max} must be a range from 1 up");
        Violation::new("protocol_min", Fault::Range, description)
    });
    let epoch = (hello.epoch < 0).then(|| {
        let description = format!("{} must be 0 or more", hello.epoch);
        Violation::new("epoch", Fault::Range, description)
    });
    let found = [
        range,
        text("agent_instance", &hello.agent_instance, TOKEN),
        text("cluster_uid", &hello.cluster_uid, CLUSTER_WORD),
        optional("cluster_name", &hello.cluster_name, CLUSTER_WORD),
        optional("shard", &hello.shard, TOKEN),
        epoch,
        optional("resumes_session_id", &hello.resumes_session_id, TOKEN),
    ];
    found.into_iter().flatten().collect()
}

fn unknown_capabilities(hello: &v1::Hello) -> impl Iterator<Item = &String> {
    let capabilities = hello.capabilities.iter();
    capabilities.filter(|name| *name != COSTS && *name != NODES)
}

/// Returns the refusal of a Hello that asks for unknown features: capabilities, and the mode.
fn unsupported(hello: &v1::Hello) -> Refusal {
    let capabilities = unknown_capabilities(hello);
    let mode = v1::Mode::try_from(hello.mode).is_err();
    let mode = mode.then(|| format!("mode {}", hello.mode));
    let unknown = unknown_capabilities(hello).count() + usize::from(mode.is_some());
    let first = capabilities
        .map(|name| &name[..name.floor_char_boundary(UNKNOWN_NAME_MAX)])
        .map(|name| format!("capability {name:?}"))
        .chain(mode)
        .take(UNKNOWN_NAMED_MAX);
    Refusal::CapabilityUnsupported {
        first: first.collect(),
        more: unknown.saturating_sub(UNKNOWN_NAMED_MAX),
    }
}

/// Returns how many operations of one batch fit a frame beside others, with names of any length.
const fn operations_max(config: &Config) -> usize {
    let beside = FRAME_BYTES + BATCH_BYTES_MAX;
    config.frame_bytes_max.saturating_sub(beside) / OPERATION_BYTES_MAX
}

fn identity(now: Timestamp, session_id: String, hello: &v1::Hello) -> SessionIdentity {
    let mode = match hello.mode() {
        v1::Mode::Unspecified => v1::Mode::Enforce,
        mode @ (v1::Mode::Enforce | v1::Mode::Shadow | v1::Mode::DryRun | v1::Mode::Advise) => mode,
    };
    SessionIdentity {
        session_id,
        cluster_uid: hello.cluster_uid.clone(),
        cluster_name: hello.cluster_name.clone(),
        shard: hello.shard.clone(),
        agent_instance: hello.agent_instance.clone(),
        epoch: hello.epoch,
        mode,
        is_kubernetes: hello.platform() != v1::Platform::Other,
        started: now,
    }
}

impl SessionIdentity {
    /// The cluster's name, or its UID if it has none.
    pub fn cluster(&self) -> &str {
        if self.cluster_name.is_empty() {
            &self.cluster_uid
        } else {
            &self.cluster_name
        }
    }

    /// The cluster as answers name it.
    pub fn cluster_ref(&self) -> ClusterRef<'_> {
        ClusterRef {
            name: self.cluster(),
            uid: &self.cluster_uid,
            shard: &self.shard,
        }
    }

    /// Whether `wanted` is the UID or the name of this cluster; the empty text names every cluster.
    pub fn is_of(&self, wanted: &str) -> bool {
        wanted.is_empty() || wanted == self.cluster_uid || wanted == self.cluster_name
    }

    /// The sort key of sessions for people.
    pub fn order(&self) -> (&str, &str, &str) {
        (self.cluster(), &self.cluster_uid, &self.shard)
    }

    pub(crate) fn guard(&self) -> v1::Guard {
        v1::Guard {
            session_id: self.session_id.clone(),
            epoch: self.epoch,
        }
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn victim_with_the_longest_names_has_its_place_in_a_frame() {
        let node = "n".repeat(63);
        let count = u32::MAX;
        // The longest details: of two crowded nodes, and of two uids.
        let crowded =
            format!("{count} pods of this owner on {node} vs {count} pods of this owner on {node}");
        let said = "u".repeat(64);
        let uids = format!(
            "ready for 106751d23h and 106751d23h, the same age bucket: restarts are not compared, uid {said} < {said}"
        );
        for (rule, detail) in [(v1::Rule::CrowdedNode, crowded), (v1::Rule::Uid, uids)] {
            let pod = v1::ObjectRef {
                namespace: "n".repeat(63),
                name: "p".repeat(253),
                uid: "u".repeat(128),
            };
            let rule = rule.into();
            let victim = v1::Victim {
                pod: Some(pod),
                resource_version: u64::MAX.to_string(),
                reason: Some(v1::Reason { rule, detail }),
            };
            let victims = vec![victim];
            let bytes = v1::Delete { victims }.encoded_len();
            assert!(bytes <= OPERATION_BYTES_MAX, "{rule}: {bytes}");
        }
    }

    #[test]
    fn largest_burst_fits_the_frames_of_a_server_as_it_is_by_default() {
        let max = ((4 << 20) - FRAME_BYTES - BATCH_BYTES_MAX) / OPERATION_BYTES_MAX;
        assert!(max >= 5_000, "{max}");
    }
}
