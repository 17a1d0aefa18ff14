//! Links of the site resolve, and no page loads anything from another host.

use std::{collections::BTreeSet, fs, path::PathBuf};

use tests::binaries;

use super::site::{self, Site};

/// The target of links that leave the documents.
const REPOSITORY: &str = "https://github.com/decree-dev/decree";

#[test]
fn links_and_anchors_lead_somewhere() {
    let Some(site) = site::built() else { return };
    let mut count = 0;
    let mut broken = BTreeSet::new();
    // The page for printing contains all pages, with the same links. The 404 page assumes the root of a host.
    let pages = site
        .pages
        .iter()
        .filter(|(page, _)| *page != "print.html" && *page != "404.html");
    for (page, text) in pages {
        for link in attributes(text, "href") {
            count += 1;
            if !leads_somewhere(site, page, link) {
                broken.insert(format!("{page}: {link}"));
            }
        }
    }
    assert!(count > 1_000, "{count} links: the search is broken");
    assert!(broken.is_empty(), "{broken:#?}");
}

fn leads_somewhere(site: &Site, page: &str, link: &str) -> bool {
    if let Some(path) = link.strip_prefix(REPOSITORY) {
        let path = path
            .strip_prefix("/blob/main/")
            .or_else(|| path.strip_prefix("/tree/main/"));
        let path = path.map(|path| path.split('#').next().unwrap_or_default());
        return path.is_none_or(|path| binaries::checkout().join(path).exists());
    }
    if link.contains("://") || link.starts_with("mailto:") {
        return true;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => page.to_owned(),
        path => resolved(page, path),
    };
    match site.pages.get(&target) {
        Some(text) => anchor.is_empty() || attributes(text, "id").any(|id| id == anchor),
        None => anchor.is_empty() && site.folder.join(target).is_file(),
    }
}

/// Returns the target of a relative path of a page, from the root of the site.
fn resolved(page: &str, path: &str) -> String {
    let mut parts: Vec<_> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the values of an attribute in a text.
fn attributes<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let opening = format!(" {name}=\"");
    let starts: Vec<_> = text
        .match_indices(&opening)
        .map(|(at, found)| at + found.len())
        .collect();
    starts
        .into_iter()
        .filter_map(|start| text[start..].split('"').next())
}

#[test]
fn nothing_is_loaded_from_another_host() {
    let Some(site) = site::built() else { return };
    for (page, text) in &site.pages {
        for source in attributes(text, "src") {
            assert!(!source.contains("//"), "{page} loads {source}");
        }
        let links = text
            .split("<link ")
            .skip(1)
            .filter_map(|rest| rest.split('>').next());
        for link in links {
            assert!(!link.contains("//"), "{page} loads {link}");
        }
    }
    for style in styles(&site.folder) {
        let text = fs::read_to_string(&style).expect("a style is text");
        let loads = text
            .split("url(")
            .skip(1)
            .chain(text.split("@import").skip(1));
        for load in loads {
            let place = load.trim_start_matches(['"', '\'', ' ']);
            assert!(
                !place.starts_with("http") && !place.starts_with("//"),
                "{style:?}"
            );
        }
    }
}

fn styles(folder: &std::path::Path) -> Vec<PathBuf> {
    let folders = ["", "css", "fonts"].map(|name| folder.join(name));
    let entries = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("it is there"));
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let styles: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "css"))
        .collect();
    assert!(styles.len() > 3, "the search is broken");
    styles
}

#[test]
fn summary_names_every_document() {
    let docs = binaries::checkout().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).expect("it is there");
    for folder in ["", "internals/", "decisions/"] {
        for entry in fs::read_dir(docs.join(folder))
            .expect("it is there")
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_page = name.ends_with(".md") && name != "SUMMARY.md";
            let link = format!("({folder}{name})");
            assert!(
                !is_page || summary.contains(&link),
                "docs/SUMMARY.md lacks {link}"
            );
        }
    }
    let index = fs::read_to_string(docs.join("decisions/README.md")).expect("it is there");
    for entry in fs::read_dir(docs.join("decisions"))
        .expect("it is there")
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let link = format!("({name})");
        assert!(
            name == "README.md" || index.contains(&link),
            "docs/decisions/README.md lacks {link}"
        );
    }
}

#[test]
fn titles_of_the_summary_are_those_of_the_pages() {
    let docs = binaries::checkout().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).expect("it is there");
    let links = summary.lines().filter_map(|line| {
        let (title, path) = line.trim().trim_start_matches("- ").split_once("](")?;
        Some((title.strip_prefix('[')?, path.strip_suffix(')')?))
    });
    let links: Vec<_> = links.collect();
    assert!(links.len() > 40, "the search is broken");
    for (title, path) in links {
        let page = fs::read_to_string(docs.join(path)).expect("the page is there");
        let heading = page.lines().next().and_then(|line| line.strip_prefix("# "));
        assert_eq!(heading, Some(title), "docs/{path}");
    }
}
