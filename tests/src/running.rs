//! A process whose output lines are read as they come.

use std::{
    fmt,
    io::{BufRead as _, BufReader, Read, Write as _},
    net::{Ipv4Addr, TcpListener},
    process::{self, Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// Longer than any wait on the busiest machine; only a hanging test reaches it.
pub const PATIENCE: Duration = Duration::from_mins(10);
/// The ports of [`free_port`]. By default, Linux gives them to no outgoing connection.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 12_000;

/// The interval of checks for what nobody announces.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The number of last lines in a failure.
const TAIL: usize = 40;

/// The stream on which a process reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// Standard output.
    Stdout,
    /// Standard error, with the log.
    Stderr,
}

/// A running process, killed on drop.
#[derive(Debug)]
pub struct Running {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    said: Arc<Said>,
}

/// The lines so far, and whether more can come.
#[derive(Debug, Default)]
struct Said {
    state: Mutex<(Vec<String>, bool)>,
    news: Condvar,
}

impl Running {
    /// Starts a process and reads the stream `voice`.
    ///
    /// # Panics
    /// If the process does not start.
    pub fn start(mut command: Command, voice: Voice) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped());
        match voice {
            Voice::Stdout => command.stdout(Stdio::piped()),
            Voice::Stderr => command.stderr(Stdio::piped()).stdout(Stdio::null()),
        };
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let said = Arc::new(Said::default());
        let pipe: Box<dyn Read + Send> = match voice {
            Voice::Stdout => Box::new(child.stdout.take().expect("it is piped")),
            Voice::Stderr => Box::new(child.stderr.take().expect("it is piped")),
        };
        let listener = Arc::clone(&said);
        thread::spawn(move || listener.listen(pipe));
        let stdin = child.stdin.take();
        Self {
            name,
            child,
            stdin,
            said,
        }
    }

    /// Waits until `find` succeeds on the lines so far.
    ///
    /// # Panics
    /// With the last lines, if `find` does not succeed within [`PATIENCE`], or the process has ended.
    pub fn wait_for<T>(&self, what: &str, mut find: impl FnMut(&[String]) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        let mut state = self.said.lock();
        loop {
            if let Some(found) = find(&state.0) {
                return found;
            }
            let left = until.saturating_duration_since(Instant::now());
            let (lines, ended) = &*state;
            assert!(
                !*ended && !left.is_zero(),
                "{} never said {what}, but:\n{}",
                self.name,
                lines[lines.len().saturating_sub(TAIL)..].join("\n")
            );
            let waited = self.said.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for a line of the JSON log.
    pub fn line(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        self.wait_for(what, |lines| {
            let mut logged = lines.iter().filter_map(|line| parse(line));
            logged.find(&is_it)
        })
    }

    /// Waits for the address of a listener in the JSON log.
    ///
    /// # Panics
    /// If the line has none.
    pub fn address(&self, listener: &str) -> String {
        let what = format!("where {listener} is");
        let opened = self.line(&what, |line| line["listener"] == listener);
        opened["address"].as_str().expect("it is told").to_owned()
    }

    /// Returns all lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.said.lock().0.clone()
    }

    /// Returns the last lines.
    pub fn tail(&self) -> Vec<String> {
        let state = self.said.lock();
        state.0[state.0.len().saturating_sub(TAIL)..].to_vec()
    }

    /// Returns the number of output bytes so far.
    pub fn bytes(&self) -> u64 {
        let state = self.said.lock();
        state.0.iter().map(|line| line.len() as u64 + 1).sum()
    }

    /// Returns how often a message was logged so far.
    pub fn messages(&self, message: &str) -> usize {
        let state = self.said.lock();
        let logged = state.0.iter().filter_map(|line| parse(line));
        logged.filter(|line| line["message"] == message).count()
    }

    /// Waits until a message was logged at least `times` times.
    pub fn wait_for_message(&self, message: &str, times: usize) {
        let (mut read, mut count) = (0, 0);
        self.wait_for(message, |lines| {
            let logged = lines[read..].iter().filter_map(|line| parse(line));
            count += logged.filter(|line| line["message"] == message).count();
            read = lines.len();
            (count >= times).then_some(())
        });
    }

    /// Writes a line to the process.
    ///
    /// # Panics
    /// If the process does not read.
    pub fn tell(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("its input is open");
        writeln!(stdin, "{line}").expect("it reads its input");
    }

    /// Ends the input of the process.
    pub fn close(&mut self) {
        self.stdin = None;
    }

    /// Returns whether the output has ended with the process.
    pub fn has_ended(&self) -> bool {
        self.said.lock().1
    }

    /// Returns the id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        signal("TERM", self.child.id());
    }

    /// Kills the process, and waits for its end.
    ///
    /// # Panics
    /// If the process cannot be killed.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it is ours");
    }

    /// Waits until the process ends by itself, and returns all its lines.
    ///
    /// # Panics
    /// If the process does not end within [`PATIENCE`].
    pub fn wait_for_end(self) -> Vec<String> {
        let said = Arc::clone(&self.said);
        let _ = self.wait();
        std::mem::take(&mut said.lock().0)
    }

    /// Waits until the process ends by itself.
    ///
    /// # Panics
    /// If the process does not end within [`PATIENCE`].
    pub fn wait(mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        let mut state = self.said.lock();
        while !state.1 {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{} does not end", self.name);
            let waited = self.said.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        self.child.wait().expect("it is ours")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A process that has ended by itself cannot be killed, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Said {
    fn listen(&self, pipe: impl Read) {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            self.lock().0.push(line);
            self.news.notify_all();
        }
        self.lock().1 = true;
        self.news.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (Vec<String>, bool)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Repeats `look` until it succeeds.
///
/// # Panics
/// With the last state, if it does not succeed within [`PATIENCE`].
pub fn until_found<T, S: fmt::Debug>(what: &str, mut look: impl FnMut() -> Result<T, S>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(Instant::now() < until, "{what} never came: {seen:#?}"),
        }
        thread::park_timeout(LOOK_EVERY);
    }
}

/// Runs a command to its end, and returns what it wrote to standard output and to standard error.
///
/// # Panics
/// With that, if it cannot be started or fails.
pub fn output_of(command: &mut Command) -> [String; 2] {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [printed, said] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let status = output.status;
    assert!(status.success(), "{command:?}: {status}\n{said}{printed}");
    [printed, said]
}

/// Sends a signal to a process.
///
/// # Panics
/// If there is no such process.
pub fn signal(signal: &str, process: u32) {
    let sent = Command::new("sh")
        .args(["-c", &format!("kill -{signal} {process}")])
        .status()
        .expect("there is a shell");
    assert!(sent.success(), "SIG{signal} cannot be sent to {process}");
}

fn parse(line: &str) -> Option<Value> {
    serde_json::from_str(line).ok()
}

/// Returns a port on which nothing listens. No outgoing connection takes it while the program that listens there is started again.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = u16::try_from(process::id() % u32::from(PORTS)).expect("it is less");
    loop {
        let next = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST_PORT + next % PORTS;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// Returns an address with a [`free_port`].
pub fn free_address() -> String {
    format!("{}:{}", Ipv4Addr::LOCALHOST, free_port())
}
