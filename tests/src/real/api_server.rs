//! etcd and kube-apiserver.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Instant,
};

use serde_json::json;
use tempfile::TempDir;
use tokio::{sync::OnceCell, task, time};

use super::{LOOK_EVERY, PATIENCE, api::Api, assets, found, program::Program};
use crate::running::free_port;

/// The number of attempted ports: another process may take a free port before the API server does.
const PORTS_TRIED: usize = 5;

/// A running API server with RBAC, and a separate etcd without durable writes.
///
/// On drop, the API server is killed and its folder removed.
#[derive(Debug)]
pub struct ApiServer {
    // In the order of their drops.
    server: Option<Program>,
    etcd: Program,
    _warden: Warden,
    folder: TempDir,
    assets: &'static Path,
    port: String,
    flags: Vec<String>,
}

/// A backup of etcd. Dropping it removes its folder.
#[derive(Debug)]
pub struct Backup(TempDir);

/// The part that a restore replaces or restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// etcd, while the API server is stopped, as the documentation of Kubernetes demands.
    Stopped,
    /// Only etcd, while the API server keeps running.
    Serving,
}

/// The users with a token of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// All permissions, as `system:masters`.
    Admin,
    /// The identity of static pods of Decree: the permissions of everybody, until a role is bound.
    Decree,
    /// The permissions of everybody.
    Nobody,
}

/// Removes a folder at the end of a process that runs no destructors.
#[derive(Debug)]
struct Warden(Child);

