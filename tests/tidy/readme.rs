//! The README shows the essentials on its first screens, and all its figures match their sources.

use tests::fenced;

use crate::files;

/// The maximum length of the README, in lines.
const LINES_MAX: usize = 120;
/// The number of lines that must contain the picture and the two commands that show and test Decree.
const SCREEN: usize = 15;
const SCREENS: usize = 60;

#[test]
fn readme_shows_a_picture_and_two_commands_in_its_first_screens() {
    let readme = files::read("README.md");
    let lines: Vec<_> = readme.lines().collect();
    assert!(lines.len() <= LINES_MAX, "{} lines", lines.len());
    let picture = lines
        .iter()
        .position(|line| line.contains("docs/console.svg"));
    assert!(picture.is_some_and(|line| line < SCREEN), "{picture:?}");
    let blocks = fenced::blocks(&readme);
    for check in ["demo", "test"] {
        let block = blocks.iter().find(|block| block.check() == Some(check));
        let line = block.map(|block| block.line);
        assert!(line.is_some_and(|line| line < SCREENS), "{check}: {line:?}");
    }
}

#[test]
fn times_of_the_readme_are_those_of_the_benchmark() {
    let page = files::read("docs/performance.md");
    let number = |section: &str, row: &str, column: usize| -> f64 {
        let (_, rest) = page.split_once(section).expect("it is measured");
        let line = rest.lines().find(|line| line.starts_with(row));
        let cell = line.and_then(|line| line.split('|').nth(column));
        let number = cell.and_then(|cell| cell.trim().parse().ok());
        number.unwrap_or_else(|| panic!("{section} has no {row}"))
    };
    let both = |section, row: &str, column| {
        ["kube-controller-manager", "decree"].map(|controller| {
            let row = row.replace("NAME", controller);
            number(section, &row, column)
        })
    };
    let [theirs, ours] = both("### Default settings compared", "| NAME |", 2);
    let [unlimited, fast] = both("## Compared with", "| 1 × 1000 | NAME |", 3);
    let [waits, soon] = both("### Small ReplicaSets", "| NAME | beside", 4);
    let waits = (waits.round() / 1000.0).to_string().replace('.', ",");
    let claims = [
        format!("takes {ours:.1} s; kube-controller-manager takes {theirs:.0} s"),
        format!("it takes {unlimited:.2} s, and Decree {fast:.2} s"),
        format!("within {soon:.0} ms; with kube-controller-manager, within {waits} ms"),
    ];
    for page in ["README.md", "docs/README.md"] {
        for claim in &claims {
            assert!(
                files::read(page).contains(claim),
                "{page}, measured: {claim}"
            );
        }
    }
}

#[test]
fn versions_of_the_readme_are_those_that_are_tested() {
    let readme = files::read("README.md");
    let cluster = constant("tests/kube/check.rs", "(\"OK\", \"answers, ");
    let minor = cluster.rsplit_once('.').map_or("", |(minor, _)| minor);
    let kubectl = constant("tests/src/tools.rs", "OLDEST_KUBECTL: &str = \"kubectl-");
    let claims = [
        format!("The tests run Decree on {minor},"),
        format!("with kubectl {kubectl} and {minor}"),
    ];
    for claim in claims {
        assert!(readme.contains(&claim), "tested: {claim}");
    }
    let version = constant("Cargo.toml", "\nversion = \"");
    let minor = version.rsplit_once('.').map_or("", |(minor, _)| minor);
    assert!(readme.contains(&format!("Version {minor}.")), "{version}");
}

/// Returns the text after an opening in a file, up to the closing quote.
fn constant(path: &str, opening: &str) -> String {
    let text = files::read(path);
    let (_, rest) = text
        .split_once(opening)
        .unwrap_or_else(|| panic!("{path} has no {opening}"));
    rest.split('"').next().unwrap_or_default().to_owned()
}
