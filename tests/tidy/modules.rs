//! No cycles between files: a reader can read the files one after the other.
//!
//! The graph comes from the sources of each target of the workspace (library, binary, test, benchmark). File A has an edge to
//! file B of the same target where A uses an item that B defines:
//!
//! - a path names it, in an expression, a type, a pattern, an attribute, or the arguments of a macro;
//! - a `use` imports the item itself: `use crate::queue;` is no edge, `queue::Entry` after it is one;
//! - A calls a method whose receiver is `self`, a parameter, or a field of these, and B has the `impl` that defines it;
//! - A has an `impl` of a type that B defines, since that names the type.
//!
//! Modules of the TypeScript and Python clients and of the console have an edge to each file that they import, types included.
//!
//! A re-export is followed to the file that defines the item, and neither `mod x;` nor `pub use x::Item;` is by itself a use.
//! The graph excludes code under `#[cfg(test)]`: tests may use anything.
//!
//! The graph misses methods of other receivers (it would have to infer their type) and the bodies of `macro_rules!`.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{
    files::File,
    modules::{graph::Graph, tree::Tree},
};

mod graph;
mod impls;
mod names;
mod scripts;
mod targets;
mod tree;
mod uses;

#[test]
fn no_files_form_a_circle() {
    let targets = targets::all();
    let targets = targets.iter().map(|target| graph_of(&Tree::read(target)));
    let found: BTreeMap<_, _> = targets
        .chain(scripts::all())
        .flat_map(|graph| graph.circles())
        .collect();
    let mut text = String::new();
    for (files, edges) in &found {
        let _ = write!(
            text,
            "\na circle of {} files, to be cut at one of these edges:\n{edges}",
            files.len()
        );
    }
    assert!(text.is_empty(), "{text}");
}

#[test]
fn circles_are_found_through_reexports_methods_and_macros() {
    let circles = circles_of(&[
        (
            "lib.rs",
            "mod shape; mod round; pub use shape::Shape; use round::area; fn f() { area(); }",
        ),
        (
            "shape.rs",
            "pub struct Shape { sides: u32 } impl Shape { fn all(&self) -> String { format!(\"{}\", self.corners()) } }",
        ),
        (
            "round.rs",
            "use crate::Shape; impl Shape { fn corners(&self) -> u32 { 0 } } pub fn area() {}",
        ),
    ]);
    assert_eq!(circles, [["round.rs", "shape.rs"]]);
}

#[test]
fn declarations_tests_and_reexports_alone_are_no_circle() {
    let circles = circles_of(&[
        (
            "lib.rs",
            "mod child; pub use child::Child; pub struct Parent; #[cfg(test)] mod tests { use super::child::Child; }",
        ),
        ("child.rs", "use super::Parent; pub struct Child(Parent);"),
    ]);
    assert_eq!(circles, Vec::<Vec<String>>::new());
}

#[test]
fn circles_of_scripts_are_found_through_their_imports() {
    let file = |path: &str, text: &str| File {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let typescript = [
        file("src/agent.ts", "import { Session } from \"./session.js\";"),
        file(
            "src/session.ts",
            "import type { Agent } from \"./agent.js\";\nimport { once } from './call.js';",
        ),
        file("src/call.ts", "export { clone } from \"./other/agent.js\";"),
    ];
    let python = [
        file("decree/agent.py", "from decree.session import Session"),
        file("decree/session.py", "from decree.agent import Agent"),
    ];
    for (files, circle) in [
        (&typescript[..], ["src/agent.ts", "src/session.ts"]),
        (&python[..], ["decree/agent.py", "decree/session.py"]),
    ] {
        let circles = scripts::graph_of(files).circles().into_iter();
        let circles: Vec<_> = circles.map(|(files, _)| files).collect();
        assert_eq!(circles, [circle]);
    }
}

#[test]
fn the_rule_sees_files_and_edges() {
    let graphs = targets::all();
    let graphs = graphs.iter().map(|target| graph_of(&Tree::read(target)));
    let graphs = graphs.chain(scripts::all());
    let edges: usize = graphs.map(|graph| graph.edges()).sum();
    assert!(
        edges > 800,
        "only {edges} edges were found: the rule is blind"
    );
}

fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("the folder can be written");
    }
    let tree = Tree::read(&folder.path().join(files[0].0));
    let circles = graph_of(&tree).circles().into_iter();
    let relative = |file: String| {
        file.rsplit('/')
            .next()
            .map_or_else(String::new, str::to_owned)
    };
    circles
        .map(|(files, _)| files.into_iter().map(relative).collect())
        .collect()
}

fn graph_of(tree: &Tree) -> Graph {
    let names = names::Names::of(tree);
    let mut graph = Graph::default();
    for (from, to, name) in uses::all(tree, &names) {
        graph.add(&tree.files[from], &tree.files[to], name);
    }
    graph
}
