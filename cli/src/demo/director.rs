//! Runs steps: acts on the cluster, waits for what should come of it, and prints what happens meanwhile.

use std::{
    io::{self, Write},
    time::Duration,
};

use agent_fake::{ApiError, Cluster};
use decree::v1;
use tokio::time::{Instant, sleep};

use super::{
    beginning::NAMESPACE,
    chronicle::Chronicle,
    scene::{self, Creates, Standing},
    stage::{CLUSTER, Stage},
};
use crate::{
    decision,
    exit::{Exit, Failure},
    page,
    streams::Io,
    table::Table,
};

/// How often the cluster is looked at, should nothing be reported.
const TICK: Duration = Duration::from_millis(100);

/// How long the text rests, so that a person can follow it. It never rests while something is waited for or measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// After each line of a step.
    line: Duration,
    /// After each step.
    step: Duration,
}

/// A step before it is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    pub(super) title: &'a str,
    /// What is true once its goal is reached.
    pub(super) reached: &'a str,
}

/// One step as the summary has it.
#[derive(Debug)]
struct Done {
    title: String,
    took: Duration,
    creates: Creates,
    deletes: i32,
}

/// Owns everything that is printed and happens.
pub(crate) struct Director<'a, 'io> {
    stage: Stage,
    deadline: Duration,
    pace: Pace,
    io: &'a mut Io<'io>,
    chronicle: Chronicle,
    done: Vec<Done>,
}

// === impl Pace ===

impl Pace {
    /// Slow enough to read along.
    pub(crate) const READABLE: Self = Self {
        line: Duration::from_millis(500),
        step: Duration::from_millis(1_500),
    };
}

// === impl Director ===

impl<'a, 'io> Director<'a, 'io> {
    pub(crate) fn new(stage: Stage, pace: Pace, deadline: Duration, io: &'a mut Io<'io>) -> Self {
        Self {
            stage,
            deadline,
            pace,
            io,
            chronicle: Chronicle::default(),
            done: Vec::new(),
        }
    }

    pub(crate) fn introduce(&mut self) -> Result<(), Failure> {
        let server = self.stage.running.addresses.grpc.clone();
        self.say(&format!(
            "decree-server at http://{server}, decree-agent, embedded cluster \"{CLUSTER}\""
        ))
    }

    /// Acts, and waits until what should come of it is there. `act` says what it did; `is_reached` looks at the cluster and
    /// at how many pods were chosen to be deleted.
    pub(super) async fn step(
        &mut self,
        step: Step<'_>,
        act: impl FnOnce(&mut Cluster) -> Result<String, ApiError>,
        is_reached: impl Fn(&Cluster, i32) -> bool,
    ) -> Result<(), Failure> {
        let Step { title, reached } = step;
        self.collect();
        // The agent is at work as soon as it runs: what it did before the first step is a part of that.
        let before = match self.done.is_empty() {
            true => Creates::default(),
            false => {
                self.chronicle.begin();
                self.creates()
            }
        };
        self.say(&format!("\nStep {}: {title}", self.done.len() + 1))?;
        let began = Instant::now();
        let acted = self.stage.cluster.with(act).map_err(|error| {
            let cause = format!(
                "step \"{title}\": the cluster refused it: {}",
                error.message
            );
            Failure::new(Exit::No, cause)
        })?;
        self.say(&format!("  > {acted}"))?;
        let ended = self.until(title, is_reached).await;
        let took = began.elapsed();
        self.chronicle.end_repeats();
        self.print_decisions().await?;
        ended?;
        self.say(&format!("  {reached}, after {:.1} s", took.as_secs_f64()))?;
        self.done.push(Done {
            title: title.to_owned(),
            took,
            creates: self.creates().since(before),
            deletes: self.chronicle.deletes,
        });
        sleep(self.pace.step).await;
        Ok(())
    }

    /// Asks the server which pods would go if a ReplicaSet had so many replicas, and prints them with the rule of each.
    /// Returns their names.
    pub(super) async fn preview(
        &mut self,
        set: &str,
        replicas: i32,
    ) -> Result<Vec<String>, Failure> {
        let request = v1::SimulateRequest {
            cluster: CLUSTER.to_owned(),
            namespace: NAMESPACE.to_owned(),
            name: set.to_owned(),
            replicas: Some(replicas),
        };
        let client = &self.stage.running.client;
        let answer = client.decisions().simulate(request).await;
        let answer = answer.map_err(|status| client.failure(&status))?;
        let decision = answer.into_inner().decision.unwrap_or_default();
        let command = format!("decree simulate {}/{set} --replicas {replicas}", NAMESPACE);
        self.line(&format!("$ {command}")).await?;
        let mut names = Vec::new();
        for victim in &decision.deletes {
            let name = victim.pod.as_ref().map_or("-", |pod| &pod.name);
            let reason = victim.reason.clone().unwrap_or_default();
            let rule = decision::word(reason.rule());
            self.line(&format!("delete {name}  {rule:<14}  {}", reason.detail))
                .await?;
            names.push(name.to_owned());
        }
        Ok(names)
    }

    /// Returns the names of the pods that were chosen to be deleted in the last step.
    pub(super) fn victims(&self) -> &[String] {
        &self.chronicle.victims
    }

    /// Waits until something is so in the cluster.
    pub(super) async fn until(
        &mut self,
        title: &str,
        is_reached: impl Fn(&Cluster, i32) -> bool,
    ) -> Result<(), Failure> {
        let end = Instant::now() + self.deadline;
        loop {
            self.collect();
            let deletes = self.chronicle.deletes;
            let is_reached = |cluster: &mut Cluster| is_reached(cluster, deletes);
            if self.stage.cluster.with(is_reached) {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(self.not_reached(title));
            }
            self.stage.running.check()?;
            self.wait().await;
        }
    }

