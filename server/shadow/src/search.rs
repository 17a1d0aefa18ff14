//! Looks for a view that explains why pods were deleted.

use std::sync::Arc;

use server_core::{CompactUid, KnownSet, Span, Timestamp};

use crate::{
    difference::{LAG, LATE, REACH, SETTLED},
    past::{Numbers, Past},
    view::{Taken, View},
};

/// How much earlier than here the other controller may see a change, and how much its clock may differ.
const SKEW: Span = Span::seconds(2);

/// A pod that was deleted and is to be explained.
#[derive(Clone, Debug)]
pub(super) struct Gone {
    /// The number of the change.
    pub(super) number: u64,
    /// When it was seen.
    pub(super) at: Timestamp,
    pub(super) uid: CompactUid,
    pub(super) name: Arc<str>,
    /// Whether it was looked for in vain.
    pub(super) tried: bool,
}

/// What a search has found of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A view explains it.
    Explained,
    /// No view does, and there were so many pods too many just before it went, or a moment earlier if there were none.
    Unexplained(usize),
    /// Somebody else deleted it: there were not too many pods.
    ByOthers,
    /// Not all views could be looked at.
    Unknown,
}

/// How thoroughly is looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// At the view before the first of the pods went, from which all were chosen if they went together.
    First,
    /// At each view, at the moment at which the pod went.
    Views,
    /// At each view and each moment at which the order may have been another.
    Moments,
}

/// A search for views that explain the deletion of pods.
#[derive(Debug)]
pub(super) struct Search<'a> {
    past: &'a Past,
    set: KnownSet<'a>,
    now: Timestamp,
    numbers: Numbers,
    suspects: Vec<Suspect<'a>>,
    /// How many pods may still be looked at.
    looks: &'a mut usize,
}

#[derive(Debug)]
struct Suspect<'a> {
    gone: &'a Gone,
    /// How many pods there were too many just before it went.
    surplus: i64,
    /// Whether there were any too many then, or a moment earlier.
    is_amid_scale_down: bool,
    /// How many replicas have been taken away since.
    later: usize,
    is_explained: bool,
}

/// How far a walk is.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// The number of the change that was taken back last.
    number: u64,
    /// When the one before it was: since then the view was there.
    begun: Timestamp,
    /// How many replicas were deleted since.
    taken: usize,
    /// When the first of them was seen to go.
    first_taken: Timestamp,
    /// The last change that the other controller must have seen: it sees what it made before it decides again.
    seen: u64,
}

/// More was to be looked at than events have paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TooMuch;

// === impl Gone ===

impl Gone {
    /// Returns when it is looked for next.
    pub(super) fn due(&self) -> Timestamp {
        self.at.plus(if self.tried { LATE } else { SETTLED })
    }
}

// === impl Search ===

impl<'a> Search<'a> {
    pub(super) fn new(
        past: &'a Past,
        set: KnownSet<'a>,
        gone: &'a [Gone],
        now: Timestamp,
        looks: &'a mut usize,
    ) -> Self {
        let own = &set.object().key.uid;
        let suspects = gone.iter().map(|gone| Suspect {
            gone,
            surplus: 0,
            is_amid_scale_down: false,
            later: 0,
            is_explained: false,
        });
        Self {
            past,
            set,
            now,
            numbers: past.numbers(own, set.wanted()),
            suspects: suspects.collect(),
            looks,
        }
    }

    /// Returns what is found of each pod, in their order.
    pub(super) fn run(mut self) -> Vec<Verdict> {
        let is_whole = self.look_everywhere().is_ok() && self.past.is_whole_since(self.begin());
        let verdicts = self.suspects.iter().map(|it| it.verdict(is_whole));
        verdicts.collect()
    }

