//! The search of the site in Chromium, as a reader uses it.

use std::process::Command;

use tempfile::TempDir;
use tests::tools;

use super::site::{self, Site};

/// Words of the documents, each with a page that the search must list: for symptoms, as the first.
const SOUGHT: [(&str, &str, bool); 6] = [
    ("quota", "troubleshooting.html", true),
    ("budget", "safeguards.html", true),
    ("SESSION_SUPERSEDED", "errors.html", false),
    ("slow start", "glossary.html", false),
    ("quarantined", "errors.html", false),
    ("ListReplicaSets", "api.html", false),
];

#[test]
fn search_finds_what_the_pages_say_and_what_to_do_first() {
    let (Some(site), Some(chromium)) = (site::built(), tools::chromium()) else {
        return;
    };
    for (words, page, is_first) in SOUGHT {
        let found = search(chromium, site, words);
        let results = results(&found);
        let first = results.split("href=\"").nth(1).unwrap_or_default();
        let is_found = if is_first {
            first.starts_with(page)
        } else {
            results.contains(page)
        };
        assert!(is_found, "{words:?} does not find {page}: {results}");
    }
}

/// Returns the list of results.
fn results(page: &str) -> &str {
    let (_, rest) = page
        .split_once("id=\"mdbook-searchresults\"")
        .unwrap_or_default();
    rest.split("</ul>").next().unwrap_or_default()
}

/// Returns the first page after its search has run.
fn search(chromium: &std::path::Path, site: &Site, words: &str) -> String {
    let profile = TempDir::new().expect("a folder");
    let page = site.folder.join("index.html");
    let address = format!(
        "file://{}?search={}",
        page.display(),
        words.replace(' ', "+")
    );
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .args([
            "--allow-file-access-from-files",
            "--virtual-time-budget=20000",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(address)
        .output();
    let output = output.expect("it is a program");
    String::from_utf8(output.stdout).expect("a page is text")
}
