//! The connection flags of a half-written command, and the request to its server.

use std::{env, net::SocketAddr, time::Duration};

use clap::{Arg, Command, CommandFactory as _, Parser};

use crate::{
    exit::Failure,
    server::{self, Server, ServerArgs},
};

/// The timeout of each request, and of all requests together.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);
const PATIENCE_FOR_ALL: Duration = Duration::from_secs(2);
/// The connection flags of a half-written command.
#[derive(Debug, Parser)]
pub(super) struct ServerFlags {
    #[command(flatten)]
    server: ServerArgs,
    #[arg(long, default_value = "")]
    pub(super) cluster: String,
    #[arg(short, long)]
    pub(super) namespace: Option<String>,
    #[arg(long, env = "DECREE_ADMIN", default_value = "127.0.0.1:8080")]
    pub(super) admin: SocketAddr,
}

/// Asks the server of the half-written command. Empty if the server is away, slow or refuses.
pub(super) fn ask(
    question: impl AsyncFnOnce(&Server, &ServerFlags) -> Result<Vec<String>, Failure>,
) -> Vec<String> {
    let words: Vec<_> = env::args().collect();
    let Some(mut flags) = ServerFlags::of(&words) else {
        return Vec::new();
    };
    flags.server.timeout = PATIENCE;
    let asked = server::block_on(async {
        let asked = async {
            let server = Server::connect(&flags.server).await?;
            question(&server, &flags).await
        };
        let asked = tokio::time::timeout(PATIENCE_FOR_ALL, asked).await;
        asked.unwrap_or_else(|_| Ok(Vec::new()))
    });
    asked.unwrap_or_default()
}

/// The part of a command line that affects a request, without a flag whose value is not written yet.
fn relevant(words: &[String]) -> Vec<&str> {
    let known = ServerFlags::command();
    let mut kept = vec!["decree"];
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let flag = word.split('=').next().unwrap_or(word);
        let is_short = word.starts_with("-n") && word.len() > 2;
        match takes_value(&known, flag) {
            Some(true) if flag == word => {
                let value = words.next().filter(|value| !value.is_empty());
                kept.extend(value.into_iter().flat_map(|value| [word, value]));
            }
            Some(_) => kept.push(word),
            None if is_short => kept.push(word),
            None => {}
        }
    }
    kept
}

/// Whether the value of a flag of a command is the next word; `None` for other words.
pub(super) fn takes_value(command: &Command, word: &str) -> Option<bool> {
    let is_it = |arg: &&Arg| {
        let long = arg.get_long().map(|long| format!("--{long}"));
        let short = arg.get_short().map(|short| format!("-{short}"));
        [long, short].iter().flatten().any(|flag| flag == word)
    };
    let arg = command.get_arguments().find(is_it)?;
    Some(arg.get_action().takes_values() && !arg.is_require_equals_set())
}

// === impl ServerFlags ===

impl ServerFlags {
    /// `None` if the words that affect the request are invalid.
    pub(super) fn of(words: &[String]) -> Option<Self> {
        Self::try_parse_from(relevant(words)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_written_command_leads_to_its_server() {
        let words =
            "decree -- decree get rs --server http://a:1 -n x --tls-ca=ca --insecure -o --cluster";
        let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
        let expected = "decree --server http://a:1 -n x --tls-ca=ca --insecure";
        assert_eq!(relevant(&words), Vec::from_iter(expected.split(' ')));
    }
}
