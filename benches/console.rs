//! The console in Chromium with 5,003 ReplicaSets, of which 500 change each second. The table is in docs/performance.md.
//!
//! Server, agents and browser share the machine, as for a person who tries Decree. The browser has no GPU.

#[path = "../tests/console/browser.rs"]
#[expect(dead_code, reason = "the stories make pictures, too")]
mod browser;
#[path = "../tests/console/crowd.rs"]
mod crowd;
#[path = "../tests/console/pages.rs"]
mod pages;
#[path = "../tests/console/stage.rs"]
#[expect(dead_code, reason = "the stories have other stages, too")]
mod stage;

use decree_server::Config;
use serde_json::Value;
use tests::table::{head, quantile_of, row};
use tokio::runtime::Builder;

use self::{crowd::Crowd, stage::Stage};

/// The number of rounds. Each round has a new browser and a new server.
const ROUNDS: usize = 5;
/// The name of each figure, its path in the results, and its number of decimals.
const FIGURES: [(&str, &str, usize); 8] = [
    ("time to the first row, ms", "/content", 0),
    ("bytes of the first load, without headers", "/bytes", 0),
    ("files of the first load", "/files", 0),
    ("frames a second, the map changing", "/atRest/frames", 1),
    ("longest frame, ms", "/atRest/longest", 0),
    ("frames a second, scrolled as well", "/scrolled/frames", 1),
    ("longest frame, scrolled, ms", "/scrolled/longest", 0),
    ("rows in the document", "/scrolled/rows", 0),
];

fn main() {
    let Some(browser) = browser::installed() else {
        return;
    };
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let rounds: Vec<_> = (0..ROUNDS)
        .filter_map(|_| runtime.block_on(measure(&browser)))
        .collect();
    head(
        "The console, 5,003 ReplicaSets, 500 changes a second",
        &["figure", "median", "lowest", "highest"],
    );
    for (name, place, decimals) in FIGURES {
        let mut values: Vec<_> = rounds
            .iter()
            .map(|figures| figure(figures, place))
            .collect();
        print(name, &mut values, decimals);
    }
    let changes = |figures: &Value| {
        figure(figures, "/scrolled/changes") / figure(figures, "/scrolled/seconds")
    };
    let mut changes: Vec<_> = rounds.iter().map(changes).collect();
    print("changed rows that reach the page a second", &mut changes, 0);
}

async fn measure(browser: &browser::Browser) -> Option<Value> {
    let stage = Stage::open(Config::embedded()).await;
    let crowd = Crowd::open(stage.grpc()).await;
    let changes = tokio::spawn(crowd.change());
    let figures = browser
        .play("console_of_thousands_is_measured", stage)
        .await;
    changes.abort();
    figures
}

fn figure(figures: &Value, place: &str) -> f64 {
    let figure = figures.pointer(place).and_then(Value::as_f64);
    figure.unwrap_or_else(|| panic!("{place} is not among {figures}"))
}

fn print(name: &str, values: &mut [f64], decimals: usize) {
    let [median, lowest, highest] = [0.5, 0.0, 1.0].map(|at| quantile_of(values, at));
    let cell = |value: f64| format!("{value:.decimals$}");
    row(&[name.to_owned(), cell(median), cell(lowest), cell(highest)]);
}
