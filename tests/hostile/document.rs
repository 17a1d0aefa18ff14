//! The table of docs/security-tests.md: every cell, and its required result.

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use tests::binaries;

use crate::{
    agents,
    cells::{self, Cell},
};

const BEGIN: &str = "<!-- The cells of tests/hostile; written by it. -->\n";
const END: &str = "<!-- The end of the cells. -->\n";

#[test]
fn table_of_the_document_is_that_of_the_data() {
    let path = binaries::checkout().join("docs/security-tests.md");
    let text = fs::read_to_string(&path).expect("the document is in the checkout");
    let (before, rest) = text.split_once(BEGIN).expect("the document has the mark");
    let (written, after) = rest.split_once(END).expect("the document has the other");
    let table = table();
    if env::var_os("DECREE_HOSTILE_TABLE").is_some() {
        write(path, &format!("{before}{BEGIN}{table}{END}{after}"));
        return;
    }
    let remedy = "DECREE_HOSTILE_TABLE=1 cargo test -p tests --test hostile table writes it";
    assert!(written == table, "{remedy}");
}

fn write(path: PathBuf, text: &str) {
    fs::write(path, text).expect("the document can be written");
}

/// A table for each file of cells.
fn table() -> String {
    let mut groups: BTreeMap<String, Vec<Cell>> = BTreeMap::new();
    for (group, cell) in cells::all() {
        groups.entry(group).or_default().push(cell);
    }
    let servers: usize = groups.values().map(Vec::len).sum();
    let of_agents = agents::all();
    let all: usize = servers + of_agents.values().map(Vec::len).sum::<usize>();
    let mut text = format!("\n{all} cells, {servers} of them against the server.\n");
    for (group, cells) in groups {
        text += &format!("\n### `{group}`: {} cells\n\n", cells.len());
        text += "| attack | allowed results | others keep | memory | p99 of the neighbor |\n";
        text += "| --- | --- | --- | --- | --- |\n";
        text.extend(cells.iter().map(row));
    }
    for (group, cells) in of_agents {
        text += &agents::table(&group, &cells);
    }
    text + "\n"
}

fn row(cell: &Cell) -> String {
    let ends: Vec<_> = cell.ends.iter().map(|end| format!("`{end}`")).collect();
    let p99 = cell.p99_ms.map(|ms| format!("{ms} ms"));
    let fails = cell.fails.as_ref();
    let fails = fails.map(|fails| format!(" **Does not hold: {fails}.**"));
    format!(
        "| {}{} | {} | {} | {} MB | {} |\n",
        cell.name,
        fails.unwrap_or_default(),
        ends.join(", "),
        cell.keeps.join(", "),
        cell.memory_mb,
        p99.unwrap_or_default()
    )
}
