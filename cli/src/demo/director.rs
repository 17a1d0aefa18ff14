//! Runs steps: acts on the cluster, waits for what should come of it, and shows what happens meanwhile.

use std::{
    io::{self, Write},
    time::Duration,
};

use agent_fake::{ApiError, Cluster};
use tokio::time::{Instant, sleep};

use super::{
    chronicle::Chronicle,
    scene::{self, Creates, Standing},
    screen::{Frame, Screen},
    stage::{CLUSTER, Stage},
};
use crate::{
    Io,
    exit::{Exit, Failure},
    table::Table,
};

/// How often the view is drawn and the cluster looked at, should no news come.
const TICK: Duration = Duration::from_millis(100);

/// One step as the summary has it.
#[derive(Debug)]
struct Done {
    title: String,
    took: Duration,
    creates: Creates,
    deletes: i32,
}

/// Owns everything that is seen and happens.
pub(super) struct Director<'a, 'io> {
    stage: Stage,
    screen: Screen,
    deadline: Duration,
    io: &'a mut Io<'io>,
    started: Instant,
    heading: String,
    chronicle: Chronicle,
    done: Vec<Done>,
}

// === impl Director ===

impl<'a, 'io> Director<'a, 'io> {
    pub(super) fn new(
        stage: Stage,
        screen: Screen,
        deadline: Duration,
        io: &'a mut Io<'io>,
    ) -> Self {
        Self {
            stage,
            screen,
            deadline,
            io,
            started: Instant::now(),
            heading: String::new(),
            chronicle: Chronicle::default(),
            done: Vec::new(),
        }
    }

    pub(super) fn introduce(&mut self) -> Result<(), Failure> {
        let server = self.stage.addresses.grpc;
        self.say(&format!(
            "decree-server on http://{server}, decree-agent, and cluster \"{CLUSTER}\""
        ))
    }

    /// Acts, and waits until what should come of it is there. `act` says what it did; `is_reached` looks at the cluster and
    /// at how many victims were told.
    pub(super) async fn step(
        &mut self,
        title: &str,
        act: impl FnOnce(&mut Cluster) -> Result<String, ApiError>,
        is_reached: impl Fn(&Cluster, i32) -> bool,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        let before = self.creates();
        self.chronicle.begin();
        self.heading = format!("step {}: {title}", self.done.len() + 1);
        let acted = self.stage.cluster.with(act).map_err(|error| {
            let cause = format!("{title}: the cluster refuses: {}", error.message);
            Failure::new(Exit::No, cause)
        })?;
        self.say(&format!("\n{}", self.heading))?;
        self.say(&format!("  {acted}"))?;
        self.until(title, is_reached).await?;
        self.end_of_step()?;
        let took = began.elapsed();
        self.say(&format!("  converged in {:.1} s", took.as_secs_f64()))?;
        self.done.push(Done {
            title: title.to_owned(),
            took,
            creates: self.creates().since(before),
            deletes: self.chronicle.deletes,
        });
        Ok(())
    }

    async fn until(
        &mut self,
        title: &str,
        is_reached: impl Fn(&Cluster, i32) -> bool,
    ) -> Result<(), Failure> {
        let end = Instant::now() + self.deadline;
        loop {
            self.show_news()?;
            let told = self.chronicle.deletes;
            if self.stage.cluster.with(|cluster| is_reached(cluster, told)) {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(self.not_reached(title));
            }
            self.stage.check()?;
            self.wait().await;
        }
    }

    /// Writes what would be lost with the view: the victims and why they were chosen.
    fn end_of_step(&mut self) -> Result<(), Failure> {
        self.chronicle.tell_repeats();
        let lines: Vec<_> = match self.screen.is_live() {
            true => self.chronicle.victims.clone(),
            false => self.chronicle.take().collect(),
        };
        lines
            .iter()
            .try_for_each(|line| self.say(&format!("  {line}")))
    }

