//! The intent of a malicious server in one session.

use std::time::Duration;

use agent_core::link::Disconnect;
use decree_api::v1::{self, reconcile_response::Frame};

use super::attacks::Attack;
use crate::rng::Rng;

/// The number of acts per thousand of a noisy server that are not batches.
const NOISE: u64 = 700;

/// Ten years, in seconds.
const YEARS: u64 = 10 * 365 * 24 * 3600;

#[derive(Clone, Debug)]
pub(super) struct Intent {
    pub(super) attacks: Vec<Attack>,
    /// The maximum wait between two acts.
    pace: Duration,
    /// The duration of the session.
    pub(super) lifetime: Duration,
    /// The chance per thousand acts of a frame that is no batch, but makes the agent work.
    noise: u64,
    /// Whether the Welcome has values that no server should send.
    is_absurd: bool,
}

impl Intent {
    pub(super) fn draw(rng: &mut Rng, only: Option<Attack>) -> Self {
        let trusted = rng.chance(400);
        let kinds = rng.between(1, 3);
        let attacks = (0..kinds).map(|_| *rng.pick(&Attack::ALL));
        let drawn: Vec<_> = attacks.collect();
        let attacks = if trusted {
            vec![Attack::None]
        } else {
            only.map_or(drawn, |only| vec![only])
        };
        let paces = [20, 200, 200, 2_000].map(Duration::from_millis);
        let lifetimes = [0, 50, 1_000, 10_000, 60_000].map(Duration::from_millis);
        let is_absurd = rng.chance(300);
        Self {
            attacks,
            pace: *rng.pick(&paces),
            lifetime: if trusted {
                Duration::from_secs(20)
            } else {
                *rng.pick(&lifetimes)
            },
            noise: if trusted {
                0
            } else {
                *rng.pick(&[0, 100, NOISE])
            },
            is_absurd,
        }
    }

    pub(super) fn pause(&self, rng: &mut Rng) -> Duration {
        rng.delay(self.pace)
    }

    pub(super) fn welcome(&self, session_id: String, rng: &mut Rng) -> v1::Welcome {
        let heartbeat = prost_types::Duration {
            seconds: 5,
            nanos: 0,
        };
        let mut welcome = v1::Welcome {
            protocol: 1,
            session_id,
            heartbeat_interval: Some(heartbeat),
            ..v1::Welcome::default()
        };
        if self.is_absurd {
            welcome.heartbeat_interval = Some(span(rng));
            let numbers = [0, -1, 1, i32::MAX, i32::MIN];
            welcome.limits = Some(v1::Limits {
                max_frame_bytes: *rng.pick(&numbers),
                max_operations_in_flight: *rng.pick(&numbers),
                max_objects: i64::from(*rng.pick(&numbers)),
            });
            welcome.server_version = "\u{1b}[2J\u{202e}9.9".repeat(1_000);
        }
        welcome
    }

    /// A frame that is no batch, if one is due.
    pub(super) fn noise(&self, rng: &mut Rng) -> Option<Frame> {
        if !rng.chance(self.noise) {
            return None;
        }
        let kind = *rng.pick(&[v1::Kind::Pod, v1::Kind::ReplicaSet]);
        Some(match rng.between(0, 5) {
            0..=2 => Frame::Resync(v1::Resync {
                kind: kind.into(),
                cause: "\u{1b}[31mlost\n".repeat(100),
            }),
            3 => Frame::Resync(v1::Resync {
                kind: *rng.pick(&[0, 77, -1]),
                cause: String::new(),
            }),
            4 => Frame::Rejection(rejection(kind)),
            _ => Frame::Heartbeat(v1::Heartbeat {
                last_sequence: u64::MAX,
                view_age: Some(span(rng)),
            }),
        })
    }

    /// Draws the end of the session.
    pub(super) fn end(&self, rng: &mut Rng) -> End {
        let status = || "unavailable: \u{1b}[2Jcome back \u{202e}later".to_owned();
        let waits = [0, 60, YEARS, u64::MAX].map(|it| Some(Duration::from_secs(it)));
        match rng.between(0, 5) {
            0 | 1 => End::Drain(v1::Drain {
                close_time: None,
                reconnect_after: Some(span(rng)),
            }),
            2 => End::Silence,
            3 => End::Cut(Disconnect::Ended),
            4 => End::Cut(Disconnect::Lost("broken".to_owned())),
            _ => End::Cut(Disconnect::Refused {
                status: status(),
                retry_after: rng.chance(800).then(|| *rng.pick(&waits)).flatten(),
            }),
        }
    }
}

fn rejection(kind: v1::Kind) -> v1::Rejection {
    let violation = v1::FieldViolation {
        field: "metadata.\u{1b}]0;\u{7}".to_owned(),
        ..v1::FieldViolation::default()
    };
    let object = v1::RejectedObject {
        kind: kind.into(),
        violations: vec![violation; 100],
        ..v1::RejectedObject::default()
    };
    v1::Rejection {
        objects: vec![object],
        ..v1::Rejection::default()
    }
}

#[derive(Debug)]
pub(super) enum End {
    Drain(v1::Drain),
    /// The server sends nothing more.
    Silence,
    Cut(Disconnect),
}

/// A duration that may be negative, or longer than any lifetime.
fn span(rng: &mut Rng) -> prost_types::Duration {
    let years = YEARS.cast_signed();
    prost_types::Duration {
        seconds: *rng.pick(&[0, 1, 60, -5, 1, 60, years, 1 << 62, i64::MAX, i64::MIN]),
        nanos: *rng.pick(&[0, 1, -1, i32::MAX, i32::MIN]),
    }
}
