//! `decree top`: the busiest ReplicaSets and sessions, by the decisions that the server makes meanwhile.
//!
//! Decisions are counted as [`decree watch`](crate::watch) receives them. On a terminal the latest interval is drawn again and again;
//! elsewhere each is printed below the one before.

use std::io::Write;

use decree::v1;
use jiff::Timestamp;
use tokio::{
    select,
    time::{Instant, interval_at},
};
use tonic::Streaming;

use crate::{
    args::{Order, Scope, TopArgs},
    demo::on_signal,
    exit::{Exit, Failure},
    get::pages,
    server::{self, Server},
    streams::Io,
    table::Table,
    terminal,
};

mod meter;
mod screen;
mod view;

use meter::{Meter, Rates};
use screen::{Screen, Wish};
use view::{Rows, View};

type Decisions = Streaming<v1::WatchDecisionsResponse>;

/// What measures, and what it asks.
struct Top<'a> {
    args: &'a TopArgs,
    scope: Scope,
    server: Server,
    decisions: Decisions,
    meter: Meter,
    order: Order,
}

pub(crate) fn run(args: &TopArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let scope = args.scope.scope()?;
    server::block_on(async {
        let mut top = Top::open(args, scope).await?;
        let is_once = args.once || !args.print.output.is_for_people();
        match !is_once && io.terminal && terminal::is_possible() {
            true => top.draw().await,
            false => top.print(is_once, io).await,
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
            order: args.sort_by,
            args,
            scope,
            server,
            decisions: decisions.into_inner(),
            meter: Meter::default(),
        })
    }

    /// Prints each interval, or one.
    async fn print(&mut self, is_once: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
        let mut ticks = self.ticks();
        let mut since = Instant::now();
        loop {
            select! {
                biased;
                now = ticks.tick() => {
                    let view = self.look(&mut since, now).await?;
                    self.write(&view, io)?;
                    if is_once {
                        return Ok(Exit::Done);
                    }
                    writeln!(io.stdout)?;
                    io.stdout.flush()?;
                }
                next = self.decisions.message() => self.count(next)?,
            }
        }
    }

    /// Draws until a person wants no more, or a signal ends it: the terminal must not stay as it is then.
    async fn draw(&mut self) -> Result<Exit, Failure> {
        let stop = on_signal()?;
        let mut screen = Screen::open()?;
        let mut ticks = self.ticks();
        let mut since = Instant::now();
        let mut view = self.view(&Rates::default()).await?;
        loop {
            view.sort(self.order);
            screen.draw(&self.title(&view), &view, self.args.print.output.is_wide())?;
            view = loop {
                select! {
                    biased;
                    () = stop.cancelled() => return Ok(Exit::Done),
                    wish = screen.wish() => match wish {
                        Wish::Quit => return Ok(Exit::Done),
                        Wish::Sort(order) => { self.order = order; break view; }
                        Wish::Redraw => break view,
                    },
                    now = ticks.tick() => break self.look(&mut since, now).await?,
                    next = self.decisions.message() => self.count(next)?,
                }
            };
        }
    }

    fn ticks(&self) -> tokio::time::Interval {
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

    /// Takes what was counted since the last look.
    async fn look(&mut self, since: &mut Instant, now: Instant) -> Result<View, Failure> {
        let rates = self.meter.take(now.duration_since(*since));
        *since = now;
        let mut view = self.view(&rates).await?;
        view.sort(self.order);
        Ok(view)
    }

    async fn view(&self, rates: &Rates) -> Result<View, Failure> {
        let cluster = &self.args.inspection.cluster;
        let mut sessions = self.server.sessions().await?.sessions;
        sessions.retain(|session| {
            let names = [&session.cluster_uid, &session.cluster_name];
            cluster.is_empty() || names.contains(&cluster)
        });
        let sets = pages(&self.server, cluster, &self.scope)
            .await?
            .replica_sets;
        Ok(View::new(Timestamp::now(), sessions, sets, rates))
    }

    fn title(&self, view: &View) -> String {
        let (time, every) = (view.at.strftime("%H:%M:%SZ"), self.args.interval);
        let order = match self.order {
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
        let write = |Rows { headers, rows }, out: &mut dyn Write| {
            let mut table = Table::new(headers).no_headers(print.no_headers);
            rows.into_iter().for_each(|cells| table.row(cells));
            table.write(out, "")
        };
        let is_wide = print.output.is_wide();
        write(view.sessions(is_wide), io.stdout)?;
        writeln!(io.stdout)?;
        write(view.replica_sets(is_wide, self.args.rows), io.stdout)?;
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
