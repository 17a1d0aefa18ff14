//! Readers of the files of a release for package managers.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use super::{installed, installed_once, or_skip, run};

/// Krew, and the program by which its index checks submissions.
const KREW: [&str; 2] = [
    "sigs.k8s.io/krew/cmd/krew@v0.4.3",
    "sigs.k8s.io/krew/cmd/validate-krew-manifest@v0.4.3",
];

tools! {
    /// Returns the folder of krew as a plugin of kubectl, and of `validate-krew-manifest`. They are built with Go if they are not there.
    krew, "krew", installed_once("krew", install_krew);
    /// Returns Ruby, the language of Homebrew's formulas.
    ruby, "Ruby", installed("ruby").ok_or_else(|| "apt-get install ruby installs it".to_owned());
}

fn install_krew(cache: &Path) -> Result<PathBuf, String> {
    let folder = cache.join("krew");
    let plugin = folder.join("kubectl-krew");
    if !plugin.is_file() {
        let mut go = Command::new("go");
        go.arg("install").args(KREW);
        run(go.env("GOBIN", &folder).env("CGO_ENABLED", "0"))?;
        fs::rename(folder.join("krew"), plugin).map_err(|error| error.to_string())?;
    }
    Ok(folder)
}
