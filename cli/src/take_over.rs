//! `decree take-over` and `decree hand-back`: a person declares whether the built-in ReplicaSet controller is off.
//!
//! The declaration is a record in the probe of the agents, written with the credentials of the person. Both commands wait for its effect:
//! an agent acts only after it has read the probe as leader, so no agent begins after a hand-back.

use std::{collections::BTreeMap, num::NonZeroU16, time::Duration};

use agent_core::{
    api::ApiError,
    lease::{Record, shard::Shard},
    pace::since,
    take_over::{BuiltIn, Declaration, ProbeState},
};
use agent_kube::{Clock, KubeCluster, PROBE, Probe, Resource};
use jiff::{SignedDuration, Timestamp};
use tokio::time::{sleep, timeout};

use crate::{
    args::DeclareArgs,
    exit::{Exit, Failure},
    near,
    page::{Io, one_line},
    resume::{connect, refused},
    server::block_on,
};

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long an agent leads by this declaration until it acts, or has found another controller on.
const BEGINS_WITHIN: SignedDuration = SignedDuration::from_secs(3);
const PERMISSIONS: &str = "this takes the permissions to list replicasets.apps, to patch decree-probe, and to list leases";
const OFF_HINT: &str = "turn it off with --controllers=*,-replicaset-controller on each control-plane node, and take over again";

/// The maximum number of shards in a message.
const UNSERVED_MAX: usize = 8;

/// The Leases of the agents, as seen so far.
#[derive(Debug, Default)]
struct Leases(BTreeMap<String, Sighting>);

#[derive(Debug)]
struct Sighting {
    version: String,
    /// When this version was first seen.
    since: Timestamp,
    /// Whether another version was seen before, so that its holder lives.
    is_renewed: bool,
}

/// A Lease that somebody holds.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    lease: String,
    holder: String,
    /// Whether the holder was seen to renew the Lease.
    is_renewed: bool,
}

/// Declares whether the built-in controller `is_off`.
pub(crate) fn run(args: &DeclareArgs, is_off: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    block_on(async {
        let cluster = connect(&args.kube.config(), args.timeout).await?;
        let mut state = "the cluster does not answer".to_owned();
        let declaring = declare(args, is_off, cluster, &mut state, io);
        let declared = timeout(args.timeout, declaring).await;
        let said = declared.unwrap_or_else(|_| Err(Failure::new(Exit::No, state)))?;
        writeln!(io.stdout, "{}", one_line(&said))?;
        Ok(Exit::Done)
    })
}

/// Records a declaration, and waits for its effect, which it returns in words. `state` tells what it waits for.
async fn declare(
    args: &DeclareArgs,
    is_off: bool,
    cluster: KubeCluster,
    state: &mut String,
    io: &mut Io<'_>,
) -> Result<String, Failure> {
    let refused = |error: ApiError| refused(error, PERMISSIONS);
    let namespace = namespace(args, &cluster).await?;
    let probe = Probe {
        cluster: cluster.clone(),
        namespace,
    };
    let user = cluster.user().await.map_err(refused)?;
    let declaration = Declaration::by_person(Timestamp::now(), is_off, &user);
    probe.declare(&declaration).await.map_err(refused)?;
    let (namespace, text) = (&probe.namespace, &declaration.text);
    let recorded = format!("{namespace}/{PROBE}: {text}");
    writeln!(io.stdout, "{}", one_line(&recorded))?;
    // A step of the wall clock does not shorten a Lease.
    let clock = Clock::starting_at(Timestamp::now());
    let mut leases = Leases::default();
    let mut leading = None;
    loop {
        let listed = cluster.list_leases(namespace).await.map_err(refused)?;
        let now = clock.now();
        let held = leases.held(now, listed, &args.lease_name);
        let seen = probe.read().await.map_err(refused)?;
        check(&seen.unwrap_or_default(), &declaration)?;
        let awaited = if is_off {
            match acting(&held, &args.lease_name) {
                Ok((who, are_renewed)) => {
                    let since = *leading.get_or_insert(now);
                    if are_renewed && now.duration_since(since) >= BEGINS_WITHIN {
                        return Ok(format!("{who} acts"));
                    }
                    format!("{who} does not act yet")
                }
                Err(missing) => {
                    leading = None;
                    missing
                }
            }
        } else {
            match held.first() {
                None => return Ok("Decree has stopped: turn the built-in controller on".into()),
                Some(first) => format!("{} has not stopped yet", first.holder),
            }
        };
        *state = format!("declared, but {awaited}");
        sleep(LOOK_EVERY).await;
    }
}

