//! The creates that each ReplicaSet has lost, and how many more it may have.
//!
//! Upstream replaces a pod that is gone, failed or without its labels at once, however often that happens (kubernetes#72593). Only the rate
//! limit of its client slows it down. Decree has no such limit, so it counts. A create is *lost* if it took effect, or may have, and its pod
//! is neither an active pod of its ReplicaSet nor credited. A pod is credited if it lived for a minute, or if this controller deleted it.
//!
//! A ReplicaSet may lose an allowance: the larger of 20 and its desired pods. What it has lost beyond that, it creates later. Each period
//! has a grant, the larger of 5 and a tenth of the desired pods, which cancels as many lost creates. A period lasts 10 seconds. If a create
//! was lost in the period, or in the minute before its end, the next period is twice as long, up to 5 minutes; if not, it lasts 10 seconds.
//!
//! **Invariant:** an account is about a namespace and a name. A new UID, a new spec and a new session of the server change nothing.
//! **Invariant:** a ReplicaSet that has lost nothing has no account.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    held::Held,
    object::{Key, Phase, ReplicaSet, Resume, Span, Timestamp},
    wording::count,
};

/// A pod that lives for so long is not lost when it ends.
const LASTING: Span = Span::seconds(60);
/// The least number of creates that a ReplicaSet may lose.
const ALLOWANCE_MIN: u32 = 20;
/// The least number of lost creates that a grant cancels.
const GRANT_MIN: u32 = 5;
const PERIOD_MIN: Span = Span::seconds(10);
const PERIOD_MAX: Span = Span::seconds(300);
/// The shortest time between two resumes of a ReplicaSet that take effect.
const RESUME_EVERY: Span = Span::seconds(60);
/// The maximum number of accounts that a session leaves to the next one: those that have lost most.
const LEFT_MAX: usize = 1_000;
/// The maximum number of requests to resume that a session leaves. Beyond it, the next session takes an old request for a new one.
const REQUESTS_MAX: usize = 2 * LEFT_MAX;
/// With this number of accounts, the ledger drops those that have lost nothing.
const SWEPT_MIN: usize = 64;
/// The approximate memory of an account in bytes, without its name.
const ACCOUNT_BYTES: usize = 200;
/// The approximate memory of a request in bytes, without its texts.
const REQUEST_BYTES: usize = 100;

/// A namespace and a name.
type Place = (Arc<str>, Arc<str>);

/// The time at which a create made a pod: whole seconds since 1970, rounded down; 0 if the pod is not paid for by a create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made(u32);

/// How a create was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// The pod is gone.
    Gone,
    /// A client other than this controller has deleted it, or it was replaced because it had to leave its node.
    Deleted,
    /// It failed or succeeded.
    Phase(Phase),
    /// Its owner or its labels are not the intended ones.
    NotSelected,
    /// Its ReplicaSet was deleted, or the session ended.
    #[default]
    Unfollowed,
}

/// The lost creates of one ReplicaSet, at a time. The default is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The number of lost creates, without those that grants and resumes have cancelled.
    pub lost: u32,
    /// The largest number of desired pods while it has lost creates.
    pub desired: u32,
    /// The end of the period, when the next grant comes.
    pub grant_at: Timestamp,
    /// The length of the period.
    pub period: Span,
    /// When the latest create was lost.
    pub lost_at: Timestamp,
    /// When the next resume takes effect, if a person has asked for one.
    pub resume_at: Option<Timestamp>,
    /// When the latest resume took effect.
    pub resumed_at: Option<Timestamp>,
    /// How the latest create was lost. A recording does not keep it.
    pub latest: Loss,
}

/// The accounts of a cluster or a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    accounts: BTreeMap<Place, Account>,
    /// The requests to resume that the earlier session has seen; `None` when the first list of ReplicaSets has ended, and without an earlier
    /// session.
    requests: Option<BTreeMap<Place, Arc<str>>>,
    /// The memory of the accounts.
    bytes: usize,
    /// The memory of the requests during the first list.
    request_bytes: usize,
    /// With this number of accounts, it drops those that have lost nothing.
    sweep_at: usize,
}

impl Made {
    pub(crate) fn at(now: Timestamp) -> Self {
        Self(u32::try_from(now.0.div_euclid(1_000_000_000)).unwrap_or(0))
    }

    /// Returns whether a create paid for the pod, and it has not lived for a minute at `now`.
    pub(crate) fn is_young(self, now: Timestamp) -> bool {
        self.0 != 0 && Timestamp::from_seconds(self.0.into()).plus(LASTING) > now
    }
}

impl Account {
    fn begun(now: Timestamp, resumed_at: Option<Timestamp>) -> Self {
        Self {
            grant_at: now.plus(PERIOD_MIN),
            period: PERIOD_MIN,
            lost_at: now,
            resumed_at,
            ..Self::default()
        }
    }

