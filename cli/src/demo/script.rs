//! The script of the demo: its output, its acts on the cluster, and its waits.

use std::time::Duration;

use agent_fake::Cluster;
use tokio::{
    select,
    time::{Instant, sleep},
};

use super::standing;
use crate::{
    args::Named,
    exit::{Exit, Failure},
    explain, page,
    sandbox::{CLUSTER, DecisionLog, Sandbox, act::Act, beginning::NAMESPACE, poll},
    streams::Io,
    table::one_line,
};

/// The lines of `decree explain` that the demo shows.
const EXPLAINED: [&str; 4] = ["Cause:", "State:", "Refused:", "Held back:"];
/// The pauses of the text, so that a person can follow it. The script never pauses while it waits for something.
const AFTER_LINE: Duration = Duration::from_millis(500);
const AFTER_PART: Duration = Duration::from_millis(1_500);

/// Owns everything that the demo prints and runs.
pub(super) struct Script<'a, 'io> {
    pub(super) sandbox: Sandbox,
    pub(super) io: &'a mut Io<'io>,
    /// Whether a person reads along.
    is_read: bool,
    pub(super) deadline: Duration,
    log: DecisionLog,
    parts: Vec<String>,
    begun: Instant,
}

// === impl Script ===

impl<'a, 'io> Script<'a, 'io> {
    pub(super) fn new(
        sandbox: Sandbox,
        is_read: bool,
        deadline: Duration,
        io: &'a mut Io<'io>,
    ) -> Self {
        Self {
            sandbox,
            io,
            is_read,
            deadline,
            log: DecisionLog::default(),
            parts: Vec::new(),
            begun: Instant::now(),
        }
    }

    pub(super) fn say(&mut self, text: &str) -> Result<(), Failure> {
        Ok(page::say(text, self.io)?)
    }

    async fn pause(&self, time: Duration) {
        if self.is_read {
            sleep(time).await;
        }
    }

    pub(super) async fn part(&mut self, title: &str) -> Result<(), Failure> {
        if !self.parts.is_empty() {
            self.pause(AFTER_PART).await;
        }
        self.parts.push(title.to_owned());
        let number = self.parts.len();
        self.say(&format!("\n{number}. {title}"))
    }

