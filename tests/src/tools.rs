//! Programs that are not Rust's. Without a program, its tests are skipped with a notice; in CI, they fail.

use std::{
    env,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use crate::{binaries, depth};

/// Defines functions that each return a program, or the folder of its files. A function looks for its program once.
macro_rules! tools {
    ($($(#[$doc:meta])* $name:ident, $what:literal, $find:expr;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Panics
            /// With `CI` set, if the program is missing and cannot be built.
            pub fn $name() -> Option<&'static Path> {
                static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
                or_skip($what, FOUND.get_or_init(|| $find)).map(PathBuf::as_path)
            }
        )*
    };
}

/// Unwraps a requirement of a test, or ends the test if this machine does not meet it: a notice has been printed, and with `CI`
/// set, the test has failed.
#[macro_export]
macro_rules! or_skip {
    ($found:expr) => {{
        let Some(found) = $found else { return };
        found
    }};
}

mod clients;
mod packagers;
mod released;

pub use clients::{go_examples, java_examples, python_client, typescript_examples};
pub use packagers::{krew, ruby};
pub use released::{Released, released};

const PROMETHEUS_PARSER: &str = "prometheus-client==0.26.0";
const CYCLONEDX_CHECK: &str = "import cyclonedx.validation.json, jsonschema";
const CYCLONEDX: &str = "cyclonedx-python-lib[json-validation]==11.12.0";
const BROWSER_PACKAGES: [&str; 2] = ["puppeteer-core@24.43.1", "axe-core@4.14.1"];
/// The checker of types, the packages with types, and what has none.
const MYPY: [&str; 5] = [
    "mypy==2.4.1",
    "types-grpcio==1.85.0.20261028",
    "types-protobuf==7.35.1.20260906",
    "grpcio>=1.76,<2",
    "googleapis-common-protos>=1.72,<2",
];

/// The packages of examples/python/requirements.txt.
const PYTHON_CHECK: &str = "import grpc, grpc_tools, setuptools, google.rpc.error_details_pb2";
const MDBOOK: &str = "mdbook@0.5.4";
/// The oldest kubectl that the manifests support, by its name in `tests/cluster/build`. Its build compiles all of its packages,
/// which takes a minute.
const OLDEST_KUBECTL: &str = "kubectl-v1.30";
/// The module with the definitions of the Prometheus operator's resources.
const PROMETHEUS_OPERATOR: &str = "github.com/prometheus-operator/prometheus-operator@v0.85.0";

tools! {
    /// Returns the folder of an API of custom metrics, which is built with Go if it is not there.
    custom_metrics, "an API of custom metrics", folder_of("custom-metrics");
    /// Returns the folder of grpcurl, which is built with Go if it is not there.
    grpcurl, "grpcurl", folder_of("grpcurl");
    /// Returns the folder of kustomize, which is built with Go if it is not there.
    kustomize, "kustomize", folder_of("kustomize");
    /// Returns the folder of helm, which is built with Go if it is not there.
    helm, "helm", folder_of("helm");
    /// Returns the folder of Prometheus and promtool, which are taken from Debian's package if they are not there.
    prometheus, "Prometheus", installed_once("prometheus-server", unpack_prometheus);
    /// Returns the folder of the Prometheus operator's definitions, of the Go module that has them.
    prometheus_operator, "the Prometheus operator's definitions", installed_once("prometheus-operator", download_prometheus_operator);
    /// Returns Chromium: the one that `DECREE_CHROMIUM` names, or the installed one.
    chromium, "Chromium", find_chromium();
    /// Returns the folder of the npm packages that drive a browser, which are installed if they are not there.
    browser_packages, "Node with puppeteer-core and axe-core", installed_once("browser", install_browser_packages);
    /// Returns OpenSSL, whose commands docs/security.md shows.
    openssl, "OpenSSL 3", find_openssl();
    /// Returns mdbook, which is built with cargo if it is not there; that takes minutes.
    mdbook, "mdbook", installed_once("mdbook", install_mdbook);
    /// Returns a Python that has the packages of examples/python, which are installed if they are not there.
    python, "Python with grpcio", installed_once("python", install_python);
    /// Returns a Python with mypy, and with the types of what the client for Python uses, which are installed if they are not there.
    mypy, "Python with mypy", installed_once("mypy", |cache| install_packages(cache, "mypy", "import mypy, grpc, google.rpc.status_pb2", &MYPY));
    /// Returns buf, which is installed with npm if it is not there.
    buf, "buf", installed_once("buf", install_buf);
    /// Returns a Python that has Prometheus' parser, which is installed if it is not there.
    prometheus_parser, "Python with prometheus-client", installed_once("prometheus", |cache| install_packages(cache, "prometheus", "import prometheus_client", &[PROMETHEUS_PARSER]));
    /// Returns a Python that can tell whether a list of materials is CycloneDX, which is installed if it is not there.
    cyclonedx, "Python with cyclonedx-python-lib", installed_once("cyclonedx", |cache| install_packages(cache, "cyclonedx", CYCLONEDX_CHECK, &[CYCLONEDX]));
}

/// Returns kubectl of each version that the manifests are tested with: the newest, whose first build may take minutes, the
/// installed one, if any, and at [full depth](depth) the oldest.
///
/// # Panics
/// With `CI` set, if they cannot be built.
pub fn kubectls() -> Option<&'static [PathBuf]> {
    static PROGRAMS: OnceLock<Result<Vec<PathBuf>, String>> = OnceLock::new();
    or_skip("kubectl", PROGRAMS.get_or_init(built_kubectls)).map(Vec::as_slice)
}

