//! Misspelt environment variables: without a warning, their setting would silently not apply.

use std::env;

use clap::{Arg, Command, CommandFactory};
use tracing::warn;

const PREFIX: &str = "DECREE_";

/// The maximum number of wrong letters in ten of a misspelt name.
const WRONG_OF_TEN: usize = 3;

/// A warning for each variable of this process that is almost one of the variables of a program.
pub fn misspelt<A: CommandFactory>() -> Vec<String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    misspelt_among(names, &variables(&A::command()))
}

/// Logs a warning for each variable that is almost one of the variables of a program.
pub fn warn_of_misspelt<A: CommandFactory>() {
    for misspelt in misspelt::<A>() {
        warn!("{misspelt}");
    }
}

/// The variables of the flags of a command and of its subcommands.
fn variables(command: &Command) -> Vec<String> {
    let own = command.get_arguments().filter_map(Arg::get_env);
    let own = own.filter_map(|name| name.to_str().map(str::to_owned));
    let below = command.get_subcommands().flat_map(variables);
    own.chain(below).collect()
}

/// Other names may be those of another program or of a Service, so they get no warning.
fn misspelt_among(names: impl Iterator<Item = String>, known: &[String]) -> Vec<String> {
    let misspelt = names.filter_map(|name| {
        let own = name.strip_prefix(PREFIX)?;
        if known.contains(&name) {
            return None;
        }
        let suffixes = known.iter().filter_map(|it| it.strip_prefix(PREFIX));
        let (wrong, meant) = suffixes
            .map(|it| (strsim::levenshtein(own, it), it))
            .min()?;
        (wrong * 10 <= meant.len() * WRONG_OF_TEN).then(|| {
            let name = crate::escaped(&name);
            format!("the environment variable {name} is unknown and has no effect: is {PREFIX}{meant} meant?")
        })
    });
    let mut misspelt: Vec<_> = misspelt.collect();
    misspelt.sort();
    misspelt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[arg(long, env = "DECREE_LOG_LEVEL")]
        _log_level: Option<String>,
        #[command(subcommand)]
        _command: Below,
    }

    #[derive(clap::Subcommand)]
    enum Below {
        Agent {
            #[arg(long, env = "DECREE_CREATE_BUDGET_REPLICASET")]
            _budget: Option<String>,
        },
    }

    #[test]
    fn misspelt_variable_is_named_with_the_one_that_is_meant() {
        let names = [
            "PATH",
            "DECREE_",
            "DECREE_API_QPS",
            "DECREE_CREATE_BUDGET_REPLICASET",
            "DECREE_CREATE_BUDGET_REPLICA_SET",
            "DECREE_LOGLEVEL",
            "DECREE_SERVER_SERVICE_PORT",
        ];
        let names = names.into_iter().map(str::to_owned);
        let warning = |name: &str, meant: &str| {
            format!(
                "the environment variable {name} is unknown and has no effect: is {meant} meant?"
            )
        };
        let expected = [
            warning(
                "DECREE_CREATE_BUDGET_REPLICA_SET",
                "DECREE_CREATE_BUDGET_REPLICASET",
            ),
            warning("DECREE_LOGLEVEL", "DECREE_LOG_LEVEL"),
        ];
        assert_eq!(
            misspelt_among(names, &variables(&Program::command())),
            expected
        );
    }
}
