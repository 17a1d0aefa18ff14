//! Runs steps: acts on the cluster, waits for what should come of it, and prints what happens meanwhile.

use std::{io::Write as _, time::Duration};

use agent_fake::{ApiError, Cluster};
use decree::v1;
use tokio::time::{Instant, sleep};

use super::{
    beginning::NAMESPACE,
    chronicle::Chronicle,
    feed::Told,
    picture::Picture,
    playback::{Playback, Wish},
    scene::{self, Creates, Standing},
    screen::Screen,
    stage::{CLUSTER, Stage},
    summary::{self, Done},
};
use crate::{
    decision,
    exit::{Exit, Failure},
    page,
    streams::Io,
};

/// How often the cluster and the keys are looked at, should nothing be reported.
const TICK: Duration = Duration::from_millis(50);

/// What becomes of a story that a signal ends.
pub(super) const INTERRUPTED: &str = "interrupted before the end";

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

/// Whether a rest goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    On,
    /// A person has had enough of it.
    Ended,
}

/// Owns everything that is printed and happens.
pub(crate) struct Director<'a, 'io> {
    stage: Stage,
    deadline: Duration,
    pace: Pace,
    io: &'a mut Io<'io>,
    /// What is drawn on; without it lines are printed.
    screen: Option<Screen>,
    chronicle: Chronicle,
    /// Whether what the cluster refuses is printed: a step of the story tells that itself.
    tells_refusals: bool,
    done: Vec<Done>,
}

// === impl Pace ===

impl Pace {
    /// Slow enough to read along.
    pub(crate) const READABLE: Self = Self {
        line: Duration::from_millis(500),
        step: Duration::from_millis(1_500),
    };