fn download_prometheus_operator(_: &Path) -> Result<PathBuf, String> {
    let found = output(Command::new("go").args(["mod", "download", "-json", PROMETHEUS_OPERATOR]))?;
    let found: serde_json::Value =
        serde_json::from_str(&found).map_err(|error| error.to_string())?;
    let folder = found["Dir"].as_str().ok_or("go names no folder")?;
    Ok(Path::new(folder).join("example/prometheus-operator-crd"))
}

fn or_skip<T>(what: &str, found: &'static Result<T, String>) -> Option<&'static T> {
    match found {
        Ok(found) => Some(found),
        Err(why) => {
            assert!(
                env::var_os("CI").is_none(),
                "{what} is not there, and CI skips nothing: {why}"
            );
            notice(&format!(
                "skipped: a test needs {what}, which is not there: {why}"
            ));
            None
        }
    }
}

/// Prints a notice past the capture of the test runner, so that people who run the tests see what was skipped.
pub fn notice(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Runs an installation, one at a time on this machine.
fn installed_once(
    name: &str,
    install: impl FnOnce(&Path) -> Result<PathBuf, String>,
) -> Result<PathBuf, String> {
    let cache = cache();
    fs::create_dir_all(&cache).map_err(|error| error.to_string())?;
    let lock =
        File::create(cache.join(format!("{name}.lock"))).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    install(&cache)
}

/// The folder of a program that `tests/cluster/build` builds if it is not installed.
fn folder_of(program: &str) -> Result<PathBuf, String> {
    match installed(program) {
        Some(program) => Ok(program.parent().map(Path::to_owned).unwrap_or_default()),
        None => built_with_go(program),
    }
}

fn installed(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let programs = env::split_paths(&path).map(|folder| folder.join(program));
    programs.into_iter().find(|program| program.is_file())
}

fn built_with_go(program: &str) -> Result<PathBuf, String> {
    let build = binaries::checkout().join("tests/cluster/build");
    let folder = output(Command::new(build).arg(program))?;
    Ok(folder.trim().into())
}

fn install_mdbook(cache: &Path) -> Result<PathBuf, String> {
    let root = cache.join("mdbook");
    let program = root.join("bin/mdbook");
    if !program.is_file() {
        // Without serving and watching, and with the search.
        let flags = "--quiet --locked --debug --no-default-features --features=search";
        run(Command::new("cargo")
            .arg("install")
            .args(flags.split(' '))
            .arg(MDBOOK)
            .arg("--root")
            .arg(&root)
            .env("CARGO_TARGET_DIR", cache.join("tools")))?;
    }
    Ok(program)
}

/// Extracts the programs from Debian's package, so that nothing is installed or started.
fn unpack_prometheus(cache: &Path) -> Result<PathBuf, String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folder = cache.join("prometheus-debian");
    let unpacked = folder.join("usr/bin");
    let mut folders = env::split_paths(&path).chain([unpacked.clone()]);
    let has_both =
        |folder: &PathBuf| folder.join("prometheus").is_file() && folder.join("promtool").is_file();
    if let Some(folder) = folders.find(has_both) {
        return Ok(folder);
    }
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    run(Command::new("apt-get")
        .args(["download", "--quiet", "prometheus"])
        .current_dir(&folder))?;
    let files = fs::read_dir(&folder).map_err(|error| error.to_string())?;
    let mut packages = files.flatten().map(|file| file.path());
    let package = packages.find(|path| path.extension().is_some_and(|it| it == "deb"));
    let package = package.ok_or("apt-get downloads nothing")?;
    run(Command::new("dpkg-deb")
        .arg("--extract")
        .args([&package, &folder]))?;
    Ok(unpacked)
}

fn built_kubectls() -> Result<Vec<PathBuf>, String> {
    let mut programs = vec![built_with_go("kubectl")?.join("kubectl")];
    if depth::is_full() {
        programs.push(built_with_go(OLDEST_KUBECTL)?.join(OLDEST_KUBECTL));
    }
    programs.extend(installed("kubectl"));
    Ok(programs)
}

fn find_chromium() -> Result<PathBuf, String> {
    if let Some(named) = env::var_os("DECREE_CHROMIUM") {
        return Ok(named.into());
    }
    let mut names = ["chromium", "chromium-browser"].into_iter();
    let found = names.find_map(installed);
    found.ok_or_else(|| "apt-get install chromium installs it".to_owned())
}

fn find_openssl() -> Result<PathBuf, String> {
    let version = output(Command::new("openssl").arg("version"))?;
    let is_known = version.starts_with("OpenSSL 3") || version.starts_with("OpenSSL 4");
    let found = is_known.then(|| installed("openssl")).flatten();
    found.ok_or_else(|| format!("the installed one is {}", version.trim()))
}

fn install_browser_packages(cache: &Path) -> Result<PathBuf, String> {
    let folder = cache.join("browser");
    let modules = folder.join("node_modules");
    let names = ["puppeteer-core", "axe-core"];
    if names.iter().all(|name| modules.join(name).is_dir()) {
        return run(Command::new("node").arg("--version")).map(|()| modules);
    }
    install_with_npm(&folder, &BROWSER_PACKAGES)?;
    Ok(modules)
}

fn install_buf(cache: &Path) -> Result<PathBuf, String> {
    let folder = cache.join("buf");
    let program = folder.join("node_modules/.bin/buf");
    if program.is_file() {
        return Ok(program);
    }
    install_with_npm(&folder, &["@bufbuild/buf@1"])?;
    Ok(program)
}

fn install_with_npm(folder: &Path, packages: &[&str]) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    run(Command::new("npm")
        .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
        .arg(folder)
        .args(packages))
}

