//! A graph of files and its strongly connected components.

use std::collections::{BTreeMap, BTreeSet};

/// The edges between files, with the used names.
#[derive(Default)]
pub(super) struct Graph {
    edges: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

// === impl Graph ===

impl Graph {
    pub(super) fn add(&mut self, from: &str, to: &str, name: String) {
        let targets = self.edges.entry(from.to_owned()).or_default();
        targets.entry(to.to_owned()).or_default().insert(name);
    }

    pub(super) fn edges(&self) -> usize {
        self.edges.values().map(BTreeMap::len).sum()
    }

    /// Returns each cycle: its files, sorted, and a line for each edge within it.
    pub(super) fn circles(&self) -> Vec<(Vec<String>, String)> {
        let reach: BTreeMap<_, _> = self
            .edges
            .keys()
            .map(|file| (file, self.reachable(file)))
            .collect();
        let mut circles = BTreeSet::new();
        for (file, reached) in &reach {
            let is_mutual =
                |other: &&String| reach.get(*other).is_some_and(|it| it.contains(*file));
            let circle: Vec<_> = reached.iter().filter(is_mutual).cloned().collect();
            if !circle.is_empty() {
                circles.insert(circle);
            }
        }
        let lines = |circle: Vec<String>| (circle.clone(), self.lines(&circle));
        circles.into_iter().map(lines).collect()
    }

    /// Returns all files that a file needs, directly or not; the file itself only if it is part of a cycle.
    fn reachable(&self, file: &str) -> BTreeSet<String> {
        let mut reached = BTreeSet::new();
        let mut left = vec![file];
        while let Some(next) = left.pop() {
            for target in self.edges.get(next).into_iter().flat_map(BTreeMap::keys) {
                if reached.insert(target.clone()) {
                    left.push(target);
                }
            }
        }
        reached
    }

    /// Returns the edges within a cycle, edges with the fewest names first.
    fn lines(&self, circle: &[String]) -> String {
        let mut edges: Vec<_> = circle
            .iter()
            .filter_map(|from| Some((from, self.edges.get(from)?)))
            .flat_map(|(from, targets)| targets.iter().map(move |(to, names)| (names, from, to)))
            .filter(|(_, _, to)| circle.contains(to))
            .collect();
        edges.sort_by_key(|(names, from, to)| (names.len(), *from, *to));
        let line = |(names, from, to): (&BTreeSet<String>, &String, &String)| {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            format!("  {from} → {to}: {}\n", names.join(", "))
        };
        edges.into_iter().map(line).collect()
    }
}