    /// Slow enough to read along and to see what becomes of pods. Keys change it.
    pub(crate) const ON_SCREEN: Self = Self {
        line: Duration::from_millis(1_200),
        step: Duration::from_millis(3_000),
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
            screen: None,
            chronicle: Chronicle::default(),
            tells_refusals: false,
            done: Vec::new(),
        }
    }

    /// Takes the terminal over, and draws instead of printing lines.
    pub(crate) fn open_screen(&mut self) -> Result<(), Failure> {
        let picture = Picture {
            utf8: self.io.utf8,
            ..Picture::default()
        };
        self.screen = Some(Screen::open(picture)?);
        self.look().map(|_| ())
    }

    /// Gives the terminal back. What follows is printed in lines.
    pub(crate) fn close_screen(&mut self) {
        self.screen = None;
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
        let number = self.done.len() + 1;
        self.name(&format!("step {number}: {title}"));
        self.say(&format!("\nStep {number}: {title}"))?;
        self.rest(self.pace.line).await?;
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
        self.rest(self.pace.step).await?;
        if let Some(screen) = &mut self.screen {
            screen.picture.victims.clear();
        }
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
            self.mark(name, rule);
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
            self.look()?;
            let deletes = self.chronicle.deletes;
            let is_reached = |cluster: &mut Cluster| is_reached(cluster, deletes);
            if self.stage.cluster.with(is_reached) {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(self.not_reached(title));
            }
            self.wait().await;
        }
    }

    /// Lets a person read. On a screen the cluster goes on meanwhile, and keys hold the rest or end it.
    async fn rest(&mut self, rest: Duration) -> Result<(), Failure> {
        if self.screen.is_none() {
            sleep(rest).await;
            return Ok(());
        }
        let mut left = rest;
        while !left.is_zero() && self.look()? == Rest::On {
            let began = Instant::now();
            self.wait().await;
            let playback = self.playback();
            left = left.saturating_sub(playback.passes(began.elapsed()));
        }
        Ok(())
    }

    /// Leaves the screen once its reader has seen enough: what follows is printed.
    pub(crate) async fn applaud(&mut self) -> Result<(), Failure> {
        if self.screen.is_none() {
            return Ok(());
        }
        self.name("the story has ended; q leaves");
        self.say("\nThat was the story. What each step took is printed when you leave: q")?;
        let left = loop {
            if let Err(left) = self.rest(Duration::MAX).await {
                break left;
            }
        };
        self.close_screen();
        // Whoever leaves now has seen the end.
        match left.exit == Exit::Done || left.cause == INTERRUPTED {
            true => Ok(()),
            false => Err(left),
        }
    }

    /// Looks at what has come, draws it, and reads keys.
    fn look(&mut self) -> Result<Rest, Failure> {
        self.collect();
        self.stage.running.check()?;
        if self.screen.is_none() {
            return Ok(Rest::On);
        }
        for line in self.chronicle.take() {
            self.say(&format!("  {line}"))?;
        }
        let (standings, nodes) = self
            .stage
            .cluster
            .with(|cluster| (scene::standings(cluster), scene::nodes(cluster)));
        let Some(screen) = &mut self.screen else {
            return Ok(Rest::On);
        };
        (screen.picture.standings, screen.picture.nodes) = (standings, nodes);
        let wish = screen.next_wish()?;
        screen.draw()?;
        match wish {
            Some(Wish::Quit) => Err(Failure::leave()),
            Some(Wish::Interrupt) => Err(Failure::new(Exit::No, INTERRUPTED)),
            Some(Wish::Next) => Ok(Rest::Ended),
            Some(Wish::Pause | Wish::Faster | Wish::Slower) | None => Ok(Rest::On),
        }
    }

    fn playback(&self) -> Playback {
        let playback = self.screen.as_ref().map(|screen| screen.playback);
        playback.unwrap_or_default()
    }

    /// Returns the message of the first failure that a ReplicaSet shows.
    pub(super) fn failure(&self) -> Option<String> {
        let mut standings = self.standings().into_iter();
        standings.find_map(|standing| standing.failure)
    }

    /// Prints a line of a step.
    pub(super) async fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.say(&format!("  {text}"))?;
        self.rest(self.pace.line).await
    }

    /// Names what is being told, for the screen.
    pub(super) fn name(&mut self, title: &str) {
        if let Some(screen) = &mut self.screen {
            title.clone_into(&mut screen.picture.title);
        }
    }

    /// Marks a pod that is going to go, on the screen.
    fn mark(&mut self, pod: &str, rule: &str) {
        if let Some(screen) = &mut self.screen {
            let victims = &mut screen.picture.victims;
            victims.insert(pod.to_owned(), rule.to_owned());
        }
    }

    /// Prints a line.
    pub(super) fn say(&mut self, text: &str) -> Result<(), Failure> {
        if let Some(screen) = &mut self.screen {
            let lines = text.split('\n').map(str::to_owned);
            screen.picture.text.extend(lines);
            return Ok(());
        }
        for line in text.split('\n').flat_map(page::wrap) {
            writeln!(self.io.stdout, "{line}")?;
        }
        Ok(self.io.stdout.flush()?)
    }

    /// Prints what each step took and how everything stands.
    pub(super) fn sum_up(&mut self) -> Result<(), Failure> {
        let mut out = Vec::new();
        writeln!(out)?;
        summary::write_steps(&self.done, &mut out)?;
        writeln!(out)?;
        summary::write_standings(&self.standings(), &mut out)?;
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
        let set = self.standings().into_iter().next().map(|it| it.path);
        let set = set.unwrap_or_else(|| "NAMESPACE/NAME".to_owned());
        let running = &self.stage.running;
        self.say(&summary::invitation(
            &running.addresses,
            running.agent_admin,
            &set,
        ))
    }

    /// Goes on printing decisions, for ever.
    pub(crate) async fn stay(&mut self) -> Result<(), Failure> {
        self.tells_refusals = true;
        loop {
            self.look()?;
            self.print_decisions().await?;
            self.wait().await;
        }
    }

    /// Ends everything.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        self.stage.close().await
    }

    /// Waits for a change of the cluster or a decision of the server, for a tick at most.
    async fn wait(&mut self) {
        let told = tokio::select! {
            biased;
            told = self.stage.running.feed.next() => told,
            () = self.stage.cluster.changed() => return,
            () = sleep(TICK) => return,
        };
        self.note(&told);
    }

    fn note(&mut self, told: &Told) {
        let Told { decision, refused } = told;
        for target in &decision.targets {
            if let Some(reason) = target
                .reason
                .as_ref()
                .filter(|_| decision.action == "delete")
            {
                self.mark(&target.name, decision::word(reason.rule()));
            }
        }
        self.chronicle.note(decision);
        if let Some(said) = refused.as_ref().filter(|_| self.tells_refusals) {
            let set = decision.replica_set.as_ref();
            self.chronicle.note_refusal(set, said);
        }
    }

    /// Takes in the decisions that have come.
    fn collect(&mut self) {
        while let Some(told) = self.stage.running.feed.try_next() {
            self.note(&told);
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