fn install_python(cache: &Path) -> Result<PathBuf, String> {
    let requirements = binaries::checkout().join("examples/python/requirements.txt");
    let requirements = requirements.to_string_lossy();
    let packages = ["--requirement", &requirements];
    install_packages(cache, "venv", PYTHON_CHECK, &packages)
}

/// The Python of a folder in which `check` runs. Installs the packages there if `check` fails.
fn install_packages(
    cache: &Path,
    folder: &str,
    check: &str,
    packages: &[&str],
) -> Result<PathBuf, String> {
    let folder = cache.join(folder);
    let python = folder.join("bin/python");
    if run(Command::new(&python).args(["-c", check])).is_ok() {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(&python)
        .args(["-m", "pip", "install", "--quiet"])
        .args(packages))?;
    Ok(python)
}

/// The folder of tools between runs, outside the checkout.
fn cache() -> PathBuf {
    let named = env::var_os("DECREE_CACHE").map(PathBuf::from);
    let of_user = || {
        let caches = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let home = || PathBuf::from(env::var_os("HOME").unwrap_or_else(|| "/tmp".into()));
        caches
            .unwrap_or_else(|| home().join(".cache"))
            .join("decree")
    };
    named.unwrap_or_else(of_user)
}

fn run(command: &mut Command) -> Result<(), String> {
    output(command).map(drop)
}

/// The output of a program, or its error message.
fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let told = String::from_utf8_lossy(&output.stderr);
        Err(format!("{program}: {}", told.trim()))
    }
}