    /// Returns the account at `now`: each period that has ended cancels a grant, and a due resume cancels everything. If nothing is left, and
    /// nothing was lost in a period and in the minute before its end, the account is over: no period has begun after it.
    fn at(mut self, now: Timestamp) -> Self {
        if let Some(at) = self.resume_at.filter(|at| *at <= now) {
            return Self::begun(at, Some(at));
        }
        while self.grant_at <= now {
            self.lost = self.lost.saturating_sub(self.grant());
            if self.grant_at <= self.lost_at.plus(self.period.max(LASTING)) {
                let twice = Span(self.period.0.saturating_mul(2));
                self.period = twice.clamp(PERIOD_MIN, PERIOD_MAX);
            } else if self.lost == 0 {
                break;
            } else {
                self.period = PERIOD_MIN;
                self.skip_quiet_periods(now);
            }
            self.grant_at = self.grant_at.plus(self.period);
        }
        self
    }

    /// Ends periods without a loss, all of the same length, at once, but not the last one.
    fn skip_quiet_periods(&mut self, now: Timestamp) {
        let ended = now.since(self.grant_at).0 / PERIOD_MIN.0;
        let lasting = i64::from((self.lost - 1) / self.grant());
        let skipped = (ended - 1).min(lasting).max(0);
        self.lost -= u32::try_from(skipped).unwrap_or(0) * self.grant();
        self.grant_at = self.grant_at.plus(Span(skipped * PERIOD_MIN.0));
    }

    fn lose(&mut self, now: Timestamp, desired: u32, (count, how): (u32, Loss)) {
        *self = self.at(now);
        if self.grant_at <= now {
            *self = Self::begun(now, self.resumed_at);
        }
        self.lost = self.lost.saturating_add(count);
        self.desired = self.desired.max(desired);
        (self.lost_at, self.latest) = (now, how);
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.grant_at.max(self.next_resume(now)) <= now
    }

    /// Returns when a resume that a person asks for now takes effect.
    fn next_resume(&self, now: Timestamp) -> Timestamp {
        let later = self.resumed_at.map(|at| at.plus(RESUME_EVERY));
        later.map_or(now, |later| later.max(now))
    }

    fn grant(&self) -> u32 {
        (self.desired / 10).max(GRANT_MIN)
    }

    /// Returns how many of the lacking pods may be created.
    pub(crate) fn admit(&self, desired: u32, lacking: usize) -> usize {
        let beyond = self.lost.saturating_sub(desired.max(ALLOWANCE_MIN));
        lacking.saturating_sub(beyond as usize)
    }

    pub(crate) fn next_grant(&self) -> Timestamp {
        self.resume_at
            .map_or(self.grant_at, |at| at.min(self.grant_at))
    }

    pub(crate) fn explain(&self, key: &Key, desired: u32) -> String {
        let (lost, allowed) = (count(self.lost, "pod"), desired.max(ALLOWANCE_MIN));
        let (how, grant) = (self.latest.words(), self.grant());
        let every = self.period.0 / 1_000_000_000;
        format!(
            "{lost} ended within a minute of being created, and {allowed} may; the latest {how}. {grant} more may be created after \
             each {every}s, and all after: decree resume {key}"
        )
    }
}

impl Loss {
    const fn words(self) -> &'static str {
        match self {
            Self::Gone => "is gone",
            Self::Deleted => "was deleted by somebody else, or had to leave its node",
            Self::Phase(Phase::Succeeded) => "has succeeded",
            Self::Phase(_) => "has failed",
            Self::NotSelected => {
                "has other labels or another owner than it was created with, as a webhook may set them"
            }
            Self::Unfollowed => "was young when its ReplicaSet was deleted or the session ended",
        }
    }
}

impl Ledger {
    /// Adds an account.
    pub fn insert(&mut self, namespace: Arc<str>, name: Arc<str>, account: Account) {
        let bytes = bytes(&name);
        if self.accounts.insert((namespace, name), account).is_none() {
            self.bytes += bytes;
        }
    }

    /// Adds a request to resume that the earlier session has seen at a ReplicaSet.
    pub fn insert_request(&mut self, namespace: Arc<str>, name: Arc<str>, request: Arc<str>) {
        let requests = self.requests.get_or_insert_default();
        requests.insert((namespace, name), request);
    }

    /// Returns the account of a ReplicaSet at `now`, if it has lost creates.
    pub(crate) fn account(&self, now: Timestamp, key: &Key) -> Option<Account> {
        let account = self.accounts.get(&place(key))?.at(now);
        (account.lost > 0).then_some(account)
    }

    /// Records lost creates of a ReplicaSet with this number of desired pods.
    pub(crate) fn lose(&mut self, now: Timestamp, key: &Key, desired: u32, lost: (u32, Loss)) {
        if lost.0 == 0 {
            return;
        }
        if let Some(account) = self.accounts.get_mut(&place(key)) {
            return account.lose(now, desired, lost);
        }
        let mut account = Account::default();
        account.lose(now, desired, lost);
        self.insert(Arc::clone(&key.namespace), Arc::clone(&key.name), account);
        if self.accounts.len() >= self.sweep_at.max(SWEPT_MIN) {
            self.retain(|account| !account.at(now).is_over(now));
            self.sweep_at = 2 * self.accounts.len();
        }
    }