    /// Returns the message of the first failure that a ReplicaSet shows.
    pub(super) fn failure(&self) -> Option<String> {
        self.standings()
            .into_iter()
            .find_map(|standing| standing.failure)
    }

    /// Writes a line that stays.
    pub(super) fn say(&mut self, text: &str) -> Result<(), Failure> {
        Ok(self.screen.line(self.io.stdout, text)?)
    }

    /// Writes what each step took and how everything stands.
    pub(super) fn sum_up(&mut self) -> Result<(), Failure> {
        let mut out = Vec::new();
        write_steps(&self.done, &mut out)?;
        writeln!(out)?;
        write_standings(&self.standings(), &mut out)?;
        self.say("")?;
        self.screen.erase(self.io.stdout)?;
        self.io.stdout.write_all(&out)?;
        let took = self.started.elapsed().as_secs_f64();
        self.say(&format!("\neverything converged in {took:.1} s"))
    }

    /// Says what can be done while everything keeps running.
    pub(super) fn invite(&mut self) -> Result<(), Failure> {
        let grpc = self.stage.addresses.grpc;
        let set = self
            .standings()
            .into_iter()
            .next()
            .map(|standing| standing.path);
        let set = set.unwrap_or_else(|| "NAMESPACE/NAME".to_owned());
        self.say("\neverything keeps running until SIGINT (Ctrl-C) or SIGTERM; elsewhere, try:")?;
        for command in [
            format!("export DECREE_SERVER=http://{grpc}"),
            "decree get replicasets".to_owned(),
            format!("decree explain {set}"),
            format!("decree simulate {set} --replicas 1"),
            "decree watch".to_owned(),
            format!("grpcurl -plaintext {grpc} list"),
        ] {
            self.say(&format!("  {command}"))?;
        }
        if let Some(admin) = self.stage.addresses.admin {
            self.say(&format!("  curl http://{admin}/metrics"))?;
        }
        Ok(())
    }

    /// Goes on showing what happens, for ever.
    pub(super) async fn stay(&mut self) -> Result<(), Failure> {
        "running".clone_into(&mut self.heading);
        loop {
            self.show_news()?;
            self.stage.check()?;
            self.wait().await;
        }
    }

    /// Ends everything.
    pub(super) async fn close(mut self) -> Result<(), Failure> {
        let erased = self.screen.erase(self.io.stdout);
        self.stage.close().await?;
        Ok(erased?)
    }

    /// Waits for news of the cluster or of the server, for a tick at most.
    async fn wait(&mut self) {
        let decision = tokio::select! {
            biased;
            decision = self.stage.feed.next() => decision,
            () = self.stage.cluster.changed() => return,
            () = sleep(TICK) => return,
        };
        self.chronicle.note(&decision);
    }

    fn show_news(&mut self) -> Result<(), Failure> {
        while let Some(decision) = self.stage.feed.try_next() {
            self.chronicle.note(&decision);
        }
        if !self.screen.is_live() {
            let lines = self.chronicle.take();
            return lines
                .into_iter()
                .try_for_each(|line| self.say(&format!("  {line}")));
        }
        let (standings, in_flight) = (self.standings(), self.stage.feed.in_flight());
        let frame = Frame {
            heading: &self.heading,
            standings: &standings,
            in_flight,
            decisions: self.chronicle.last(),
        };
        Ok(self.screen.draw(self.io.stdout, &frame)?)
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
        let cause = format!("step \"{title}\" did not converge within {limit} s{detail}");
        Failure::new(Exit::No, cause)
            .hint("give it longer with --deadline, or see what happens with --log-level info")
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
    let mut table = Table::new(["REPLICASET", "WANTED", "THERE", "READY"]);
    for Standing {
        path,
        wanted,
        there,
        ready,
        ..
    } in standings
    {
        table.row([
            path.clone(),
            wanted.to_string(),
            there.to_string(),
            ready.to_string(),
        ]);
    }
    table.write(out, "")
}
