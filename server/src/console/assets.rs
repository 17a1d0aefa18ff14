//! The files of the folder `console/`, embedded.

/// A file, and its HTTP headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asset {
    name: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) content: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// Embeds files by name and type.
macro_rules! embedded {
    ($($name:literal: $content_type:expr,)*) => {
        &[$(Asset {
            name: $name,
            content_type: $content_type,
            content: include_str!(concat!("../../../console/", $name)),
        }),*]
    };
}

/// The pages of a server, the first of which is shown first.
pub(crate) const OF_SERVER: &[Asset] = embedded! {
    "index.html": HTML,
    "style.css": CSS,
    "icon.svg": PICTURE,
    "main.js": SCRIPT,
    "bar.js": SCRIPT,
    "board.js": SCRIPT,
    "cause.js": SCRIPT,
    "copy.js": SCRIPT,
    "differences.js": SCRIPT,
    "dom.js": SCRIPT,
    "format.js": SCRIPT,
    "headline.js": SCRIPT,
    "heat.js": SCRIPT,
    "keys.js": SCRIPT,
    "list.js": SCRIPT,
    "nodes.js": SCRIPT,
    "pod.js": SCRIPT,
    "replica-set.js": SCRIPT,
    "route.js": SCRIPT,
    "row.js": SCRIPT,
    "scale.js": SCRIPT,
    "scope.js": SCRIPT,
    "sessions.js": SCRIPT,
    "sort.js": SCRIPT,
    "stream.js": SCRIPT,
    "timeline.js": SCRIPT,
    "travel.js": SCRIPT,
    "what-if.js": SCRIPT,
    "why.js": SCRIPT,
};

/// The page of a recording.
pub(crate) const OF_RECORDING: &[Asset] = embedded! {
    "recording.html": HTML,
    "style.css": CSS,
    "icon.svg": PICTURE,
    "recording.js": SCRIPT,
    "dom.js": SCRIPT,
};

pub(crate) fn find(assets: &'static [Asset], name: &str) -> Option<&'static Asset> {
    assets.iter().find(|asset| asset.name == name)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    /// The maximum size of the first load of a page.
    const FIRST_LOAD_MAX: usize = 150_000;
    /// The files that only some views load.
    const LATER: [&str; 2] = ["differences.js", "what-if.js"];

    fn all() -> impl Iterator<Item = &'static Asset> {
        OF_SERVER.iter().chain(OF_RECORDING)
    }

    #[test]
    fn every_file_of_the_folder_is_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../console");
        let files = fs::read_dir(folder).expect("the folder is there").flatten();
        let files: BTreeSet<_> = files
            .map(|file| file.file_name().to_string_lossy().into_owned())
            .collect();
        let embedded: BTreeSet<_> = all().map(|asset| asset.name.to_owned()).collect();
        assert_eq!(files, embedded);
    }

    #[test]
    fn first_load_is_small() {
        let first = OF_SERVER
            .iter()
            .filter(|asset| !LATER.contains(&asset.name));
        let bytes: usize = first.map(|asset| asset.content.len()).sum();
        assert!(bytes <= FIRST_LOAD_MAX, "{bytes} bytes");
    }

    /// A browser requests the scripts of the first load at once, and not one import after the other.
    #[test]
    fn scripts_of_the_first_load_are_preloaded() {
        let page = OF_SERVER[0].content;
        let scripts = OF_SERVER.iter();
        for asset in scripts.filter(|asset| asset.content_type == SCRIPT) {
            let link = format!("<link rel=\"modulepreload\" href=\"{}\">", asset.name);
            let is_first = asset.name != "main.js" && !LATER.contains(&asset.name);
            assert_eq!(page.contains(&link), is_first, "{}", asset.name);
        }
    }

    #[test]
    fn nothing_is_asked_of_another_host_and_no_script_is_inline() {
        for asset in all() {
            let links = asset.content.replace("http://www.w3.org/2000/svg", "");
            assert!(!links.contains("://"), "{} names another host", asset.name);
            assert!(!links.contains("innerHTML"), "{}", asset.name);
            assert!(!links.contains("<script>") && !links.contains(" style="));
        }
    }
}
