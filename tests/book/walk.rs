//! Every page of the site fits its screen, narrow or wide, light or dark, and is accessible.

use std::process::Command;

use serde_json::json;
use tests::{binaries, depth, running::output_of, tools};

use super::site;

/// Files that a browser never shows as separate pages.
const NOT_PAGES: [&str; 2] = ["404.html", "toc.html"];

#[test]
fn pages_fit_every_screen_and_bar_nobody() {
    let (Some(site), Some(chromium), Some(modules)) =
        (site::built(), tools::chromium(), tools::browser_packages())
    else {
        return;
    };
    let pages = site.pages.keys();
    let pages: Vec<_> = pages
        .filter(|page| !NOT_PAGES.contains(&page.as_str()))
        .collect();
    let given = json!({
        "site": site.folder,
        "pages": pages,
        "chromium": chromium,
        "modules": modules,
        "full": depth::is_full(),
    });
    let script = binaries::checkout().join("tests/book/walk.mjs");
    output_of(Command::new("node").arg(script).arg(given.to_string()));
}
