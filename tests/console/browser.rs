//! The script that drives Chromium, and its requests.

use std::{env, fs, path::PathBuf, process::Command};

use serde_json::{Value, json};
use tests::{
    binaries,
    running::{Running, Voice},
    tools,
};
use tokio::task::block_in_place;

use crate::stage::Stage;

/// Chromium, and the packages that drive it.
pub(crate) struct Browser {
    chromium: PathBuf,
    modules: PathBuf,
}

/// Returns Chromium and its packages, if they are available.
pub(crate) fn installed() -> Option<Browser> {
    let chromium = tools::chromium()?.to_owned();
    let modules = tools::browser_packages()?.to_owned();
    Some(Browser { chromium, modules })
}

impl Browser {
    /// Plays a story to its end, and executes its requests. Returns the figures of a story that measures any.
    pub(crate) async fn play(&self, story: &str, mut stage: Stage) -> Option<Value> {
        let url = stage.url();
        let figures = self.play_at(story, &url, Some(&mut stage)).await;
        stage.close().await;
        figures
    }

    /// Plays a story on the pages at an address.
    pub(crate) async fn play_at(
        &self,
        story: &str,
        url: &str,
        mut stage: Option<&mut Stage>,
    ) -> Option<Value> {
        let mut script = self.start(story, url);
        let mut read = 0;
        let mut figures = None;
        loop {
            let line = block_in_place(|| {
                script.wait_for("the next line of the story", |lines| {
                    lines.get(read).cloned()
                })
            });
            read += 1;
            let asked: Value =
                serde_json::from_str(&line).unwrap_or_else(|_| panic!("{story}: {line}"));
            match asked["do"].as_str() {
                Some("end") => break,
                Some("tell figures") => {
                    figures = Some(asked["figures"].clone());
                    script.tell(&json!({"done": true}).to_string());
                }
                Some(_) => {
                    let stage = stage.as_mut().expect("the pages have a cluster");
                    let answer = stage.obey(&asked).await;
                    script.tell(&answer.to_string());
                }
                None => panic!("{story}: {line}"),
            }
        }
        let ended = block_in_place(|| script.wait());
        assert!(ended.success(), "{story}: {ended}");
        figures
    }

    fn start(&self, story: &str, url: &str) -> Running {
        let folder = binaries::checkout().join("tests/console/stories");
        let mut command = Command::new("node");
        command.arg(folder.join("main.mjs"));
        let given = json!({
            "story": story,
            "url": url,
            "chromium": self.chromium,
            "modules": self.modules,
            "pictures": pictures(),
            "document": binaries::checkout().join("docs/console.svg"),
        });
        command.arg(given.to_string());
        Running::start(command, Voice::Stdout)
    }
}

/// Copies a picture of a story into the documents, if `UPDATE_EXPECT` is set.
pub(crate) fn update_document(picture: &str, name: &str) {
    if env::var_os("UPDATE_EXPECT").is_some() {
        let from = pictures().join(format!("{picture}.png"));
        let to = binaries::checkout().join("docs").join(name);
        fs::copy(from, to).expect("the story made it");
    }
}

/// Returns the folder for pictures, beside the programs, because tests make both.
pub(crate) fn pictures() -> PathBuf {
    let test = env::current_exe().expect("a process knows its program");
    let target = test.ancestors().nth(3);
    target
        .expect("cargo puts tests into target/<profile>/deps")
        .join("console")
}
