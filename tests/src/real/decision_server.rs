//! A decree-server as a process.

use super::kept::Kept;

/// A running decree-server; it is killed when this is dropped.
#[derive(Debug)]
pub struct DecisionServer {
    kept: Kept,
    address: String,
}

// === impl DecisionServer ===

impl DecisionServer {
    /// Starts one on free ports, and returns when it listens.
    #[must_use]
    pub fn start() -> Self {
        Self::start_at("127.0.0.1:0")
    }

    /// Returns where it serves gRPC.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Kills it, and starts another in its place.
    #[must_use]
    pub fn restart(self) -> Self {
        let Self { kept, address } = self;
        kept.signal("KILL");
        let _killed = kept.wait();
        Self::start_at(&address)
    }

    /// Returns the number of the process, for who measures it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.kept.process()
    }

    fn start_at(listen: &str) -> Self {
        let flags = ["--listen", listen, "--admin", "off", "--probe", "off"];
        let kept = Kept::start("decree-server", &flags);
        let address = kept.running().address("grpc");
        Self { kept, address }
    }
}
