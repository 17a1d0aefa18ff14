//! Each form of data that docs/architecture.md lists is a type of the sources, and the lists do not grow.

use std::collections::BTreeMap;

use crate::{documents::architecture_rows, files};

/// The lists, each with the number of its forms. The numbers must not grow.
const LISTS: [(&str, usize); 3] = [
    ("### A pod, ", 9),
    ("### An outcome, ", 8),
    ("### A batch, ", 8),
];

#[test]
fn forms_of_the_architecture_are_types_and_do_not_become_more() {
    let page = files::read("docs/architecture.md");
    let folders = architecture_rows("## The folders").into_iter();
    let folders: BTreeMap<_, _> = folders.map(|(folder, package)| (package, folder)).collect();
    for (heading, count) in LISTS {
        let (_, section) = page.split_once(heading).expect("the list is there");
        let section = section.split("\n#").next().unwrap_or_default();
        let rows: Vec<_> = section.lines().filter(|it| it.starts_with("| `")).collect();
        assert_eq!(rows.len(), count, "{heading}: {rows:#?}");
        for row in rows {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let [_, form, package, place, ..] = cells[..] else {
                panic!("{row}");
            };
            let [form, place] = [form, place].map(|cell| cell.trim_matches('`'));
            let folder = folders.get(package).expect("it is a package");
            assert!(place.starts_with(folder.trim_matches('`')), "{row}");
            assert!(
                has_type(&files::read(place), form),
                "{place} has no type {form}"
            );
        }
    }
}

/// Returns whether a text defines a type, or names a type of a library as a result.
fn has_type(text: &str, name: &str) -> bool {
    let openings = ["struct ", "enum ", "message ", "-> ", "Result<"];
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    openings.iter().any(|opening| {
        let start = format!("{opening}{name}");
        let mut rests = text.split(&start).skip(1);
        rests.any(|rest| !rest.starts_with(is_part))
    })
}