    /// Returns the message of the first failure that a ReplicaSet shows.
    pub(super) fn failure(&self) -> Option<String> {
        let mut standings = self.standings().into_iter();
        standings.find_map(|standing| standing.failure)
    }

    /// Prints a line of a step.
    pub(super) async fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.say(&format!("  {text}"))?;
        sleep(self.pace.line).await;
        Ok(())
    }

    /// Prints a line.
    pub(super) fn say(&mut self, text: &str) -> Result<(), Failure> {
        for line in text.split('\n').flat_map(page::wrap) {
            writeln!(self.io.stdout, "{line}")?;
        }
        Ok(self.io.stdout.flush()?)
    }

    /// Prints what each step took and how everything stands.
    pub(super) fn sum_up(&mut self) -> Result<(), Failure> {
        let mut out = Vec::new();
        writeln!(out)?;
        write_steps(&self.done, &mut out)?;
        writeln!(out)?;
        write_standings(&self.standings(), &mut out)?;
        self.io.stdout.write_all(&out)?;
        let steps = match self.done.len() {
            1 => "The step".to_owned(),
            count => format!("All {count} steps"),
        };
        let took: Duration = self.done.iter().map(|step| step.took).sum();
        let took = took.as_secs_f64();
        self.say(&format!("\n{steps} reached the goal, in {took:.1} s."))
    }

    /// Says what can be done while everything keeps running.
    pub(crate) fn invite(&mut self) -> Result<(), Failure> {
        let addresses = self.stage.running.addresses.clone();
        let set = self.standings().into_iter().next().map(|it| it.path);
        let set = set.unwrap_or_else(|| "NAMESPACE/NAME".to_owned());
        if let Some(admin) = addresses.admin {
            self.say(&format!("\nConsole: http://{admin}/console/"))?;
        }
        self.say("\nEverything keeps running until Ctrl-C or SIGTERM. In another terminal, try:")?;
        for command in [
            format!("export DECREE_SERVER=http://{}", addresses.grpc),
            "decree get replicasets -w".to_owned(),
            format!("decree explain {set}"),
            format!("decree simulate {set} --replicas 1"),
            "decree watch".to_owned(),
            format!("grpcurl -plaintext {} list", addresses.grpc),
        ] {
            self.say(&format!("  {command}"))?;
        }
        let Some(admin) = addresses.admin else {
            return Ok(());
        };
        self.say(&format!("  curl http://{admin}/metrics"))?;
        if !admin.ip().is_loopback() {
            return Ok(());
        }
        self.say("\nTake part:")?;
        for command in [
            format!("export DECREE_ADMIN={admin}"),
            format!("decree demo scale {set} 5"),
            "decree demo fail node-b".to_owned(),
            "decree demo restore node-b".to_owned(),
            "decree demo quota 6".to_owned(),
        ] {
            self.say(&format!("  {command}"))?;
        }
        Ok(())
    }

    /// Goes on printing decisions, for ever.
    pub(crate) async fn stay(&mut self) -> Result<(), Failure> {
        loop {
            self.collect();
            self.print_decisions().await?;
            self.stage.running.check()?;
            self.wait().await;
        }
    }

    /// Ends everything.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        self.stage.close().await
    }

    /// Waits for a change of the cluster or a decision of the server, for a tick at most.
    async fn wait(&mut self) {
        let decision = tokio::select! {
            biased;
            decision = self.stage.running.feed.next() => decision,
            () = self.stage.cluster.changed() => return,
            () = sleep(TICK) => return,
        };
        self.chronicle.note(&decision);
    }

    /// Takes in the decisions that have come.
    fn collect(&mut self) {
        while let Some(decision) = self.stage.running.feed.try_next() {
            self.chronicle.note(&decision);
        }
    }

    async fn print_decisions(&mut self) -> Result<(), Failure> {
        for line in self.chronicle.take() {
            self.line(&line).await?;
        }
        Ok(())
    }

    fn creates(&self) -> Creates {
        self.stage.cluster.with(|cluster| Creates::of(cluster))
    }

    fn standings(&self) -> Vec<Standing> {
        self.stage.cluster.with(|cluster| scene::standings(cluster))
    }

    fn not_reached(&self, title: &str) -> Failure {
        let standings = self.standings();
        let open = standings.iter().find(|standing| !standing.is_settled());
        let detail = open.map_or_else(String::new, |open| format!(": {}", open.lacks()));
        let limit = self.deadline.as_secs_f64();
        let cause = format!("step \"{title}\" did not reach its goal within {limit} s{detail}");
        Failure::new(Exit::No, cause)
            .hint("allow more time with --deadline, or run again with --log-level info to see why")
    }
}

fn write_steps(done: &[Done], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(["STEP", "TOOK", "CREATED", "REFUSED", "DELETED"]);
    for Done {
        title,
        took,
        creates,
        deletes,
    } in done
    {
        let took = format!("{:.1}s", took.as_secs_f64());
        let Creates { done, refused } = creates;
        let numbers = [done.to_string(), refused.to_string(), deletes.to_string()];
        let [done, refused, deletes] = numbers;
        table.row([title.clone(), took, done, refused, deletes]);
    }
    table.write(out, "")
}

fn write_standings(standings: &[Standing], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(["REPLICASET", "DESIRED", "CURRENT", "READY"]);
    for Standing {
        path,
        wanted,
        there,
        ready,
        ..
    } in standings
    {
        let numbers = [wanted, there, ready].map(ToString::to_string);
        let [wanted, there, ready] = numbers;
        table.row([path.clone(), wanted, there, ready]);
    }
    table.write(out, "")
}
