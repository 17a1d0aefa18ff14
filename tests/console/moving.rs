//! The animated picture of the README: the photographs of the scale-down story, one after the other, in one SVG.
//!
//! An SVG needs no player, and is animated in a page without scripts. It embeds everything, because browsers load no other files for an
//! image. Opened alone, it respects reduced motion. Within a page it does not know this setting, so the README names a still picture for it.

use std::{env, fmt::Write as _, fs};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use decree_server::Config;
use tests::binaries;

use crate::{browser, play, stage::Stage};

const NAME: &str = "docs/console.svg";
/// The maximum size of the file, because the README begins with it.
const BYTES_MAX: usize = 400_000;
/// The size of a photograph of the story, and of the caption below it.
const WIDTH: u32 = 1180;
const HEIGHT: u32 = 900;
const CAPTION: u32 = 56;
const SECONDS: usize = 4;
/// The caption of each photograph. The second photograph is the still.
const STEPS: [&str; 3] = [
    "1. A ReplicaSet of 8 pods, live",
    "2. What if it had 5? Three pods would be deleted, each for a rule",
    "3. Scaled to 5: exactly these pods are gone, and the page says why",
];
const STILL: usize = 1;
const OPENING: &str = "data:image/webp;base64,";

#[tokio::test(flavor = "multi_thread")]
async fn scale_down_is_foretold_and_explained() {
    play(
        "scale_down_is_foretold_and_explained",
        Stage::open(Config::embedded()).await,
    )
    .await;
    update();
}

/// Writes the picture, if `UPDATE_EXPECT` is set.
fn update() {
    if env::var_os("UPDATE_EXPECT").is_some() {
        let photographs = [1, 2, 3].map(|step| {
            let photograph = fs::read(browser::pictures().join(format!("step-{step}.webp")));
            STANDARD.encode(photograph.expect("the story made it"))
        });
        let picture = picture(photographs.each_ref().map(String::as_str));
        fs::write(binaries::checkout().join(NAME), picture).expect("it can be written");
    }
}

/// Returns the picture made of photographs, as WebP in base64.
fn picture(photographs: [&str; 3]) -> String {
    let (height, whole) = (HEIGHT + CAPTION, SECONDS * STEPS.len());
    let shown = 100.0 / STEPS.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <title>The console previews a scale-down, and shows that exactly the previewed pods are deleted</title>\n\
         <style>\n\
         .step {{ opacity: 0 }}\n\
         .still {{ opacity: 1 }}\n\
         text {{ font: 600 26px system-ui, sans-serif; fill: #fff }}\n\
         @media (prefers-reduced-motion: no-preference) {{ .step {{ opacity: 0; animation: show {whole}s step-end infinite }} }}\n\
         @keyframes show {{ 0% {{ opacity: 1 }} {shown:.3}% {{ opacity: 0 }} }}\n\
         </style>\n"
    );
    for (step, (words, photograph)) in STEPS.into_iter().zip(photographs).enumerate() {
        let class = if step == STILL { "step still" } else { "step" };
        let delay = SECONDS * step;
        let _ = write!(
            svg,
            "<g class=\"{class}\" style=\"animation-delay: {delay}s\">\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#24292f\"/>\n\
             <text x=\"24\" y=\"{}\">{words}</text>\n\
             <image width=\"{WIDTH}\" height=\"{HEIGHT}\" href=\"{OPENING}{photograph}\"/>\n\
             </g>\n",
            HEIGHT + CAPTION - 19
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[test]
fn picture_of_the_readme_has_every_step_and_loads_nothing() {
    let svg = fs::read_to_string(binaries::checkout().join(NAME)).expect("it is in the checkout");
    assert!(svg.len() <= BYTES_MAX, "{} bytes", svg.len());
    let parts: Vec<_> = svg.split(OPENING).skip(1).collect();
    let photographs = parts.iter().map(|part| part.split('"').next());
    let photographs: Vec<&str> = photographs.map(Option::unwrap_or_default).collect();
    let photographs: [&str; 3] = photographs.try_into().expect("one for each step");
    // Pixels differ between browsers, so the test compares everything else.
    assert_eq!(
        svg,
        picture(photographs),
        "write it anew, with UPDATE_EXPECT=1"
    );
    for photograph in photographs {
        let bytes = STANDARD.decode(photograph).expect("it is base64");
        assert!(bytes.starts_with(b"RIFF") && bytes[8..].starts_with(b"WEBP"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn picture_of_the_readme_moves() {
    play(
        "picture_of_the_readme_moves",
        Stage::open(Config::embedded()).await,
    )
    .await;
}
