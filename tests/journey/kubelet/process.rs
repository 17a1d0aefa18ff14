//! The process of a container, in separate name spaces, with only the given resources of this machine.

use std::{
    fmt::Write as _,
    fs::File,
    io::{self, BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

/// The path of programs of this machine that set up a container.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// Runs the command after the name of a log, prints the id of the process, and kills the process at the end of standard input:
/// nothing outlives the test.
const KEEPER: &str = r#"exec 3<&0
log=$1
shift
"$@" >>"$log" 2>&1 </dev/null 3<&- &
child=$!
{ while read -r _ <&3; do :; done; kill -KILL "$child"; } >/dev/null 2>&1 &
guard=$!
echo "$child"
exec >/dev/null 2>&1
wait "$child"
status=$?
kill "$guard"
exit "$status""#;
/// The libraries of this machine for a dynamic program: the programs of an image are static, and those of tests are not.
const LIBRARIES: &str = r#"for folder in /lib /lib64 /usr; do
    if [ -L "$folder" ]; then cp -P "$folder" "$root$folder"
    elif [ -d "$folder" ]; then mkdir "$root$folder"; mount -o bind,ro "$folder" "$root$folder"; fi
done
"#;

/// The parts of a container.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The path by which its network is entered.
    pub(crate) network: String,
    /// The name of the pod.
    pub(crate) hostname: String,
    /// An empty folder, which becomes its root.
    pub(crate) root: PathBuf,
    /// The file of its output.
    pub(crate) log: PathBuf,
    /// Its files and folders from this machine, each at a separate path.
    pub(crate) mounts: Vec<Mount>,
    /// Whether its root is writable.
    pub(crate) has_writable_root: bool,
    pub(crate) user: u64,
    pub(crate) group: u64,
    pub(crate) groups: Vec<u64>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) command: Vec<String>,
}

/// A file or folder of this machine in a container.
#[derive(Clone, Debug)]
pub(crate) struct Mount {
    pub(crate) from: PathBuf,
    pub(crate) to: String,
    pub(crate) is_read_only: bool,
}

/// A started container; its process is killed on drop, and at the end of the test.
#[derive(Debug)]
pub(crate) struct Process {
    keeper: Child,
    pid: u32,
}

impl Plan {
    pub(crate) fn start(&self) -> io::Result<Process> {
        let mut keeper = Command::new("sh");
        keeper
            .args(["-c", KEEPER, "keeper"])
            .arg(&self.log)
            .arg("nsenter")
            .arg(format!("--net={}", self.network))
            .args(["unshare", "--mount", "--uts", "--propagation=private"])
            .args(["sh", "-euc", &self.script(), "container"])
            .args(&self.command)
            .env_clear()
            .env("PATH", PATH)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        File::options().create(true).append(true).open(&self.log)?;
        let mut keeper = keeper.spawn()?;
        let mut line = String::new();
        let told = keeper.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        BufReader::new(told).read_line(&mut line)?;
        let pid = line.trim().parse().map_err(io::Error::other)?;
        Ok(Process { keeper, pid })
    }

    /// Runs another command in the container, as its user, and returns the output.
    pub(crate) fn exec(&self, pid: u32, command: &[String]) -> io::Result<Output> {
        Command::new("nsenter")
            .args(["--target", &pid.to_string()])
            .args(["--mount", "--uts", "--net", "--root", "--wd"])
            .args(["--setuid", &self.user.to_string()])
            .args(["--setgid", &self.group.to_string(), "--"])
            .args(command)
            .env_clear()
            .env("PATH", PATH)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .output()
    }

    /// The shell script that makes the root and becomes the program.
    fn script(&self) -> String {
        let mut script = format!(
            "root={}\nmount -t tmpfs -o mode=0755 root \"$root\"\n{LIBRARIES}",
            quoted(&self.root)
        );
        script.push_str("for folder in /proc /dev; do mkdir \"$root$folder\"; mount --rbind \"$folder\" \"$root$folder\"; done\n");
        for mount in &self.mounts {
            let (from, to) = (quoted(&mount.from), quoted(Path::new(&mount.to)));
            let make = if mount.from.is_dir() {
                "mkdir -p \"$root\"{to}"
            } else {
                "mkdir -p \"$(dirname \"$root\"{to})\"; : >\"$root\"{to}"
            };
            let flags = if mount.is_read_only {
                "bind,ro"
            } else {
                "bind"
            };
            let make = make.replace("{to}", &to);
            let _ = writeln!(script, "{make}\nmount -o {flags} {from} \"$root\"{to}");
        }
        if !self.has_writable_root {
            script.push_str("mount -o remount,ro \"$root\"\n");
        }
        let _ = writeln!(
            script,
            "echo {} >/proc/sys/kernel/hostname",
            quoted(Path::new(&self.hostname))
        );
        let groups: Vec<_> = self.groups.iter().map(u64::to_string).collect();
        let _ = writeln!(
            script,
            "exec setpriv --no-new-privs chroot --userspec={}:{} --groups={} \"$root\" \"$@\"",
            self.user,
            self.group,
            groups.join(","),
        );
        script
    }
}

impl Process {
    /// The id of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// The exit code, if the process has ended; 128 plus the number of a signal.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let ended = self.keeper.try_wait().ok().flatten()?;
        Some(ended.code().unwrap_or(255))
    }

    /// Sends a signal, such as `TERM`, unless the process has ended.
    pub(crate) fn signal(&mut self, name: &str) {
        if self.ended().is_none() {
            let kill = ["-c".to_owned(), format!("kill -{name} {}", self.pid)];
            // The process may end at this moment.
            let _ = Command::new("sh").args(kill).stderr(Stdio::null()).status();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The end of its input.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}
