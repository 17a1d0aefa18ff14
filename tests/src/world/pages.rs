//! Lists in flight to an agent, whole or in pages.

use agent_core::{
    api::{ApiError, Kind},
    watch::{Items, List, Part, WatchId, packed_pods::PackedPods},
};

use super::{happening::Happening, state::World};
use crate::rng::Rng;

/// The number of paged lists per thousand.
const PAGED_PER_MILLE: u64 = 300;
/// The maximum number of pages of a list.
const PAGES_MAX: u64 = 4;

/// The fate of the remaining pages.
#[derive(Clone, Copy)]
enum Rest {
    Read,
    /// The API server refuses.
    Refused,
    /// The token has expired: the list starts again.
    Expired,
}

impl World {
    /// Sends a list to the agent that requested it. Each page is read after the page before, and the remaining pages may never be
    /// read.
    pub(super) fn send_list(
        &mut self,
        life: u64,
        kind: Kind,
        id: WatchId,
        list: Result<List, ApiError>,
    ) {
        let mut delay = self.rng.delay(self.chaos.call_max);
        let listed = |list| Happening::Listed {
            life,
            kind,
            id,
            list,
        };
        // A separate generator, so that worlds without pages do not change.
        let mut rng = Rng::new(self.rng.clone().next_u64());
        let list = match list {
            Ok(list) if rng.chance(PAGED_PER_MILLE) => list,
            list => return self.schedule.after(delay, listed(list)),
        };
        let mut pages = cut(list, &mut rng);
        let rest = if rng.chance(self.chaos.refuse) {
            *rng.pick(&[Rest::Refused, Rest::Expired])
        } else {
            Rest::Read
        };
        if !matches!(rest, Rest::Read) {
            pages.pop();
        }
        self.encounters.note("List in pages");
        for page in pages {
            self.schedule.after(delay, listed(Ok(page)));
            delay += rng.delay(self.chaos.call_max);
        }
        let happening = match rest {
            Rest::Read => return,
            Rest::Refused => listed(Err(ApiError::no_answer("the next page is refused"))),
            Rest::Expired => Happening::ListArrives { life, kind, id },
        };
        self.encounters.note("List without its last page");
        self.schedule.after(delay, happening);
    }
}

/// Cuts a list into two to four pages, some of which may be empty.
fn cut(list: List, rng: &mut Rng) -> Vec<List> {
    let count = rng.between(2, PAGES_MAX);
    let mut pages: Vec<_> = (0..count)
        .map(|page| List {
            part: Part {
                begins: page == 0,
                ends: page + 1 == count,
            },
            items: match list.items {
                Items::Pods(_) => Items::Pods(PackedPods::default()),
                Items::ReplicaSets(_) => Items::ReplicaSets(Vec::new()),
            },
            invalid: Vec::new(),
            resource_version: list.resource_version.clone(),
        })
        .collect();
    pages[0].invalid = list.invalid;
    let mut at = 0;
    let mut next = || {
        at = (at + rng.between(0, 1)).min(count - 1);
        at as usize
    };
    match list.items {
        Items::Pods(pods) => {
            for pod in pods.into_pods() {
                if let Items::Pods(page) = &mut pages[next()].items {
                    page.push(&pod);
                }
            }
        }
        Items::ReplicaSets(sets) => {
            for set in sets {
                if let Items::ReplicaSets(page) = &mut pages[next()].items {
                    page.push(set);
                }
            }
        }
    }
    pages
}