/// Returns who acts by these Leases, and whether all of them were seen to be renewed. Agents of N shards hold the Lease `name` together, as
/// `N shards`, whichever of them is there: they act once each shard has an agent, which holds the Lease of the shard.
///
/// # Errors
/// Says whose Lease nobody holds.
fn acting(held: &[Held], name: &str) -> Result<(String, bool), String> {
    let first = held.first();
    let first = first.ok_or("no agent leads: look at the logs of the agents")?;
    let layout = held.iter().find(|it| it.lease == name);
    let count: Option<NonZeroU16> =
        layout.and_then(|it| it.holder.strip_suffix(" shards")?.parse().ok());
    let Some(count) = count else {
        return Ok((first.holder.clone(), first.is_renewed));
    };
    let (mut unserved, mut are_renewed) = (Vec::new(), true);
    for shard in (0..count.get()).filter_map(|index| Shard::new(index, count)) {
        let lease = shard.lease_name(name);
        match held.iter().find(|it| it.lease == lease) {
            Some(its) => are_renewed &= its.is_renewed,
            None => unserved.push(shard.index().to_string()),
        }
    }
    if unserved.is_empty() {
        return Ok((format!("an agent for each of {count} shards"), are_renewed));
    }
    let unserved = near::first_of(&unserved, UNSERVED_MAX);
    Err(format!("of {count} shards, nobody serves {unserved}"))
}

/// Checks that the declaration still holds. An agent that finds another controller replaces it.
fn check(seen: &ProbeState, declaration: &Declaration) -> Result<(), Failure> {
    let cause = match &seen.declaration {
        Some(record) if record == declaration => return Ok(()),
        Some(record) if record.built_in == BuiltIn::FoundOn => {
            return Err(Failure::new(Exit::No, &*record.text).hint(OFF_HINT));
        }
        Some(record) => format!("somebody else has declared meanwhile: {}", record.text),
        None => format!("somebody has deleted {PROBE} meanwhile"),
    };
    Err(Failure::new(Exit::No, cause))
}

/// The namespace of the probe: the given one, or the only one.
async fn namespace(args: &DeclareArgs, cluster: &KubeCluster) -> Result<String, Failure> {
    let found = cluster.probe_namespaces().await;
    let mut found = found.map_err(|error| refused(error, PERMISSIONS))?;
    let given = args.lease_namespace.as_ref();
    found.retain(|it| given.is_none_or(|given| it == given));
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            let place = given.map_or_else(String::new, |name| format!(" in namespace {name}"));
            let cause = format!("there is no {PROBE}{place}: no agent has stood by");
            Err(Failure::new(Exit::No, cause)
                .hint("start the agents first; they create it when they stand by"))
        }
        several => {
            let cause = format!("{PROBE} exists in the namespaces {}", several.join(", "));
            Err(Failure::new(Exit::Usage, cause).hint("choose one with --lease-namespace"))
        }
    }
}

/// The namespace of the Lease and the probe: the given one, that of this pod, or the only one with a probe; otherwise `kube-system`, as for an
/// agent. Agents of a custom resource have no probe.
pub(crate) async fn lease_namespace(
    given: Option<&str>,
    cluster: &KubeCluster,
    resource: &Resource,
) -> String {
    if let Some(known) = given.or_else(|| cluster.own_namespace()) {
        return known.to_owned();
    }
    let mut found = Vec::new();
    if !resource.is_custom() {
        // Not everyone may list all namespaces.
        found = cluster.probe_namespaces().await.unwrap_or_default();
    }
    match found.as_slice() {
        [only] => only.clone(),
        _ => "kube-system".to_owned(),
    }
}

impl Leases {
    /// Takes a list, and returns the Leases that are held of this name and of its shards (`NAME-0`, `NAME-east`). A Lease counts as held until
    /// it has not changed for its whole duration, by the clock of this process. The Leases by which agents of 0.1.0 counted themselves
    /// (`NAME-member-…`) let nobody act, and those agents may leave them behind.
    fn held(&mut self, now: Timestamp, listed: Vec<(String, Record)>, name: &str) -> Vec<Held> {
        let is_own = |lease: &str| {
            let shard = |rest: &str| rest.starts_with('-') && !rest.starts_with("-member-");
            let rest = lease.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || shard(rest))
        };
        let held = listed.into_iter().filter_map(|(lease, record)| {
            let is_held = is_own(&lease) && !record.holder.is_empty();
            let seen = self.0.entry(lease.clone()).or_insert_with(|| Sighting {
                version: record.resource_version.clone(),
                since: now,
                is_renewed: false,
            });
            if seen.version != record.resource_version {
                *seen = Sighting {
                    version: record.resource_version,
                    since: now,
                    is_renewed: true,
                };
            }
            let lasts = since(now, seen.since) < record.duration;
            (is_held && lasts).then_some(Held {
                lease,
                holder: record.holder,
                is_renewed: seen.is_renewed,
            })
        });
        // Each Lease is looked at, so that several run out at the same time.
        held.collect()
    }
}

