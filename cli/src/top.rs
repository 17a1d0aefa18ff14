//! `decree top`: the busiest ReplicaSets and sessions, by the decisions that the server makes in each interval.
//!
//! Decisions are counted as [`decree watch`](crate::watch) receives them. On a terminal, the tables of the latest interval
//! replace the older ones; elsewhere, the command prints them below the older ones.

use std::io::Write;

use decree::v1;
use jiff::Timestamp;
use tokio::{
    select,
    time::{Instant, Interval, MissedTickBehavior, interval_at},
};
use tonic::Streaming;

use crate::{
    args::{Order, Scope, TopArgs},
    exit::{Exit, Failure},
    pages,
    server::{self, Server},
    streams::{Io, Terminal},
    watch,
};

mod meter;
mod view;

use meter::Meter;
use view::View;

/// Escape sequences that let a table replace the older one: to the first line; clear the rest of a line, and of the terminal.
const HOME: &str = "\u{1b}[H";
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_BELOW: &str = "\u{1b}[J";

/// The meter, and the requests to the server.
struct Top<'a> {
    args: &'a TopArgs,
    scope: Scope,
    server: Server,
    decisions: Streaming<v1::WatchDecisionsResponse>,
    ticks: Interval,
    meter: Meter,
    /// The start of the current count.
    since: Instant,
}

pub(crate) fn run(args: &TopArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let scope = args.scope.scope()?;
    server::block_on(async {
        let is_once = args.once || !args.print.output.is_for_people();
        let opened = (io.terminal)().filter(|it| it.can_place && !is_once);
        let mut top = Top::open(args, scope).await?;
        loop {
            let view = top.next().await?;
            match opened {
                Some(opened) => top.rewrite(&view, (io.terminal)().unwrap_or(opened), io)?,
                None => top.write(&view, io)?,
            }
            if is_once {
                return Ok(Exit::Done);
            }
            if opened.is_none() {
                writeln!(io.stdout)?;
            }
            io.stdout.flush()?;
        }
    })
}

// === impl Top ===

impl<'a> Top<'a> {
    async fn open(args: &'a TopArgs, scope: Scope) -> Result<Self, Failure> {
        let server = Server::connect(&args.inspection.server).await?;
        server.check_connected(&args.inspection.cluster).await?;
        let decisions = watch::open(&server, &args.inspection.cluster, &scope).await?;
        let now = Instant::now();
        let mut ticks = interval_at(now + args.interval, args.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            args,
            scope,
            server,
            decisions,
            ticks,
            meter: Meter::default(),
            since: now,
        })
    }

    /// Counts decisions for an interval.
    async fn next(&mut self) -> Result<View, Failure> {
        loop {
            select! {
                biased;
                now = self.ticks.tick() => return self.look(now).await,
                next = self.decisions.message() => {
                    self.meter.count(&watch::received(&self.server, next)?);
                }
            }
        }
    }

    /// Takes the counts up to `now`.
    async fn look(&mut self, now: Instant) -> Result<View, Failure> {
        let rates = self.meter.take(now.duration_since(self.since));
        self.since = now;
        let cluster = &self.args.inspection.cluster;
        let sessions = self.server.sessions(cluster).await?.sessions;
        let sets = pages::of_scope(&self.server, cluster, &self.scope)
            .await?
            .replica_sets;
        let order = self.args.sort_by;
        Ok(View::new(Timestamp::now(), sessions, sets, &rates, order))
    }

    /// Prints an interval in place of the last, cut to the terminal: a title, the sessions, and as many ReplicaSets as lines remain.
    fn rewrite(&self, view: &View, terminal: Terminal, io: &mut Io<'_>) -> Result<(), Failure> {
        let is_wide = self.args.print.output.is_wide();
        let no_headers = self.args.print.no_headers;
        let sessions = view.sessions(is_wide);
        // The title, a line between the tables, the headers of both, and the line of the cursor.
        let taken = sessions.len() + 3 + 2 * usize::from(!no_headers);
        let sets = view.replica_sets(terminal.lines.saturating_sub(taken));
        let mut page = Vec::new();
        let title: String = self.title(view).chars().take(terminal.columns).collect();
        writeln!(page, "{title}")?;
        let [sessions, sets] =
            [sessions, sets].map(|table| table.no_headers(no_headers).fit(terminal.columns));
        sessions.write(&mut page, "")?;
        writeln!(page)?;
        sets.write(&mut page, "")?;
        write!(io.stdout, "{HOME}")?;
        let page = String::from_utf8_lossy(&page);
        for line in page.lines().take(terminal.lines.saturating_sub(1)) {
            writeln!(io.stdout, "{line}{CLEAR_LINE}")?;
        }
        write!(io.stdout, "{CLEAR_BELOW}")?;
        Ok(())
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
        let server = &self.server.url;
        format!("decree top - {time}, {server}, every {every:?}, by {order}{missed}")
    }

    fn write(&self, view: &View, io: &mut Io<'_>) -> Result<(), Failure> {
        let print = &self.args.print;
        if !print.output.is_for_people() {
            let (json, names) = view.json(self.args.rows);
            return print.output.write(io.stdout, &json, &names);
        }
        let sessions = view.sessions(print.output.is_wide());
        sessions.no_headers(print.no_headers).write(io.stdout, "")?;
        writeln!(io.stdout)?;
        let sets = view.replica_sets(self.args.rows);
        sets.no_headers(print.no_headers).write(io.stdout, "")?;
        if view.missed > 0 {
            let missed = view.missed;
            writeln!(io.stderr, "notice: {missed} decisions were not counted")?;
        }
        Ok(())
    }
}
