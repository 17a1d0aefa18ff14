//! The pace of advice, whatever the server says: one write a minute for each pod, and 20 a second in all.

use std::{collections::HashMap, time::Duration};

use decree_api::v1;
use jiff::Timestamp;

use crate::{
    api::{Answer, display, leaves_effect_open},
    pace::{TokenBucket, since},
    refusal::{Refusal, Rule},
    report::Report,
};

/// The interval of writes.
const WRITE_EVERY: Duration = Duration::from_millis(50);
/// How long the cost of a pod stays once it is written.
const STAYS: Duration = Duration::from_mins(1);

/// The writes of the last minute. Owned by [`Batches`](super::Batches).
#[derive(Clone, Debug)]
pub(crate) struct Advice {
    writes: TokenBucket,
    written: HashMap<String, Timestamp>,
}

impl Default for Advice {
    fn default() -> Self {
        Self {
            writes: TokenBucket::new(WRITE_EVERY, 1),
            written: HashMap::new(),
        }
    }
}

impl Advice {
    /// When the next write may start, if that is not now.
    pub(crate) fn paced_until(&self, now: Timestamp) -> Option<Timestamp> {
        Some(self.writes.next(now)).filter(|next| *next > now)
    }

    /// Counts a write that is about to start.
    pub(crate) fn admit(&mut self, now: Timestamp, pod: &v1::ObjectRef) -> Result<(), Refusal> {
        self.written.retain(|_, at| since(now, *at) < STAYS);
        if let Some(at) = self.written.get(&pod.uid) {
            let (pod, ago) = (display(pod), since(now, *at).as_secs());
            let text = format!("the deletion cost of pod {pod} was written {ago} s ago");
            return Err(Refusal::new(Rule::Advice, text));
        }
        self.writes.take(now);
        self.written.insert(pod.uid.clone(), now);
        Ok(())
    }

    /// Takes the answer to a write. A write without effect may be repeated at once, with the pod's new version.
    pub(crate) fn note_answer(&mut self, pod: &v1::ObjectRef, answer: &Answer) {
        if matches!(answer, Err(error) if !leaves_effect_open(error)) {
            self.written.remove(&pod.uid);
        }
    }
}

/// The report of a write that failed. After a change of the pod, the server decides again soon, and nobody has to look.
pub(super) fn failed(pod: &v1::ObjectRef, answer: &Answer) -> Option<Report> {
    let error = answer.as_ref().err()?;
    let is_everyday = [Some(404), Some(409)].contains(&error.code);
    (!is_everyday).then(|| Report::AdviceFailed {
        pod: pod.clone(),
        message: error.message.clone(),
    })
}