impl ApiServer {
    /// Returns the API server that all tests of this process share; the first call starts it. `None` without programs to run it.
    pub async fn shared() -> Option<&'static Self> {
        static SHARED: OnceCell<Option<ApiServer>> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await.as_ref()
    }

    /// Starts an API server, and returns when it is ready. `None` without programs to run it.
    pub async fn start() -> Option<Self> {
        Self::start_with(&[]).await
    }

    /// Starts an API server with additional flags of kube-apiserver.
    ///
    /// # Panics
    /// With the end of the log, if it does not become ready.
    pub async fn start_with(flags: &[&str]) -> Option<Self> {
        let assets = task::spawn_blocking(assets::folder).await;
        Self::start_of(assets.expect("it says why it panics")?, flags).await
    }

    /// Starts an API server that serves Evictions, with their controllers. `None` without programs to run it.
    ///
    /// # Panics
    /// With the end of the log, if it does not become ready.
    pub async fn start_with_evictions() -> Option<Self> {
        let assets = task::spawn_blocking(assets::evictions).await;
        let flags = [
            "--feature-gates=EvictionRequestAPI=true",
            "--runtime-config=lifecycle.k8s.io/v1alpha1=true",
        ];
        Self::start_of(assets.expect("it says why it panics")?, &flags).await
    }

    async fn start_of(assets: &'static Path, flags: &[&str]) -> Option<Self> {
        let folder = TempDir::with_prefix("decree-cluster-").expect("there is room");
        let etcd = Program::start(assets, folder.path(), "etcd", &[]);
        let mut server = Self {
            server: None,
            etcd,
            _warden: Warden::of(folder.path()),
            folder,
            assets,
            port: String::new(),
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        };
        server.wait_for_etcd().await;
        server.find_a_port().await;
        Some(server)
    }

    /// Returns the address.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Returns the file with its CA certificate.
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("certs/apiserver.crt")
    }

    /// Returns the kubeconfig of a user, which stays valid across restarts.
    pub fn kubeconfig(&self, user: User) -> PathBuf {
        let name = match user {
            User::Admin => "admin",
            User::Decree => "decree-agent",
            User::Nobody => "nobody",
        };
        self.folder.path().join(format!("{name}.kubeconfig"))
    }

    /// Returns a kubeconfig of an existing service account.
    ///
    /// # Panics
    /// If the API server issues no token.
    pub async fn service_account(&self, namespace: &str, name: &str) -> PathBuf {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let request =
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let made = self.admin().await.make(&path, &request).await;
        let token = made["status"]["token"].as_str().expect("it is text");
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "tests",
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": name}}],
            "clusters": [{"name": "tests", "cluster": {
                "server": self.url(), "certificate-authority": self.ca(),
            }}],
            "users": [{"name": name, "user": {"token": token}}],
        });
        let file = format!("service-account.{namespace}.{name}.kubeconfig");
        let file = self.folder.path().join(file);
        fs::write(&file, kubeconfig.to_string()).expect("there is room");
        file
    }

    /// Makes a client with all permissions.
    pub async fn admin(&self) -> Api {
        Api::of(&self.kubeconfig(User::Admin)).await
    }

    /// Kills the API server and waits for its end; etcd stays.
    pub fn stop(&mut self) {
        self.server = None;
    }

    /// Starts the stopped API server again, at the same address, and waits until it is ready.
    pub async fn resume(&mut self) {
        self.launch();
        let ready = self.becomes_ready().await;
        assert!(ready, "kube-apiserver does not resume:\n{}", self.log());
    }

    /// Kills the API server and starts it again, at the same address and with the same state.
    pub async fn restart(&mut self) {
        self.stop();
        self.resume().await;
    }

    /// Kills etcd and starts it again with its state; the API server keeps running.
    pub async fn restart_etcd(&mut self) {
        self.etcd.kill();
        fs::remove_file(self.socket()).expect("etcd made it");
        self.etcd = Program::start(self.assets, self.folder.path(), "etcd", &[]);
        self.wait_for_etcd().await;
    }

    /// Copies the current state of etcd.
    pub async fn back_up(&self) -> Backup {
        let folder = TempDir::with_prefix("decree-backup-").expect("there is room");
        self.pause_etcd().await;
        copy(&self.data(), &folder.path().join("etcd"));
        self.wake_etcd();
        Backup(folder)
    }

    /// Restores etcd from a backup.
    pub async fn restore(&mut self, backup: &Backup, how: Restored) {
        if how == Restored::Stopped {
            self.stop();
        }
        self.etcd.kill();
        fs::remove_dir_all(self.data()).expect("etcd made it");
        copy(&backup.0.path().join("etcd"), &self.data());
        fs::remove_file(self.socket()).expect("etcd made it");
        self.etcd = Program::start(self.assets, self.folder.path(), "etcd", &[]);
        self.wait_for_etcd().await;
        match how {
            Restored::Stopped => self.resume().await,
            Restored::Serving => {
                let ready = self.becomes_ready().await;
                assert!(ready, "kube-apiserver ended:\n{}", self.log());
            }
        }
    }

    /// Stops etcd with a signal, and returns after the stop; requests to etcd wait.
    pub async fn pause_etcd(&self) {
        self.etcd.signal("STOP");
        found(async || {
            let is_stopped = self.etcd.is_stopped();
            let failure = || "etcd does not stop".to_owned();
            is_stopped.then_some(()).ok_or_else(failure)
        })
        .await;
    }

    /// Resumes etcd.
    pub fn wake_etcd(&self) {
        self.etcd.signal("CONT");
    }

    /// Returns the end of the API server's log.
    pub fn log(&self) -> String {
        let server = self.server.as_ref();
        server.map(Program::tail).unwrap_or_default()
    }

    /// Returns the ids of the processes, of the API server and of etcd, for measurements.
    pub fn pids(&self) -> Vec<u32> {
        let programs = self.server.iter().chain([&self.etcd]);
        programs.map(Program::pid).collect()
    }

    pub(super) fn assets(&self) -> &'static Path {
        self.assets
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("etcd")
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("etcd.sock")
    }

    async fn wait_for_etcd(&mut self) {
        let until = Instant::now() + PATIENCE;
        let mut looks = time::interval(LOOK_EVERY);
        while !self.socket().exists() {
            let lives = self.etcd.ended().is_none() && Instant::now() < until;
            assert!(lives, "etcd does not start:\n{}", self.etcd.tail());
            looks.tick().await;
        }
    }

    async fn find_a_port(&mut self) {
        for _ in 0..PORTS_TRIED {
            self.port = free_port().to_string();
            self.launch();
            if self.becomes_ready().await {
                return;
            }
            let taken = self.log().contains("address already in use");
            assert!(taken, "kube-apiserver does not start:\n{}", self.log());
        }
        panic!("each of {PORTS_TRIED} free ports was taken by somebody else");
    }

    fn launch(&mut self) {
        let mut arguments = vec![self.port.as_str()];
        arguments.extend(self.flags.iter().map(String::as_str));
        let folder = self.folder.path();
        self.server = Some(Program::start(
            self.assets,
            folder,
            "kube-apiserver",
            &arguments,
        ));
    }

    /// Whether the API server has become ready, and not ended.
    async fn becomes_ready(&mut self) -> bool {
        let until = Instant::now() + PATIENCE;
        let mut looks = time::interval(LOOK_EVERY);
        while !self.is_ready().await {
            let server = self.server.as_mut().expect("it was launched");
            if server.ended().is_some() {
                return false;
            }
            let late = Instant::now() >= until;
            assert!(!late, "kube-apiserver is never ready:\n{}", self.log());
            looks.tick().await;
        }
        true
    }

    /// Whether the API server reports ready and its first namespaces exist.
    async fn is_ready(&self) -> bool {
        // The API server listens only after it has made its certificate.
        if !self.ca().exists() {
            return false;
        }
        let admin = self.admin().await;
        admin.text("/readyz").await.is_ok()
            && admin.get("/api/v1/namespaces/kube-system").await.is_ok()
            && admin.get("/api/v1/namespaces/default").await.is_ok()
    }
}

impl Warden {
    fn of(folder: &Path) -> Self {
        // By then, the programs in the folder are being killed, which takes a moment.
        let script = "read -r _; for _ in $(seq 600); do sleep 0.2; rm -rf \"$1\" && exit; done";
        let warden = Command::new("sh")
            .args(["-c", script, "warden"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        Self(warden.expect("there is a shell"))
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        // The folder is dropped after this, and reports a failed removal.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-R").args([from, to]).status();
    assert!(
        copied.expect("there is cp").success(),
        "{from:?} is not copied"
    );
}
