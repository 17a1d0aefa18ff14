//! Tier: the console in a real browser, on a real server with an agent of an embedded cluster.
//!
//! A story is a JavaScript function of `stories/` that drives Chromium like a person: it looks, clicks and types. To change the
//! cluster, the story sends a request to this process, and gets the response, as lines of JSON ([`stage`]). After each story the script fails on
//! errors in the browser's console, violations of the content security policy, and requests to other hosts.
//!
//! Chromium must be installed (`apt-get install chromium`, or `DECREE_CHROMIUM` names it); npm installs missing packages. Without them,
//! the stories are skipped with a notice, and fail in CI. Pictures of the pages are written to `target/console`.

mod browser;
mod crowd;
mod moving;
mod pages;
mod stage;

use std::process::Command;

use decree_server::Config;
use tests::{
    binaries,
    running::{Running, Voice},
};

use self::{crowd::Crowd, stage::Stage};

/// The pictures that the documents show: the story, its picture, and the file in `docs`.
const DOCUMENTED: [&str; 5] = [
    "scale_down_is_foretold_and_explained replica-set console.png",
    "board_puts_causes_first causes-light-1280 pictures/board.png",
    "map_shows_every_replica_set incident pictures/incident.png",
    "changes_of_the_cluster_are_foretold what-if-1280 pictures/drain.png",
    "recording_is_replayed_step_by_step recording pictures/recording.png",
];

async fn play(story: &str, stage: Stage) {
    let Some(browser) = browser::installed() else {
        return;
    };
    browser.play(story, stage).await;
    update_documents(story);
}

fn update_documents(story: &str) {
    for words in DOCUMENTED.map(|it| it.split(' ').collect::<Vec<_>>()) {
        if words[0] == story {
            browser::update_document(words[1], words[2]);
        }
    }
}

/// The command serves the recording of the golden tests, which this version replays without a difference.
#[tokio::test(flavor = "multi_thread")]
async fn recording_is_replayed_step_by_step() {
    let Some(browser) = browser::installed() else {
        return;
    };
    let file = "tests/golden/recordings/1-agent-stopped.recording.gz";
    let mut command = Command::new(binaries::folder().join("decree"));
    command
        .current_dir(binaries::checkout())
        .args(["replay", "--console", "--no-browser", file]);
    let running = Running::start(command, Voice::Stdout);
    let line = running.wait_for("the address", |lines| lines.first().cloned());
    let url = line
        .strip_prefix("Console: ")
        .and_then(|it| it.strip_suffix(", until Ctrl-C"));
    let story = "recording_is_replayed_step_by_step";
    browser.play_at(story, url.expect("an address"), None).await;
    running.terminate();
    assert_eq!(running.wait().code(), Some(0));
    update_documents(story);
}

/// The story scrolls and counts while 5,000 ReplicaSets change 500 times a second. For any number of ReplicaSets, the document has few rows,
/// few of its parts change in a frame, no visible row is missing, and the changes reach the page. The frame rate depends on the machine:
/// `cargo bench -p tests --bench console` measures it.
#[tokio::test(flavor = "multi_thread")]
async fn board_of_thousands_stays_smooth() {
    let stage = Stage::open(Config::embedded()).await;
    let crowd = Crowd::open(stage.grpc()).await;
    let changes = tokio::spawn(crowd.change());
    play("board_of_thousands_stays_smooth", stage).await;
    changes.abort();
}

/// Makes a test of each story, on a new stage.
macro_rules! stories {
    ($(fn $story:ident() on $stage:ident;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $story() {
                play(stringify!($story), Stage::$stage(Config::embedded()).await).await;
            }
        )*
    };
}

stories! {
    fn board_follows_the_cluster() on open;
    fn what_led_here_is_told_to_who_opens_the_page_later() on open;
    fn keyboard_alone_reaches_everything() on open;
    fn pages_fit_narrow_screens_and_dark_rooms() on open;
    fn nothing_bars_anyone_from_any_view() on open;
    fn what_is_wrong_with_the_connection_is_told() on open;
    fn shadow_shows_its_differences() on shadow;
    fn shadow_shows_the_cluster_and_one_badge() on shadow;
    fn what_limits_hold_back_is_shown_until_when() on held;
    fn token_opens_the_pages() on guarded;
    fn pages_of_a_declared_origin_ask_the_server() on asked_by_pages;
    fn page_without_a_grant_says_which_one_it_lacks() on ungranted;
    fn board_puts_causes_first() on open;
    fn unready_pods_are_grouped_by_their_reason() on open;
    fn back_returns_to_the_place_on_the_board() on open;
    fn board_is_filtered_and_sorted() on open;
    fn map_shows_every_replica_set() on open;
    fn page_of_a_replica_set_says_what_to_do() on open;
    fn page_says_what_it_does_not_know() on open;
    fn nothing_old_is_shown_as_new() on open;
    fn page_that_stays_open_does_not_grow() on open;
    fn focus_stays_with_its_pod() on open;
    fn least_change_keeps_a_pod() on open;
    fn earlier_times_are_shown() on open;
    fn shadow_report_can_be_passed_on() on open;
    fn board_keeps_its_rows_until_agents_are_back() on open;
    fn changes_of_the_cluster_are_foretold() on open;
    fn previews_follow_the_cluster_and_say_what_they_lack() on open;
}