#[cfg(test)]
mod tests {
    use agent_core::lease::LeaseConfig;

    use super::*;

    fn held(lease: &str, holder: &str, is_renewed: bool) -> Held {
        Held {
            lease: lease.into(),
            holder: holder.into(),
            is_renewed,
        }
    }

    fn lease(name: &str, holder: &str, version: u32) -> (String, Record) {
        let record = Record {
            holder: holder.into(),
            duration: Duration::from_secs(15),
            resource_version: version.to_string(),
            ..Record::default()
        };
        (name.into(), record)
    }

    /// Leases by name. At a second, a Lease has a holder and a version, and is held, renewed or free.
    const LOOKS: &str = "
decree-agent: 0 a 1 held, 14 a 1 held, 15 a 1 free
decree-agent-7: 0 a 1 held, 14 a 2 renewed, 28 a 2 renewed
decree-agent: 0 a 1 held, 2 - 2 free, 3 b 3 renewed
decree-agent-east: 0 a 1 held, 1 - 2 free, 2 b 3 renewed
decree-agents: 0 a 1 free, 1 a 2 free, 2 a 3 free
decree-agent-member-a: 0 a 1 free, 1 a 2 free, 2 a 3 free";

    #[test]
    fn lease_is_held_until_it_is_given_back_or_unchanged_for_its_duration() {
        for row in LOOKS.lines().skip(1) {
            let (name, looks) = row.split_once(": ").expect("a name");
            let mut leases = Leases::default();
            for look in looks.split(", ") {
                let words: Vec<_> = look.split(' ').collect();
                let [second, holder, version, state] = words[..] else {
                    panic!("{look}")
                };
                let second = Duration::from_secs(second.parse().expect("a number"));
                let version = version.parse().expect("a number");
                let listed = lease(name, holder.trim_matches('-'), version);
                let now = Timestamp::UNIX_EPOCH + second;
                let seen = leases.held(now, vec![listed], "decree-agent");
                let expected = (state != "free").then(|| held(name, holder, state == "renewed"));
                assert_eq!(seen, Vec::from_iter(expected), "{name}: {look}");
            }
        }
    }

    #[test]
    fn leases_of_dead_agents_run_out_at_the_same_time() {
        let mut leases = Leases::default();
        let all = || {
            [
                ("decree-agent", "a"),
                ("decree-agent-0", "b"),
                ("decree-agent-1", "c"),
            ]
        };
        let mut held_at = |second| {
            let now = Timestamp::UNIX_EPOCH + Duration::from_secs(second);
            let listed = all().map(|(name, holder)| lease(name, holder, 1));
            leases.held(now, listed.into(), "decree-agent")
        };
        assert_eq!(held_at(0)[0], held("decree-agent", "a", false));
        assert!(held_at(15).is_empty());
    }

    #[test]
    fn shards_act_once_each_has_an_agent_that_renews_its_lease() {
        let name = "decree-agent";
        let whole = LeaseConfig {
            identity: "decree-agent-0-5f1d".into(),
            namespace: "decree-system".into(),
            name: name.into(),
            duration: Duration::from_secs(15),
            margin: Duration::ZERO,
            shared: false,
        };
        let shards: Shard = "0/12".parse().expect("a shard");
        let layout = shards.layout_lease(&whole).identity;
        // A letter stands for each shard: its Lease is free, held, or renewed.
        for (leases, expected) in [
            (
                "------------",
                Err("of 12 shards, nobody serves 0, 1, 2, 3, 4, 5, 6, 7 and 4 more"),
            ),
            ("rrr-rrrrrrh-", Err("of 12 shards, nobody serves 3, 11")),
            ("rrrrrrrrrrhr", Ok(false)),
            ("rrrrrrrrrrrr", Ok(true)),
        ] {
            let of_shards = leases.chars().enumerate().filter(|(_, it)| *it != '-');
            let of_shards = of_shards
                .map(|(index, it)| held(&format!("{name}-{index}"), "a", it == 'r'))
                .chain([held("decree-agent-east", "b", false)]);
            let all: Vec<_> = [held(name, &layout, true)]
                .into_iter()
                .chain(of_shards)
                .collect();
            let seen = acting(&all, name).map(|(_, are_renewed)| are_renewed);
            assert_eq!(seen, expected.map_err(str::to_owned), "{leases}");
        }
        let one = acting(&[held(name, "a", false)], name);
        assert_eq!(one, Ok(("a".to_owned(), false)));
        assert!(acting(&[], name).is_err());
    }
}