    /// Notes that a person resumes ReplicaSets. Their lost creates are cancelled, at once if no resume has taken effect for a minute. Returns
    /// the ReplicaSets by namespace and name.
    pub(crate) fn resume(
        &mut self,
        now: Timestamp,
        key: &Key,
        extent: Resume,
    ) -> Vec<(Arc<str>, Arc<str>)> {
        let mut resumed = Vec::new();
        for (of, account) in &mut self.accounts {
            let is_meant = match extent {
                Resume::All => true,
                Resume::ReplicaSet => *of == place(key),
            };
            if is_meant {
                *account = account.at(now);
                let next = account.next_resume(now);
                account.resume_at.get_or_insert(next);
                resumed.push(of.clone());
            }
        }
        resumed
    }

    /// Begins a session that has taken the ledger over. Until [`Self::end_first_list`], requests that the earlier session has not seen count.
    pub(crate) fn begin_first_list(&mut self) {
        let requests = self.requests.get_or_insert_default();
        let bytes =
            |((_, name), request): (&Place, &Arc<str>)| REQUEST_BYTES + name.len() + request.len();
        self.request_bytes = requests.iter().map(bytes).sum();
    }

    pub(crate) fn end_first_list(&mut self) {
        (self.requests, self.request_bytes) = (None, 0);
    }

    /// Does the same as [`Self::resume`] for a ReplicaSet that becomes known, if its request came between the sessions.
    pub(crate) fn resume_missed(
        &mut self,
        now: Timestamp,
        key: &Key,
        request: &str,
    ) -> Vec<(Arc<str>, Arc<str>)> {
        let seen = self.requests.as_ref();
        let is_missed =
            seen.is_some_and(|seen| seen.get(&place(key)).is_none_or(|it| **it != *request));
        if request.is_empty() || !is_missed {
            return Vec::new();
        }
        self.resume(now, key, Resume::of(request))
    }

    /// Prepares the ledger for the next session: it keeps the accounts that have lost most, of equal ones the first by name, with times that
    /// count from `now`, and the requests of `sets` that concern them.
    pub(crate) fn leave<'a>(
        mut self,
        now: Timestamp,
        sets: impl Iterator<Item = &'a ReplicaSet>,
    ) -> Self {
        let mut losses = Vec::new();
        for account in self.accounts.values_mut() {
            *account = account.at(now);
            losses.push(account.lost);
        }
        losses.sort_unstable_by(|a, b| b.cmp(a));
        losses.truncate(LEFT_MAX);
        let least = losses.last().map_or(1, |least| (*least).max(1));
        let mut equal = losses.iter().filter(|lost| **lost == least).count();
        self.retain(|account| {
            let is_equal = account.lost == least && equal > 0;
            equal -= usize::from(is_equal);
            is_equal || account.lost > least
        });
        self.shift(Span(now.0.saturating_neg()));
        let sets = sets.filter(|set| !set.resume.is_empty());
        let shown = sets.map(|set| (place(&set.key), Arc::clone(&set.resume)));
        // If the first list has not ended, it has not shown all of the earlier ones again.
        let requests = self.requests.take().into_iter().flatten().chain(shown);
        let concerning = requests.filter(|(of, request)| {
            self.accounts.contains_key(of) || Resume::of(request) == Resume::All
        });
        self.requests = Some(concerning.take(REQUESTS_MAX).collect());
        self.request_bytes = 0;
        self
    }

    pub(crate) fn shift(&mut self, by: Span) {
        for account in self.accounts.values_mut() {
            account.grant_at = account.grant_at.plus(by);
            account.lost_at = account.lost_at.plus(by);
            account.resumed_at = account.resumed_at.map(|at| at.plus(by));
            account.resume_at = account.resume_at.map(|at| at.plus(by));
        }
    }

    fn retain(&mut self, mut keep: impl FnMut(&Account) -> bool) {
        self.accounts.retain(|_, account| keep(account));
        self.bytes = self.accounts.keys().map(|(_, name)| bytes(name)).sum();
    }

    /// The accounts with their namespaces and names, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>, &Account)> {
        let accounts = self.accounts.iter();
        accounts.map(|((namespace, name), account)| (namespace, name, account))
    }

    /// The requests to resume that the earlier session has seen, with the namespaces and names of their ReplicaSets, in their order.
    pub fn requests(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>, &Arc<str>)> {
        let requests = self.requests.iter().flatten();
        requests.map(|((namespace, name), request)| (namespace, name, request))
    }

    /// The number of accounts and requests.
    pub fn len(&self) -> usize {
        self.accounts.len() + self.requests().count()
    }

    /// Whether it has no account.
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }
}

impl Held for Ledger {
    fn bytes(&self) -> usize {
        let Self {
            // `bytes` counts the accounts, and `request_bytes` the requests, with their places.
            accounts: _,
            requests: _,
            bytes,
            request_bytes,
            sweep_at: _,
        } = self;
        bytes + request_bytes
    }
}

fn place(key: &Key) -> Place {
    (Arc::clone(&key.namespace), Arc::clone(&key.name))
}

fn bytes(name: &str) -> usize {
    ACCOUNT_BYTES + name.len()
}
