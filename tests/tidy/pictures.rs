//! The drawings of the documents: accessible on light and dark pages, and the chart of docs/performance.md equal to its table.

use std::fmt::Write as _;

use crate::files;

/// The chart, which `UPDATE_EXPECT=1` draws again.
const CHART: &str = "docs/scaling.svg";
/// A series of photographs, which a story of the console makes.
const PHOTOGRAPHS: &str = "docs/console.svg";
/// The maximum width, so that text is readable in a column of 700 pixels.
const WIDTH: u32 = 800;
const FONT_MIN: u32 = 12;

/// The length that stands for kube-controller-manager, and the places of the columns of a panel.
const WHOLE: f64 = 110.0;
const PANEL: f64 = 390.0;
const BAR: f64 = 92.0;
/// The name of a panel, the columns of the table that it adds up, their unit, and the number of decimals.
const PANELS: [(&str, &[usize], &str, usize); 4] = [
    ("Time up", &[3], "s", 2),
    ("Time down", &[7], "s", 2),
    ("Processor time, up and down", &[5, 8], "s", 2),
    ("Peak memory", &[10], "MB", 0),
];
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#0f172a}.h{font-weight:600}.w{fill:#ffffff}.less{fill:#2f6fde}.more{fill:#c2410c}.one{stroke:#64748b}\
    @media(prefers-color-scheme:dark){text{fill:#e2e8f0}.w{fill:#161923}.less{fill:#60a5fa}.more{fill:#fb923c}.one{stroke:#cbd5e1}}";
const TITLE: &str = "Decree compared with kube-controller-manager, by number of pods";
const SETTINGS: &str =
    "kube-controller-manager may make 10,000 requests a second; by default, it makes 20.";
const LINE: &str = "The line is kube-controller-manager; the figures are of Decree, and then of kube-controller-manager.";

/// The cells of a row of the table: of kube-controller-manager and of Decree.
type Pair = [Vec<String>; 2];

#[test]
fn chart_of_the_performance_is_that_of_its_table() {
    let drawn = chart(&pairs(&files::read("docs/performance.md")));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(files::root().join(CHART), &drawn).expect("the checkout can be written");
    }
    assert!(
        files::read(CHART) == drawn,
        "draw {CHART} again with UPDATE_EXPECT=1"
    );
}

#[test]
fn drawings_are_described_and_readable_on_light_and_dark_pages() {
    let drawings = files::with_ending(&[".svg"]);
    let drawings = drawings.iter().filter(|it| it.path.starts_with("docs/"));
    let drawings: Vec<_> = drawings.filter(|it| it.path != PHOTOGRAPHS).collect();
    assert!(drawings.len() > 5, "the search is broken");
    for files::File { path, text } in drawings {
        for part in ["role=\"img\"", "<title id=\"t\">", "<desc id=\"e\">"] {
            assert!(text.contains(part), "{path} has no {part}");
        }
        assert!(text.contains("@media(prefers-color-scheme:dark)"), "{path}");
        let outside = ["href", "<image", "url(http", "<script"];
        assert!(!outside.iter().any(|it| text.contains(it)), "{path}");
        let number = |rest: &str| {
            let end = rest.find(|it: char| !it.is_ascii_digit());
            rest[..end.unwrap_or(0)].parse::<u32>().unwrap_or_default()
        };
        let widths = text.split("viewBox=\"0 0 ").skip(1).map(number);
        assert!(widths.max().is_some_and(|it| it <= WIDTH), "{path} is wide");
        let fonts = text.split("font").skip(1);
        let fonts =
            fonts.filter_map(|it| it.strip_prefix(':').or_else(|| it.strip_prefix("-size:")));
        let smallest = fonts.map(number).filter(|it| *it > 0).min();
        assert!(smallest.is_some_and(|it| it >= FONT_MIN), "{path} is small");
    }
}

#[test]
fn drawing_of_the_order_of_deletion_has_the_rules_of_the_manual() {
    let manual = files::read("docs/cli.md");
    let (_, table) = manual
        .split_once("| `ALL_GO` |")
        .expect("it lists the rules");
    let rows = table.lines().skip(1).map_while(|it| it.strip_prefix("| `"));
    let rules: Vec<_> = rows.filter_map(|it| it.split('`').next()).collect();
    let drawing = files::read("docs/pictures/order.svg");
    let names = drawing.split("<text class=\"h\"").skip(1);
    let names = names.filter_map(|it| it.split(['>', '<']).nth(1));
    assert_eq!(names.collect::<Vec<_>>(), rules);
}

/// Returns the rows of the first table of the comparison, one pair for each shape.
fn pairs(page: &str) -> Vec<Pair> {
    let (_, section) = page
        .split_once("## Compared with kube-controller-manager")
        .expect("it is measured");
    let section = section.split("\n![").next().unwrap_or_default();
    let cells =
        |line: &str| -> Vec<String> { line.split('|').map(|it| it.trim().to_owned()).collect() };
    let of = |name: &str| {
        let name = format!("| {name} |");
        let rows = section.lines().filter(move |line| line.contains(&name));
        rows.map(cells).collect::<Vec<_>>()
    };
    let pairs: Vec<Pair> = of("kube-controller-manager")
        .into_iter()
        .zip(of("decree"))
        .map(|(theirs, ours)| [theirs, ours])
        .collect();
    assert!(pairs.len() > 3, "the table has {} shapes", pairs.len());
    assert!(pairs.iter().all(|[theirs, ours]| theirs[1] == ours[1]));
    pairs
}

/// Draws a panel for each figure, and in it a bar for each shape, as a share of kube-controller-manager.
fn chart(pairs: &[Pair]) -> String {
    let panel = 42.0 + 24.0 * pairs.len() as f64;
    let height = 86.0 + 2.0 * panel;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-labelledby=\"t\" aria-describedby=\"e\">\n\
         <title id=\"t\">{TITLE}</title>\n<desc id=\"e\">{}</desc>\n<style>{STYLE}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"6\" class=\"w\"/>\n",
        description(pairs)
    );
    text(&mut svg, (20.0, 24.0), "h", TITLE);
    text(&mut svg, (20.0, 42.0), "", SETTINGS);
    for (at, class, words) in [
        (520.0, "less", "Decree takes less"),
        (660.0, "more", "Decree takes more"),
    ] {
        bar(&mut svg, (at, 14.0, 12.0), class);
        text(&mut svg, (at + 18.0, 24.0), "", words);
    }
    text(&mut svg, (20.0, 58.0), "", LINE);
    for (number, (name, columns, unit, decimals)) in PANELS.into_iter().enumerate() {
        let left = 20.0 + PANEL * (number % 2) as f64;
        let top = 92.0 + panel * (number / 2) as f64;
        text(&mut svg, (left, top), "h", name);
        for (row, pair) in pairs.iter().enumerate() {
            let y = top + 10.0 + 24.0 * row as f64;
            let [theirs, ours] = [0, 1].map(|at| sum(&pair[at], columns));
            let class = if ours > theirs { "more" } else { "less" };
            text(&mut svg, (left, y + 13.0), "", &pods(pair));
            let length = WHOLE * ours / theirs;
            bar(&mut svg, (left + BAR, y + 2.0, length), class);
            let figures = format!("{ours:.decimals$} {unit} vs {theirs:.decimals$} {unit}");
            let x = left + BAR + length.max(WHOLE) + 6.0;
            text(&mut svg, (x, y + 13.0), "", &figures);
        }
        let (x, end) = (left + BAR + WHOLE, top + 10.0 + 24.0 * pairs.len() as f64);
        let _ = writeln!(
            svg,
            "<path class=\"one\" d=\"M{x} {}L{x} {end}\"/>",
            top + 8.0
        );
    }
    svg + "</svg>\n"
}

/// Returns the figures as sentences, for readers who do not see the chart.
fn description(pairs: &[Pair]) -> String {
    let of = |(name, columns, ..): (&str, &[usize], &str, usize)| {
        let shares = pairs.iter().map(|pair| {
            let [theirs, ours] = [0, 1].map(|at| sum(&pair[at], columns));
            format!("{:.2} at {}", ours / theirs, pods(pair))
        });
        let shares: Vec<_> = shares.collect();
        format!("{name}, relative: {}.", shares.join(", "))
    };
    PANELS.map(of).join(" ")
}

fn sum(cells: &[String], columns: &[usize]) -> f64 {
    let figures = columns.iter().map(|at| cells[*at].parse::<f64>());
    figures.map(|it| it.expect("a figure")).sum()
}

/// Returns the number of pods of a shape, such as `20 × 1000`.
fn pods(pair: &Pair) -> String {
    let product: u32 = pair[0][1]
        .split(" × ")
        .filter_map(|it| it.parse::<u32>().ok())
        .product();
    format!("{},{:03} pods", product / 1_000, product % 1_000)
}

fn bar(svg: &mut String, (x, y, length): (f64, f64, f64), class: &str) {
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"12\"/>"
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), class: &str, words: &str) {
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>"
    );
}
