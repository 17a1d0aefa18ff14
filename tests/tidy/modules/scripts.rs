//! The module graph of a client and of the console, whose import statements name files.

use std::collections::BTreeSet;

use crate::{
    files::{File, with_ending},
    modules::graph::Graph,
};

/// The folders that the rule reads, with the extension of their files.
const FOLDERS: [(&str, &str); 3] = [
    ("clients/typescript/src/", ".ts"),
    ("clients/python/decree/", ".py"),
    ("console/", ".js"),
];

pub(super) fn all() -> Vec<Graph> {
    FOLDERS
        .map(|(folder, ending)| {
            let mut files = with_ending(&[ending]);
            files.retain(|file| file.path.starts_with(folder));
            assert!(!files.is_empty(), "{folder} has no modules");
            graph_of(&files)
        })
        .into()
}

/// Returns the graph of these files. Imports of types count, because a reader needs them too.
pub(super) fn graph_of(files: &[File]) -> Graph {
    let paths: BTreeSet<_> = files.iter().map(|file| file.path.as_str()).collect();
    let mut graph = Graph::default();
    for File { path, text } in files {
        let folder = path.rfind('/').map_or("", |end| &path[..=end]);
        for name in text.lines().filter_map(imported) {
            let imported = ["ts", "js", "py"].map(|ending| format!("{folder}{name}.{ending}"));
            for to in imported.iter().filter(|it| paths.contains(it.as_str())) {
                graph.add(path, to, name.to_owned());
            }
        }
    }
    graph
}

/// Returns the module that a line imports: `from './NAME.js'`, or in Python `from decree.NAME import …`.
fn imported(line: &str) -> Option<&str> {
    let (_, from) = line.split_once("from ")?;
    if let Some((name, _)) = from
        .strip_prefix("decree.")
        .and_then(|it| it.split_once(" import"))
    {
        return Some(name);
    }
    from.trim_start_matches(['\'', '"'])
        .strip_prefix("./")?
        .split_once(".js")
        .map(|(name, _)| name)
}
