//! The scaling table as bars, in an SVG beside the document.

use std::{fmt::Write as _, fs, path::Path};

use crate::contender::Contender;

pub(crate) struct Bar {
    pub(crate) group: String,
    pub(crate) contender: Contender,
    /// Seconds up, seconds down, processor seconds of both, peak megabytes.
    pub(crate) figures: [f64; 4],
}

const TITLES: [&str; 4] = ["up, s", "down, s", "processor, s", "peak, MB"];
/// Colors for light and dark pages.
const STYLE: &str = "<style>text{fill:#0f172a}.w{fill:#ffffff}@media(prefers-color-scheme:dark){text{fill:#e2e8f0}.w{fill:#161923}}</style>";
const PANEL: f64 = 220.0;
const HEIGHT: f64 = 14.0;
const LEFT: f64 = 90.0;

/// Writes docs/scaling.svg: a panel for each figure, and in it a group for each shape. The lengths are to scale within a panel.
pub(crate) fn write(bars: &[Bar]) {
    let height = 60.0 + bars.len() as f64 * (HEIGHT + 4.0);
    let width = LEFT + 4.0 * (PANEL + 20.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         {STYLE}\n<rect width=\"100%\" height=\"100%\" class=\"w\"/>\n"
    );
    legend(&mut svg);
    for (panel, title) in TITLES.iter().enumerate() {
        let left = LEFT + panel as f64 * (PANEL + 20.0);
        text(&mut svg, left, 44.0, title);
        let most = bars
            .iter()
            .map(|bar| bar.figures[panel])
            .fold(0.0, f64::max);
        for (at, bar) in bars.iter().enumerate() {
            let top = 52.0 + at as f64 * (HEIGHT + 4.0);
            if panel == 0 && at % 2 == 0 {
                text(&mut svg, 4.0, top + HEIGHT, &bar.group);
            }
            let figure = bar.figures[panel];
            let length = (PANEL - 50.0) * figure / most;
            rectangle(&mut svg, left, top, length, color(bar.contender));
            text(
                &mut svg,
                left + length + 4.0,
                top + 11.0,
                &format!("{figure:.2}"),
            );
        }
    }
    svg += "</svg>\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/scaling.svg");
    fs::write(path, svg).expect("the checkout can be written");
}

fn legend(svg: &mut String) {
    for (at, contender) in Contender::BOTH.into_iter().enumerate() {
        let left = LEFT + at as f64 * 200.0;
        rectangle(svg, left, 10.0, 14.0, color(contender));
        text(svg, left + 20.0, 21.0, contender.name());
    }
}

const fn color(contender: Contender) -> &'static str {
    match contender {
        Contender::Peer | Contender::PeerByDefault => "#9aa5b1",
        Contender::Decree | Contender::Unix | Contender::Up | Contender::Before => "#2f6fde",
    }
}

fn rectangle(svg: &mut String, x: f64, y: f64, width: f64, fill: &str) {
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{fill}\"/>"
    );
}

fn text(svg: &mut String, x: f64, y: f64, text: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
}
