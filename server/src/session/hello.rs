//! Reads a hello: who the agent is, and whether what it asks for can be honoured.

use std::hash::{BuildHasher, Hasher, RandomState};

use decree::v1;
use server_core::{Config, Timestamp};

use crate::{
    args::Limits,
    error::Refusal,
    wire::{Fault, Violation, decode, is_token},
};

/// The protocol that this server speaks.
pub(crate) const PROTOCOL: i32 = 1;
/// The most bytes that one operation of a batch takes in a frame: a victim with the longest names, uid and reason.
const OPERATION_BYTES_MAX: usize = 800;
/// How many of the capabilities that are not known are named. A hello may ask for hundreds of thousands.
const UNKNOWN_NAMED_MAX: usize = 16;
/// How many bytes are said of the name of one.
const UNKNOWN_NAME_MAX: usize = 64;

/// Who is at the other end of a session, for as long as it lives.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) session_id: String,
    pub(crate) cluster_uid: String,
    pub(crate) cluster_name: String,
    pub(crate) shard: String,
    pub(crate) agent_instance: String,
    pub(crate) epoch: i64,
    pub(crate) mode: v1::Mode,
    pub(crate) started: Timestamp,
}

/// Reads a hello that came at `now`.
pub(crate) fn read(
    now: Timestamp,
    hello: &v1::Hello,
    limits: &Limits,
) -> Result<(Identity, Config), Refusal> {
    let mut violations = violations(hello);
    let base = Config {
        operations_in_flight_max: limits.operations_in_flight_max,
        ..Config::default()
    };
    let config = decode::options(hello.options.as_ref(), base).unwrap_or_else(|mut wrong| {
        violations.append(&mut wrong);
        Config::default()
    });
    if !violations.is_empty() {
        return Err(Refusal::Invalid(violations));
    }
    check_protocol(hello)?;
    check_burst(&config, limits)?;
    Ok((identity(now, hello), config))
}

fn violations(hello: &v1::Hello) -> Vec<Violation> {
    let token = |field: &str, text: &str| {
        (!is_token(text)).then(|| {
            Violation::new(
                field,
                Fault::Text,
                "must be 1 to 128 printable ASCII characters",
            )
        })
    };
    let optional = |field, text: &str| {
        if text.is_empty() {
            None
        } else {
            token(field, text)
        }
    };
    let name = (hello.cluster_name.chars().count() > 128
        || hello.cluster_name.contains(char::is_control))
    .then(|| {
        Violation::new(
            "cluster_name",
            Fault::Text,
            "must be at most 128 characters without controls",
        )
    });
    let epoch = (hello.epoch < 0).then(|| {
        Violation::new(
            "epoch",
            Fault::Range,
            format!("{} must be 0 or more", hello.epoch),
        )
    });
    let range = (hello.protocol_min < 1 || hello.protocol_max < hello.protocol_min).then(|| {
        let description = format!(
            "{} to {} must be a range from 1 up",
            hello.protocol_min, hello.protocol_max
        );
        Violation::new("protocol_min", Fault::Range, description)
    });
    [
        range,
        token("agent_instance", &hello.agent_instance),
        token("cluster_uid", &hello.cluster_uid),
        name,
        optional("shard", &hello.shard),
        epoch,
        optional("resumes_session_id", &hello.resumes_session_id),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn check_protocol(hello: &v1::Hello) -> Result<(), Refusal> {
    let (min, max) = (hello.protocol_min, hello.protocol_max);
    if !(min..=max).contains(&PROTOCOL) {
        return Err(Refusal::ProtocolUnsupported {
            min,
            max,
            supported: PROTOCOL,
        });
    }
    let capabilities = hello.capabilities.iter();
    let mode = v1::Mode::try_from(hello.mode).is_err();
    let unknown = hello.capabilities.len() + usize::from(mode);
    if unknown == 0 {
        return Ok(());
    }
    let first = capabilities
        .map(|name| format!("capability {:?}", beginning(name)))
        .chain(mode.then(|| format!("mode {}", hello.mode)))
        .take(UNKNOWN_NAMED_MAX);
    Err(Refusal::CapabilityUnsupported {
        first: first.collect(),
        more: unknown.saturating_sub(UNKNOWN_NAMED_MAX),
    })
}

/// Returns as much of a name as is said of it.
fn beginning(name: &str) -> &str {
    &name[..name.floor_char_boundary(UNKNOWN_NAME_MAX)]
}

fn check_burst(config: &Config, limits: &Limits) -> Result<(), Refusal> {
    let max = limits.frame_bytes_max / OPERATION_BYTES_MAX;
    match usize::try_from(config.burst_replicas) {
        Ok(burst) if burst <= max => Ok(()),
        Ok(_) | Err(_) => Err(Refusal::BurstUnsupported {
            burst: config.burst_replicas,
            max,
        }),
    }
}

fn identity(now: Timestamp, hello: &v1::Hello) -> Identity {
    let mode = match hello.mode() {
        v1::Mode::Unspecified | v1::Mode::Enforce => v1::Mode::Enforce,
        v1::Mode::Shadow => v1::Mode::Shadow,
        v1::Mode::DryRun => v1::Mode::DryRun,
    };
    Identity {
        session_id: session_id(),
        cluster_uid: hello.cluster_uid.clone(),
        cluster_name: hello.cluster_name.clone(),
        shard: hello.shard.clone(),
        agent_instance: hello.agent_instance.clone(),
        epoch: hello.epoch,
        mode,
        started: now,
    }
}

/// Returns 128 random bits, so that ids of different servers and of their restarts never meet.
fn session_id() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

// === impl Identity ===

impl Identity {
    /// Returns what people call the cluster: its name, or its uid if it has none.
    pub(crate) fn cluster(&self) -> &str {
        if self.cluster_name.is_empty() {
            &self.cluster_uid
        } else {
            &self.cluster_name
        }
    }

    /// Returns whether `wanted` names this cluster by uid or name; the empty text names every cluster.
    pub(crate) fn is_of(&self, wanted: &str) -> bool {
        wanted.is_empty() || wanted == self.cluster_uid || wanted == self.cluster_name
    }

    /// Returns what sessions are sorted by where people see them.
    pub(crate) fn order(&self) -> (&str, &str, &str) {
        (self.cluster(), &self.cluster_uid, &self.shard)
    }

    /// Returns the guard of the session's batches.
    pub(crate) fn guard(&self) -> v1::Guard {
        v1::Guard {
            session_id: self.session_id.clone(),
            epoch: self.epoch,
        }
    }
}

#[cfg(test)]
impl Identity {
    /// Returns a session of a cluster that people call `name of CLUSTER`.
    pub(crate) fn example(cluster_uid: &str, shard: &str, epoch: i64) -> Self {
        Self {
            session_id: session_id(),
            cluster_uid: cluster_uid.to_owned(),
            cluster_name: format!("name of {cluster_uid}"),
            shard: shard.to_owned(),
            agent_instance: "agent-0".to_owned(),
            epoch,
            mode: v1::Mode::Enforce,
            started: Timestamp::default(),
        }
    }
}