    fn look_everywhere(&mut self) -> Result<(), TooMuch> {
        self.spend(self.past.len())?;
        for depth in [Depth::First, Depth::Views, Depth::Moments] {
            if !self.is_done() {
                self.walk(depth)?;
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.suspects.iter().all(|it| it.is_explained)
    }

    /// Returns when the oldest view began.
    fn begin(&self) -> Timestamp {
        let earliest = self.suspects.iter().map(|it| it.gone.at).min();
        earliest.unwrap_or(self.now).plus(Span(-REACH.0))
    }

    /// Takes back one change after the other, and looks at the views between them.
    fn walk(&mut self, depth: Depth) -> Result<(), TooMuch> {
        let open = self.suspects.iter().filter(|it| !it.is_explained);
        let Some(first) = open.map(|it| it.gone.number).min() else {
            return Ok(());
        };
        let from = self.begin();
        let mut view = self.now_known()?;
        let mut passed = self.suspects.len();
        let past = self.past;
        let mut cut = Cut {
            number: 0,
            begun: self.now,
            taken: 0,
            first_taken: self.now,
            seen: u64::MAX,
        };
        for (number, change) in past.back_to(from) {
            self.spend(1)?;
            let taken = view.take_back(change);
            // They went in the order of their numbers.
            let last = passed.checked_sub(1).map(|last| &mut self.suspects[last]);
            if let Some(last) = last.filter(|last| last.gone.number == number) {
                last.later = cut.taken;
                passed -= 1;
            }
            match taken {
                Taken::Deleted => (cut.taken, cut.first_taken) = (cut.taken + 1, change.at),
                Taken::Made => cut.seen = number,
                Taken::Adopted(uid) => self.excuse(&uid, change.at),
                Taken::Changed => {}
            }
            (cut.number, cut.begun) = (number, past.before(number).unwrap_or(from));
            let is_recent = change.at.plus(LAG) >= cut.first_taken;
            if is_recent && (depth != Depth::First || number == first) {
                self.look(&view, &cut, depth)?;
            }
            if depth == Depth::First && number == first {
                break;
            }
        }
        Ok(())
    }

    /// Explains that a pod goes that was adopted just before: whoever adopted it chose on a state of it that was not watched.
    fn excuse(&mut self, uid: &CompactUid, adopted: Timestamp) {
        for suspect in &mut self.suspects {
            let is_soon = suspect.gone.at <= adopted.plus(LAG);
            suspect.is_explained |=
                is_soon && suspect.is_amid_scale_down && suspect.gone.uid == *uid;
        }
    }

    fn now_known(&mut self) -> Result<View, TooMuch> {
        let pods = usize::try_from(self.set.active()).unwrap_or(0);
        self.spend(pods + self.set.related_looks())?;
        Ok(View::of(&self.set))
    }

    /// Looks whether a view explains what is unexplained.
    fn look(&mut self, view: &View, cut: &Cut, depth: Depth) -> Result<(), TooMuch> {
        let numbers = &self.numbers;
        let seen = self.suspects.iter_mut();
        let mut open: Vec<_> = seen
            .filter(|it| !it.is_explained && cut.number <= it.gone.number)
            .collect();
        for suspect in &mut open {
            let at = suspect.gone.at;
            let (wanted, _) = numbers.between(at.plus(Span(-SETTLED.0)), at.plus(SKEW));
            suspect.note_surplus(view.active() - i64::from(wanted), cut);
        }
        open.retain(|it| it.gone.number < cut.seen);
        let times = || open.iter().map(|it| it.gone.at);
        let (Some(first), Some(last)) = (times().min(), times().max()) else {
            return Ok(());
        };
        let (wanted, _) = numbers.around(cut.first_taken);
        let count = usize::try_from(view.active() - i64::from(wanted)).unwrap_or(0);
        if count == 0 {
            return Ok(());
        }
        let moments = match depth {
            Depth::First | Depth::Views => [first].into(),
            Depth::Moments => view.moments(cut.begun.plus(Span(-SKEW.0)), last.plus(SETTLED)),
        };
        for moment in moments {
            let cost = usize::try_from(view.active()).unwrap_or(0) + open.len();
            *self.looks = self.looks.checked_sub(cost).ok_or(TooMuch)?;
            let places = view.places(moment);
            for suspect in &mut open {
                let Some(place) = places.get(&suspect.gone.uid) else {
                    continue;
                };
                // All that have gone since were decided at once, but for one that somebody else may have deleted. Where upstream is free,
                // any of so many may go, but not more of them.
                let gone = cut.taken - suspect.later;
                let is_chosen = place.own <= count && gone <= count + 1;
                suspect.is_explained |= is_chosen || place.earliest <= count && gone <= count;
            }
        }
        Ok(())
    }

    fn spend(&mut self, looks: usize) -> Result<(), TooMuch> {
        *self.looks = self.looks.checked_sub(looks).ok_or(TooMuch)?;
        Ok(())
    }

    /// Returns the view before the change of a number.
    pub(super) fn view_before(
        past: &Past,
        set: &KnownSet<'_>,
        (number, at): (u64, Timestamp),
    ) -> View {
        let mut view = View::of(set);
        for (each, change) in past.back_to(at) {
            if each < number {
                break;
            }
            view.take_back(change);
        }
        view
    }
}

// === impl Suspect ===

impl Suspect<'_> {
    /// Notes how many pods there were too many just before it went.
    fn note_surplus(&mut self, surplus: i64, cut: &Cut) {
        let is_just_before = cut.number == self.gone.number;
        if is_just_before {
            self.surplus = surplus;
        }
        let is_recent = cut.begun >= self.gone.at.plus(Span(-SETTLED.0));
        self.is_amid_scale_down |= surplus > 0 && (is_just_before || is_recent);
    }

    fn verdict(&self, is_whole: bool) -> Verdict {
        if self.is_explained {
            Verdict::Explained
        } else if !is_whole {
            Verdict::Unknown
        } else if self.is_amid_scale_down {
            Verdict::Unexplained(usize::try_from(self.surplus).unwrap_or(0))
        } else {
            Verdict::ByOthers
        }
    }
}
