//! Tier: the console in a real browser, on a real server with an agent of an embedded cluster.
//!
//! A story is a JavaScript function of `stories/` that drives Chromium like a person: it looks, clicks and types. To change the
//! cluster, the story sends a request to this process, and gets the response, as lines of JSON ([`stage`]). After each story the script fails on
//! errors in the browser's console, violations of the content security policy, and requests to other hosts.
//!
//! Chromium must be installed (`apt-get install chromium`, or `DECREE_CHROMIUM` names it); npm installs missing packages. Without them,
//! the stories are skipped with a notice, and fail in CI. Pictures of the pages are written to `target/console`.

mod browser;
mod contract;
mod crowd;
mod frames;
mod moving;
mod stage;

use decree_server::Config;

use self::stage::Stage;

async fn play(story: &str, stage: Stage) {
    let Some(browser) = browser::installed() else {
        return;
    };
    browser.play(story, stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn board_follows_the_cluster() {
    play(
        "board_follows_the_cluster",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_led_here_is_told_to_who_opens_the_page_later() {
    play(
        "what_led_here_is_told_to_who_opens_the_page_later",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keyboard_alone_reaches_everything() {
    play(
        "keyboard_alone_reaches_everything",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_fit_narrow_screens_and_dark_rooms() {
    play(
        "pages_fit_narrow_screens_and_dark_rooms",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_bars_anyone_from_any_view() {
    play(
        "nothing_bars_anyone_from_any_view",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_connection_is_told() {
    play(
        "what_is_wrong_with_the_connection_is_told",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shadow_shows_its_differences() {
    play(
        "shadow_shows_its_differences",
        Stage::shadow(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_limits_hold_back_is_shown_until_when() {
    play(
        "what_limits_hold_back_is_shown_until_when",
        Stage::held(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recording_is_replayed_step_by_step() {
    play(
        "recording_is_replayed_step_by_step",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn file_that_is_no_recording_is_refused_in_words() {
    play(
        "file_that_is_no_recording_is_refused_in_words",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn token_opens_the_pages() {
    play(
        "token_opens_the_pages",
        Stage::guarded(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn board_puts_causes_first() {
    play(
        "board_puts_causes_first",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn board_is_filtered_and_sorted() {
    play(
        "board_is_filtered_and_sorted",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn map_shows_every_replica_set() {
    play(
        "map_shows_every_replica_set",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_a_replica_set_says_what_to_do() {
    play(
        "page_of_a_replica_set_says_what_to_do",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_says_what_it_does_not_know() {
    play(
        "page_says_what_it_does_not_know",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn least_change_keeps_a_pod() {
    play(
        "least_change_keeps_a_pod",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_times_are_shown() {
    play(
        "earlier_times_are_shown",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shadow_report_can_be_passed_on() {
    play(
        "shadow_report_can_be_passed_on",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn board_keeps_its_rows_until_agents_are_back() {
    play(
        "board_keeps_its_rows_until_agents_are_back",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_the_cluster_are_foretold() {
    play(
        "changes_of_the_cluster_are_foretold",
        Stage::open(Config::embedded()).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_node_is_one_cause() {
    play(
        "lost_node_is_one_cause",
        Stage::open(Config::embedded()).await,
    )
    .await;
}
