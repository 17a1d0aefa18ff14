//! The files of the checkout that the rules check.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// A text file with its path, relative to the root of the checkout.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests are in a folder of the checkout")
        .to_owned()
}

/// Reads a file of the checkout.
pub(crate) fn read(path: &str) -> String {
    let text = fs::read_to_string(root().join(path));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the names of the packages by their folders.
pub(crate) fn packages() -> BTreeMap<String, String> {
    let manifests = with_ending(&["Cargo.toml"]).into_iter();
    let packages = manifests.filter_map(|file| {
        let manifest: toml::Table = file.text.parse().expect("a manifest is TOML");
        let name = manifest.get("package")?.get("name")?.as_str()?.to_owned();
        let folder = file.path.trim_end_matches("Cargo.toml");
        Some((folder.trim_end_matches('/').to_owned(), name))
    });
    packages.collect()
}

/// Returns whether one of these sources has a function of this name.
pub(crate) fn has_function(sources: &[File], name: &str) -> bool {
    let definition = format!("fn {name}(");
    sources.iter().any(|file| file.text.contains(&definition))
}

/// Returns all files with one of these endings, sorted by path.
pub(crate) fn with_ending(endings: &[&str]) -> Vec<File> {
    let root = root();
    let mut files = Vec::new();
    collect(&root, &root, endings, &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(
        !files.is_empty(),
        "no file ends in {endings:?}: the walk is broken"
    );
    files
}

fn collect(root: &Path, folder: &Path, endings: &[&str], files: &mut Vec<File>) {
    for entry in fs::read_dir(folder)
        .expect("the checkout can be read")
        .flatten()
    {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", ".git", "__pycache__", "node_modules"].contains(&name.as_str()) {
                collect(root, &path, endings, files);
            }
        } else if endings.iter().any(|ending| name.ends_with(ending))
            && let Ok(text) = fs::read_to_string(&path)
        {
            let path = path
                .strip_prefix(root)
                .expect("the walk stays inside")
                .to_string_lossy()
                .into_owned();
            files.push(File { path, text });
        }
    }
}
