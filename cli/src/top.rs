//! `decree top`: the busiest ReplicaSets and sessions, by the decisions that the server makes in each interval.
//!
//! Decisions are counted as [`decree watch`](crate::watch) receives them. On a terminal, the tables of the latest interval
//! replace the older ones; elsewhere, the command prints them below the older ones.

use std::io::Write;

use decree::v1;
use jiff::Timestamp;
use tokio::{
    select,
    time::{Instant, Interval, interval_at},
};
use tonic::Streaming;

use crate::{
    args::{Order, Scope, TopArgs},
    exit::{Exit, Failure},
    get::pages,
    server::{self, Server},
    streams::{Io, Terminal},
    table::Table,
};

mod meter;
mod view;

use meter::Meter;
use view::{Rows, View};

/// Escape sequences that let a table replace the older one: to the first line; clear the rest of a line, and of the terminal.
const HOME: &str = "\u{1b}[H";
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_BELOW: &str = "\u{1b}[J";

type Decisions = Streaming<v1::WatchDecisionsResponse>;

/// The meter, and the requests to the server.
struct Top<'a> {
    args: &'a TopArgs,
    scope: Scope,
    server: Server,
    decisions: Decisions,
    meter: Meter,
    /// The start of the current count.
    since: Instant,
}

pub(crate) fn run(args: &TopArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let scope = args.scope.scope()?;
    server::block_on(async {
        let mut top = Top::open(args, scope).await?;
        let is_once = args.once || !args.print.output.is_for_people();
        let terminal = (io.terminal)().filter(|it| it.can_place && !is_once);
        match terminal {
            Some(terminal) => top.rewrite(terminal, io).await,
            None => top.print(is_once, io).await,
        }
    })
}

// === impl Top ===

impl<'a> Top<'a> {
    async fn open(args: &'a TopArgs, scope: Scope) -> Result<Self, Failure> {
        let server = Server::connect(&args.inspection.server).await?;
        server.check_connected(&args.inspection.cluster).await?;
        let request = v1::WatchDecisionsRequest {
            cluster: args.inspection.cluster.clone(),
            namespace: scope.namespace.clone(),
            name: scope.name.clone(),
        };
        let answer = server.inspection().watch_decisions(request).await;
        let decisions = answer.map_err(|status| server.failure(&status))?;
        Ok(Self {
            args,
            scope,
            server,
            decisions: decisions.into_inner(),
            meter: Meter::default(),
            since: Instant::now(),
        })
    }

    /// Prints one interval, or each interval below the last.
    async fn print(&mut self, is_once: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
        let mut ticks = self.ticks();
        loop {
            let view = self.next(&mut ticks).await?;
            self.write(&view, io)?;
            if is_once {
                return Ok(Exit::Done);
            }
            writeln!(io.stdout)?;
            io.stdout.flush()?;
        }
    }

    /// Prints each interval in place of the last, cut to the terminal.
    async fn rewrite(&mut self, opened: Terminal, io: &mut Io<'_>) -> Result<Exit, Failure> {
        let mut ticks = self.ticks();
        loop {
            let view = self.next(&mut ticks).await?;
            let terminal = (io.terminal)().unwrap_or(opened);
            let page = self.page(&view, terminal)?;
            write!(io.stdout, "{HOME}")?;
            for line in page.lines().take(terminal.lines.saturating_sub(1)) {
                writeln!(io.stdout, "{line}{CLEAR_LINE}")?;
            }
            write!(io.stdout, "{CLEAR_BELOW}")?;
            io.stdout.flush()?;
        }
    }

    /// Counts decisions for an interval.
    async fn next(&mut self, ticks: &mut Interval) -> Result<View, Failure> {
        loop {
            select! {
                biased;
                now = ticks.tick() => return self.look(now).await,
                next = self.decisions.message() => self.count(next)?,
            }
        }
    }

    fn ticks(&self) -> Interval {
        let period = self.args.interval;
        let mut ticks = interval_at(Instant::now() + period, period);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        ticks
    }

    fn count(
        &mut self,
        next: Result<Option<v1::WatchDecisionsResponse>, tonic::Status>,
    ) -> Result<(), Failure> {
        let next = next.map_err(|status| self.server.failure(&status))?;
        let Some(next) = next else {
            let failure = Failure::new(Exit::Unreachable, "the server ended the watch");
            return Err(failure.hint("start it again once the server is back"));
        };
        self.meter.count(&next);
        Ok(())
    }

    /// Takes the counts up to `now`.
    async fn look(&mut self, now: Instant) -> Result<View, Failure> {
        let rates = self.meter.take(now.duration_since(self.since));
        self.since = now;
        let cluster = &self.args.inspection.cluster;
        let mut sessions = self.server.sessions().await?.sessions;
        sessions.retain(|session| {
            let names = [&session.cluster_uid, &session.cluster_name];
            cluster.is_empty() || names.contains(&cluster)
        });
        let sets = pages(&self.server, cluster, &self.scope)
            .await?
            .replica_sets;
        let mut view = View::new(Timestamp::now(), sessions, sets, &rates);
        view.sort(self.args.sort_by);
        Ok(view)
    }

    /// The output that fits a terminal: a title, the sessions, and as many ReplicaSets as lines remain.
    fn page(&self, view: &View, terminal: Terminal) -> Result<String, Failure> {
        let is_wide = self.args.print.output.is_wide();
        let has_headers = !self.args.print.no_headers;
        let sessions = view.sessions(is_wide);
        // The title, a line between the tables, the headers of both, and the line of the cursor.
        let taken = sessions.rows.len() + 3 + 2 * usize::from(has_headers);
        let sets = view.replica_sets(terminal.lines.saturating_sub(taken));
        let mut page = Vec::new();
        let title: String = self.title(view).chars().take(terminal.columns).collect();
        writeln!(page, "{title}")?;
        self.table(sessions)
            .fit(terminal.columns)
            .write(&mut page, "")?;
        writeln!(page)?;
        self.table(sets)
            .fit(terminal.columns)
            .write(&mut page, "")?;
        Ok(String::from_utf8_lossy(&page).into_owned())
    }

    fn table(&self, Rows { headers, rows }: Rows) -> Table {
        let mut table = Table::new(headers).no_headers(self.args.print.no_headers);
        rows.into_iter().for_each(|cells| table.row(cells));
        table
    }

    fn title(&self, view: &View) -> String {
        let (time, every) = (view.at.strftime("%H:%M:%SZ"), self.args.interval);
        let order = match self.args.sort_by {
            Order::Decisions => "decisions",
            Order::Operations => "operations",
            Order::InFlight => "operations in flight",
            Order::Unconverged => "time unconverged",
        };
        let missed = match view.missed {
            0 => String::new(),
            missed => format!(", {missed} decisions not counted"),
        };
        let server = self.server.url();
        format!("decree top - {time}, {server}, every {every:?}, by {order}{missed}")
    }

    fn write(&self, view: &View, io: &mut Io<'_>) -> Result<(), Failure> {
        let print = &self.args.print;
        if !print.output.is_for_people() {
            let (json, names) = view.json(self.args.rows);
            return print.output.write(io.stdout, &json, &names);
        }
        let is_wide = print.output.is_wide();
        self.table(view.sessions(is_wide)).write(io.stdout, "")?;
        writeln!(io.stdout)?;
        let sets = view.replica_sets(self.args.rows);
        self.table(sets).write(io.stdout, "")?;
        if view.missed > 0 {
            writeln!(
                io.stderr,
                "notice: {} decisions were not counted",
                view.missed
            )?;
        }
        Ok(())
    }
}
