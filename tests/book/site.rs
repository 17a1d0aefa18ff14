//! The site, built once.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use tests::{binaries, running::output_of, tools};

pub(crate) struct Site {
    pub(crate) folder: PathBuf,
    /// The text of each page, by its path within the site.
    pub(crate) pages: BTreeMap<String, String>,
}

/// Returns the site, built once from the checkout into a separate folder. `None` if mdbook is not available.
pub(crate) fn built() -> Option<&'static Site> {
    static SITE: OnceLock<Site> = OnceLock::new();
    let mdbook = tools::mdbook()?;
    Some(SITE.get_or_init(|| build(mdbook)))
}

fn build(mdbook: &Path) -> Site {
    let folder = binaries::checkout().join("target/book-test");
    let mut command = Command::new(mdbook);
    command.args(["build", "--dest-dir"]).arg(&folder);
    let [_, said] = output_of(command.arg(binaries::checkout()));
    assert!(!said.contains("WARN") && !said.contains("ERROR"), "{said}");
    let mut pages = BTreeMap::new();
    collect(&folder, &folder, &mut pages);
    assert!(pages.len() > 40, "only {} pages", pages.len());
    Site { folder, pages }
}

fn collect(root: &Path, folder: &Path, pages: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("it was built").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(root, &path, pages);
        } else if path.extension().is_some_and(|it| it == "html") {
            let name = path.strip_prefix(root).expect("it is inside");
            let text = fs::read_to_string(&path).expect("a page is text");
            pages.insert(name.to_string_lossy().into_owned(), text);
        }
    }
}
