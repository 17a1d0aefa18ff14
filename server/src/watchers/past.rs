//! The last decisions of all sessions, for readers that come back, and the tokens that name a place among them.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use decree_api::v1;
use prost::Message;
use server_session::{SessionIdentity, wire::Fault};

use crate::error::Refusal;

/// The maximum size of the kept decisions, encoded: some thousand decisions.
const BYTES_MAX: usize = 1 << 20;
/// What an entry takes besides its decision.
const ENTRY_BYTES: usize = 128;

/// Decisions in the order in which readers get them.
#[derive(Debug)]
pub(super) struct Past {
    /// Makes a place of the number of a decision. A place tells a reader nothing about the decisions of clusters that it may not see, and no
    /// other server has the same.
    places: RandomState,
    count: u64,
    /// The last decisions, the oldest first.
    kept: VecDeque<PastDecision>,
    /// The place of the decision before the oldest one.
    before: Place,
    bytes: usize,
}

/// The place of a decision among all decisions of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place(u64);

/// A decision, and the session that it is of.
#[derive(Clone, Debug)]
pub(super) struct PastDecision {
    pub(super) place: Place,
    pub(super) identity: Arc<SessionIdentity>,
    pub(super) record: Arc<v1::DecisionRecord>,
    bytes: usize,
}

impl Past {
    pub(super) fn new() -> Self {
        let places = RandomState::new();
        Self {
            count: 0,
            kept: VecDeque::new(),
            before: Place(places.hash_one(0_u64)),
            bytes: 0,
            places,
        }
    }

    /// Keeps a decision, in place of the oldest ones. Returns its place.
    pub(super) fn push(
        &mut self,
        identity: &Arc<SessionIdentity>,
        record: &Arc<v1::DecisionRecord>,
    ) -> Place {
        self.count += 1;
        let place = Place(self.places.hash_one(self.count));
        let bytes = record.encoded_len() + ENTRY_BYTES;
        self.bytes += bytes;
        self.kept.push_back(PastDecision {
            place,
            identity: Arc::clone(identity),
            record: Arc::clone(record),
            bytes,
        });
        while self.bytes > BYTES_MAX
            && let Some(oldest) = self.kept.pop_front()
        {
            self.bytes -= oldest.bytes;
            self.before = oldest.place;
        }
        place
    }

    /// The decisions after a token; none for the empty token.
    ///
    /// # Errors
    /// If it is no token, or not all of them are kept.
    pub(super) fn after(
        &self,
        token: &str,
    ) -> Result<impl Iterator<Item = &PastDecision>, Refusal> {
        let seen = if token.is_empty() {
            self.kept.len()
        } else {
            let place = Place::parse(token)?;
            let places = self.kept.iter().map(|it| it.place);
            let mut places = [self.before].into_iter().chain(places);
            let found = places.position(|it| it == place);
            found.ok_or(Refusal::ResumeTokenExpired)?
        };
        Ok(self.kept.iter().skip(seen))
    }
}

impl Place {
    fn parse(token: &str) -> Result<Self, Refusal> {
        let parsed = u64::from_str_radix(token, 16).map(Self);
        parsed.map_err(|_| {
            let description = "must be the resume_token of a message, as it was";
            Refusal::field("resume_token", Fault::Text, description)
        })
    }

    pub(super) fn token(self) -> String {
        format!("{:016x}", self.0)
    }
}
