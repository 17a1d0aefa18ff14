//! Documents keep their promises: links lead somewhere, and each MUST names a test that exists.

use crate::files;

#[test]
fn links_between_files_lead_somewhere() {
    for file in files::with_ending(&[".md"]) {
        let folder = files::root()
            .join(&file.path)
            .parent()
            .expect("a file is in a folder")
            .to_owned();
        for target in file
            .text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let path = target.split('#').next().unwrap_or_default();
            let outside = target.contains("://") || path.is_empty() || path.contains(' ');
            assert!(
                outside || folder.join(path).exists(),
                "{}: {target} is not there",
                file.path
            );
        }
    }
}

#[test]
fn each_must_of_the_protocol_names_a_test_that_exists() {
    let protocol = std::fs::read_to_string(files::root().join("docs/protocol.md"))
        .expect("the document is there");
    let tests: Vec<_> = files::with_ending(&[".rs"])
        .into_iter()
        .filter(|file| file.text.contains("fn "))
        .collect();
    let rules: Vec<_> = protocol
        .lines()
        .filter(|line| line.starts_with("- ") && line.contains("MUST"))
        .collect();
    assert!(
        rules.len() > 10,
        "the protocol has {} rules: the search is broken",
        rules.len()
    );
    for rule in rules {
        let tail = rule.rsplit_once(" Test").map_or("", |(_, tail)| tail);
        let named: Vec<_> = tail.split('`').skip(1).step_by(2).collect();
        let exists = |name: &&str| {
            let name = name.rsplit("::").next().unwrap_or(name);
            tests
                .iter()
                .any(|file| file.text.contains(&format!("fn {name}(")))
        };
        let held = !named.is_empty() && named.iter().all(exists);
        assert!(held, "not each test that it names exists: {rule}");
    }
}
