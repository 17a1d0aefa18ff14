//! Runs steps: acts on the cluster, waits for what should come of it, and shows what happens meanwhile.

use std::{
    collections::VecDeque,
    io::{self, Write},
    time::Duration,
};

use agent_fake::{ApiError, Cluster};
use decree::v1;
use tokio::time::{Instant, sleep};

use super::{
    scene::{self, Standing},
    screen::{Frame, Screen},
    stage::{CLUSTER, Stage},
};
use crate::{
    Io, decision,
    exit::{Exit, Failure},
    explain, get,
    table::Table,
};

/// How often the view is drawn and the cluster looked at, should no news come.
const TICK: Duration = Duration::from_millis(100);
/// One step as the summary has it.
#[derive(Debug)]
struct Done {
    title: String,
    took: Duration,
    tally: Tally,
}

/// Owns everything that is seen and happens.
pub(super) struct Director<'a, 'io> {
    stage: Stage,
    screen: Screen,
    deadline: Duration,
    io: &'a mut Io<'io>,
    started: Instant,
    heading: String,
    last: VecDeque<String>,
    tally: Tally,
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
            last: VecDeque::new(),
            tally: Tally::default(),
            done: Vec::new(),
        }
    }

    pub(super) fn introduce(&mut self) -> Result<(), Failure> {
        let server = self.stage.addresses.grpc;
        self.say(&format!(
            "decree-server on http://{server}, decree-agent, and cluster \"{CLUSTER}\""
        ))
    }

    /// Acts, and waits until what should come of it is there. `act` says what it did.
    pub(super) async fn step(
        &mut self,
        title: &str,
        act: impl FnOnce(&mut Cluster) -> Result<String, ApiError>,
        is_reached: impl Fn(&Cluster, Tally) -> bool,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        self.tally = Tally::default();
        self.heading = format!("step {}: {title}", self.done.len() + 1);
        let acted = self.stage.cluster.with(act);
        let acted = acted.map_err(|error| {
            Failure::new(
                Exit::No,
                format!("{title}: the cluster refuses: {}", error.message),
            )
        })?;
        self.say(&format!("\n{}", self.heading))?;
        self.say(&format!("  {acted}"))?;
        loop {
            self.show_news()?;
            let tally = self.tally;
            if self
                .stage
                .cluster
                .with(|cluster| is_reached(cluster, tally))
            {
                break;
            }
            if began.elapsed() >= self.deadline {
                return Err(self.not_reached(title));
            }
            self.stage.check()?;
            self.wait().await;
        }
        let took = began.elapsed();
        self.say(&format!("  converged in {:.1} s", took.as_secs_f64()))?;
        self.done.push(Done {
            title: title.to_owned(),
            took,
            tally: self.tally,
        });
        Ok(())
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
        self.say(&format!(
            "\nall {} steps converged in {took:.1} s",
            self.done.len()
        ))
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

    /// Waits for news of the cluster or of the server, but no longer than a tick.
    async fn wait(&mut self) {
        let decision = tokio::select! {
            biased;
            decision = self.stage.feed.next() => decision,
            () = self.stage.cluster.changed() => return,
            () = sleep(TICK) => return,
        };
        self.note(&decision);
    }

    fn show_news(&mut self) -> Result<(), Failure> {
        while let Some(decision) = self.stage.feed.try_next() {
            self.note(&decision);
        }
        if !self.screen.is_live() {
            while let Some(line) = self.last.pop_front() {
                self.say(&format!("  {line}"))?;
            }
            return Ok(());
        }
        let (standings, in_flight) = (self.standings(), self.stage.feed.in_flight());
        let frame = Frame {
            heading: &self.heading,
            standings: &standings,
            in_flight,
            decisions: self.last.make_contiguous(),
        };
        Ok(self.screen.draw(self.io.stdout, &frame)?)
    }

    /// Counts a decision and keeps it to be shown. Status writes go without saying.
    fn note(&mut self, record: &v1::DecisionRecord) {
        match record.action.as_str() {
            "create" => self.tally.creates += record.operations,
            "delete" => self.tally.deletes += record.operations,
            "status" => return,
            _ => {}
        }
        self.last.extend(lines(record));
        while self.screen.is_live() && self.last.len() > SHOWN_MAX {
            self.last.pop_front();
        }
    }

    fn standings(&self) -> Vec<Standing> {
        self.stage.cluster.with(|cluster| scene::standings(cluster))
    }

    fn not_reached(&self, title: &str) -> Failure {
        let standings = self.standings();
        let open = standings.iter().find(|standing| !standing.is_settled());
        let detail = open.map_or_else(
            String::new,
            |Standing {
                 path,
                 wanted,
                 ready,
                 failure,
                 ..
             }| {
                let failure = failure
                    .as_ref()
                    .map_or_else(String::new, |text| format!(": {text}"));
                format!(": {path} has {ready} of {wanted} pods ready{failure}")
            },
        );
        let limit = self.deadline.as_secs_f64();
        Failure::new(
            Exit::No,
            format!("step \"{title}\" did not converge within {limit} s{detail}"),
        )
        .hint("give it longer with --deadline, or see what happens with --log-level info")
    }
}

fn write_steps(done: &[Done], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(["STEP", "TOOK", "CREATED", "DELETED"]);
    for Done {
        title,
        took,
        tally: Tally { creates, deletes },
    } in done
    {
        let took = format!("{:.1}s", took.as_secs_f64());
        table.row([
            title.clone(),
            took,
            creates.to_string(),
            deletes.to_string(),
        ]);
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
