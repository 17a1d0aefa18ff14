//! What derive cannot say of the commands: their examples, and rules for all flags of a kind.

use clap::{Arg, Command};

use super::examples;

/// The names of numeric values of flags.
const NUMBERS: [&str; 3] = ["NUMBER", "COUNT", "RATIO"];
/// The headings that only the long help has.
const LONG_ONLY: [&str; 2] = ["Connection", "TLS"];

pub(super) const DECIDE_HELP: &str = "\
Output:
  table  a line for each operation: action, pod, rule and reason
  json   an object on its own line for each ReplicaSet, by namespace and name:
         replicaSet, creates{count,names}, deletes[{name,reason{rule,detail}}],
         adopts, releases, status (as Kubernetes writes it, null if no write is
         needed), requeueAfterSeconds, quarantined.
         `deletes` are in the order of deletion, all other lists in the order of names.

Rules of `deletes`, the first that distinguishes a victim from the next pod:
  ALL_GO UNASSIGNED PHASE NOT_READY DELETION_COST CROWDED_NODE READY_RECENTLY
  RESTARTS CREATED_RECENTLY UID

Exit codes:
  0  decided, including the decision to quarantine
  1  the ReplicaSet is not in the input, or the output cannot be written
  2  invalid command line or input; the message names file, document and field";

pub(super) const DIFF_HELP: &str = "\
Exit codes:
  0  no differences, or none of --fail-on
  1  differences, or the output cannot be written
  2  invalid command line, or no agent in shadow mode is connected
  3  the server cannot be reached, or the server or a session does not respond
  4  the server refused";

pub(super) const REPLAY_HELP: &str = "\
Output:
  table  for each difference the time, the ReplicaSet, the recorded decision,
         and the decision of this version
  json   an object on a separate line for each difference, and one for each
         file after its differences:
         difference{file,time,recorded,decided,after[{time,input,frame}]}
         summary{file,cluster,session,serverVersion,differences,decisions{
         batches,creates,deletes,adopts,releases,statusWrites},framesIn,
         framesOut,ending,tornAt}
         Frames are canonical proto3 JSON of the contract; `after` is empty
         without --explain.

Exit codes:
  0  all decisions agree, up to the end of a truncated recording; with
     --console, ended by Ctrl-C
  1  some decisions differ, or the output cannot be written
  2  a file cannot be read, is not a recording, or is damaged";

pub(super) const CHECK_HELP: &str = "\
Exit codes:
  0  no check failed
  1  a check failed, or the output cannot be written
  2  invalid command line";

/// Adds the examples for a program of this name to a command and its subcommands. `path` names the command.
pub(super) fn complete(command: Command, path: &str, program: &str) -> Command {
    let after = command.get_after_help().map(ToString::to_string);
    let examples = examples::text(path, program);
    let after: Vec<_> = examples.into_iter().chain(after).collect();
    command
        .mut_args(with_rules)
        .after_help(after.join("\n\n"))
        .mut_subcommands(|command| {
            let path = format!("{path} {}", command.get_name());
            complete(command, path.trim(), program)
        })
}

/// Passes a negative number to the parser of its flag, whose error says what is wrong, instead of taking it for a flag. Hides the flags
/// of the connection from the short help.
fn with_rules(arg: Arg) -> Arg {
    let mut names = arg.get_value_names().unwrap_or_default().iter();
    let is_number = names.any(|name| NUMBERS.contains(&name.as_str()));
    let heading = arg.get_help_heading();
    let is_long_only = heading.is_some_and(|it| LONG_ONLY.contains(&it));
    arg.allow_negative_numbers(is_number)
        .hide_short_help(is_long_only)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{super::Args, *};

    #[test]
    fn help_has_examples_and_only_the_long_one_the_flags_of_the_connection() {
        let said = |line: &str| {
            let words: Vec<_> = line.split(' ').map(std::ffi::OsString::from).collect();
            let page = super::super::parse(&words).expect_err("it is help");
            page.to_string()
        };
        let (short, long) = (said("decree get -h"), said("decree help get"));
        for text in [
            "Usage: decree get ",
            "Examples:\n  decree get rs -n shop ",
            "Exit codes:\n",
        ] {
            assert!(short.contains(text) && long.contains(text), "{long}");
        }
        for flag in [
            "--server <URL>",
            "--token-file <FILE>",
            "--tls-ca <FILE>",
            "--timeout <TIME>",
        ] {
            assert!(!short.contains(flag) && long.contains(flag), "{long}");
        }
    }

    /// A command line with -1 for each flag whose value is a number.
    fn negative(command: &Command, above: &[String]) -> Vec<Vec<String>> {
        let is_number = |arg: &&Arg| {
            let mut names = arg.get_value_names().unwrap_or_default().iter();
            names.any(|name| NUMBERS.contains(&name.as_str()))
        };
        let flags = command.get_arguments().filter(is_number);
        let lines = flags.filter_map(|arg| {
            let flag = [format!("--{}", arg.get_long()?), "-1".to_owned()];
            Some([above, &flag].concat())
        });
        let below = command.get_subcommands().flat_map(|command| {
            let path = [above, &[command.get_name().to_owned()]].concat();
            negative(command, &path)
        });
        lines.chain(below).collect()
    }

    #[test]
    fn negative_numbers_are_taken_for_values_and_not_for_flags() {
        let lines = negative(&Args::command(), &["decree".to_owned()]);
        assert!(lines.len() > 6, "only {} lines", lines.len());
        for line in lines {
            let words: Vec<_> = line.iter().map(std::ffi::OsString::from).collect();
            let parsed = super::super::parse(&words);
            let error = parsed.expect_err("it is too small");
            let text = error.to_string();
            assert!(text.contains("invalid value '-1' for "), "{line:?}: {text}");
        }
    }
}