    /// Prints a line of a part, and pauses.
    pub(super) async fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.say(format!("  {text}").trim_end())?;
        self.pause(AFTER_LINE).await;
        Ok(())
    }

    /// Prints a command as typed, before the script runs it.
    pub(super) async fn command(&mut self, words: &str) -> Result<(), Failure> {
        self.line(&format!("$ decree {words}")).await
    }

    /// Prints `what` if `is_so`, and otherwise ends the demo.
    pub(super) async fn check(&mut self, is_so: bool, what: &str) -> Result<(), Failure> {
        if is_so {
            return self.line(&format!("ok: {what}")).await;
        }
        Err(self.failed(&format!("it is not so that {what}")))
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&Cluster) -> T) -> T {
        self.sandbox.cluster.with(|cluster| look(cluster))
    }

    /// The number of active pods of a ReplicaSet.
    pub(super) fn count(&self, set: &str) -> usize {
        self.look(|cluster| standing::pods_of(cluster, set).len())
    }

    /// As `decree demo scale` does.
    pub(super) async fn scale(&mut self, set: &str, replicas: i32) -> Result<(), Failure> {
        let act = Act::Scale {
            namespace: NAMESPACE.to_owned(),
            name: set.to_owned(),
            replicas,
        };
        self.act(&format!("demo scale {set} {replicas}"), &act)
            .await
    }

    /// As `decree demo quota` does.
    pub(super) async fn quota(&mut self, pods: u32) -> Result<(), Failure> {
        let namespace = NAMESPACE.to_owned();
        let act = Act::Quota { namespace, pods };
        self.act(&format!("demo quota {pods}"), &act).await
    }

    async fn act(&mut self, words: &str, act: &Act) -> Result<(), Failure> {
        self.command(words).await?;
        let done = self.sandbox.cluster.with(|cluster| act.perform(cluster));
        done.map(drop).map_err(|error| self.failed(&error))
    }

    pub(super) async fn until(&mut self, is_so: impl Fn(&Cluster) -> bool) -> Result<(), Failure> {
        let end = Instant::now() + self.deadline;
        loop {
            // To miss no change, ask for the next change before the check.
            let changed = self.sandbox.cluster.changed();
            if self.look(&is_so) {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(self.too_late());
            }
            select! {
                biased;
                decided = self.sandbox.running.next() => {
                    if let Some(decided) = decided? {
                        self.log.note(&decided.decision);
                    }
                }
                () = changed => {}
            }
        }
    }

    /// Waits until every ReplicaSet has settled, and prints the decisions until then.
    pub(super) async fn settle(&mut self) -> Result<(), Failure> {
        self.until(standing::all_settled).await?;
        self.decisions().await
    }

    /// Waits until the server has seen the whole cluster.
    pub(super) async fn synced(&mut self) -> Result<(), Failure> {
        let synced = poll(self.deadline, async || self.sandbox.running.synced().await).await?;
        synced.map(drop).ok_or_else(|| self.too_late())
    }

    /// Prints the decisions since the last call.
    pub(super) async fn decisions(&mut self) -> Result<(), Failure> {
        while let Some(decided) = self.sandbox.running.server.feed.try_next() {
            self.log.note(&decided.decision);
        }
        self.log.end_repeats();
        for line in self.log.take() {
            self.line(&line).await?;
        }
        Ok(())
    }

    /// Asks the server for the state of a ReplicaSet until the answer has a line with this label, and prints the explanation.
    pub(super) async fn explain(&mut self, set: &str, label: &str) -> Result<String, Failure> {
        let client = &self.sandbox.running.server.client;
        let lines = poll(self.deadline, async || {
            let request = named(set).request(CLUSTER);
            let answer = client.answer(client.inspection().get_replica_set(request).await)?;
            let lines = explain::state(&answer);
            Ok(Some(lines).filter(|lines| lines.iter().any(|(each, _)| *each == label)))
        });
        let lines = lines.await?.ok_or_else(|| self.too_late())?;
        self.decisions().await?;
        self.command(&format!("explain {NAMESPACE}/{set}")).await?;
        for (each, text) in &lines {
            if EXPLAINED.contains(each) {
                self.line(&format!("{each:<11}{}", one_line(text))).await?;
            }
        }
        let said = lines.into_iter().find(|(each, _)| *each == label);
        Ok(said.map(|(_, text)| text).unwrap_or_default())
    }

    /// Prints the result, and what the user can do next.
    pub(super) fn sum_up(&mut self) -> Result<(), Failure> {
        let took = self.begun.elapsed().as_secs_f64();
        let parts = match self.parts.len() {
            1 => "The part".to_owned(),
            parts => format!("All {parts} parts"),
        };
        self.say(&format!("\n{parts} went as told, in {took:.1} s."))?;
        self.say(
            "\nNext to the controller of your own cluster, reading only and writing nothing:\n  \
             decree up --cluster kubernetes",
        )
    }

    /// A failure within this part.
    pub(super) fn failed(&self, cause: &str) -> Failure {
        let part = self.parts.last().map_or("", String::as_str);
        Failure::new(Exit::No, format!("part \"{part}\": {cause}"))
    }

    /// The failure of a wait at the deadline.
    pub(super) fn too_late(&self) -> Failure {
        let limit = self.deadline.as_secs_f64();
        let open = self.look(standing::unsettled);
        let open = open.map_or_else(String::new, |open| format!(": {open}"));
        self.failed(&format!("it did not get there within {limit} s{open}"))
            .hint("allow more time with --deadline, or run again with --log-level info to see why")
    }
}

/// A ReplicaSet of the demo.
pub(super) fn named(set: &str) -> Named {
    Named::new(NAMESPACE, set)
}
