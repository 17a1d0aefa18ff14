//! What derive cannot say of the commands: their examples, and rules for all flags of a kind.

use clap::{Arg, Command};

use crate::exit;

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
  ALL_GO UNASSIGNED PHASE NOT_READY
  (FIRST EMPTIEST_NODE YOUNGEST LEAVING_NODE FULLEST_DOMAIN, if preferred)
  DELETION_COST CROWDED_NODE READY_RECENTLY RESTARTS CREATED_RECENTLY UID";

/// Adds the examples for a program of this name, and the exit codes, to a command and its subcommands. `path` names the command.
pub(super) fn complete(command: Command, path: &str, program: &str) -> Command {
    let after = command.get_after_help().map(ToString::to_string);
    let after = text(path, program).into_iter().chain(after);
    let after: Vec<_> = after.chain([exit::HELP.to_owned()]).collect();
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

/// Command lines without the name of the program, and what they do. A command has those that begin with its name, and the program itself
/// the first [`OF_PROGRAM`].
const EXAMPLES: &str = "\
demo # see it at work, without a cluster
up --cluster kubernetes # compare with your cluster, read-only
simulate deploy/web --replicas 3 # which pods would go
explain shop/web # state and cause
demo scale web 3 # change a running `decree up`
explain shop/web --why web-7qz9m # why a pod was deleted
get rs -n shop --context prod # a cluster, without a server
get rs --server unix:/run/decree.sock # of a server
simulate --drain node-b # which ReplicaSets lose pods
watch shop/web --count 1 # wait for the next decision
diff --unexplained # what needs a look
console --context prod # of a cluster
check --mode shadow --context prod # before a trial
check --only server # without cluster credentials
resume shop/web # holds of a ReplicaSet
take-over # after the built-in controller is off
hand-back # before the built-in controller is on
decide -f state.json # kubectl get rs,pods -o json > state.json
decide --context prod # from a cluster, read-only
replay session.recording # does this version agree?
replay --console session.recording # step by step, in the browser
completion fish > ~/.config/fish/completions/decree.fish # fish
completion zsh > ~/.zfunc/_decree # zsh
man ~/.local/share/man/man1 # then: man decree-get";
const OF_PROGRAM: usize = 4;

/// The examples of a command: the command line, and what it does.
fn examples(path: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let most = if path.is_empty() {
        OF_PROGRAM
    } else {
        usize::MAX
    };
    let all = EXAMPLES.lines().filter_map(|it| it.split_once(" # "));
    let is_its = move |line: &str| {
        let rest = line.strip_prefix(path);
        rest.is_some_and(|rest| path.is_empty() || rest.is_empty() || rest.starts_with(' '))
    };
    all.filter(move |(line, _)| is_its(line)).take(most)
}

/// The examples of a command under their heading, for a program of this name; `None` for a command without examples.
fn text(path: &str, program: &str) -> Option<String> {
    let width = examples(path).map(|(line, _)| line.chars().count()).max()?;
    let lines = examples(path).map(|(line, said)| format!("  {program} {line:<width$}   # {said}"));
    Some(format!(
        "Examples:\n{}",
        lines.collect::<Vec<_>>().join("\n")
    ))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::CommandFactory as _;

    use super::{
        super::{Args, parse},
        *,
    };

    #[test]
    fn help_has_examples_and_only_the_long_one_the_flags_of_the_connection() {
        let said = |line: &str| {
            let words: Vec<_> = line.split(' ').map(OsString::from).collect();
            let page = parse(&words).expect_err("it is help");
            page.to_string()
        };
        let (short, long) = (said("decree get -h"), said("decree help get"));
        for text in [
            "Usage: decree get ",
            "Examples:\n  decree get rs -n shop --context prod ",
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
        assert!(lines.len() >= 4, "only {} lines", lines.len());
        for line in lines {
            let words: Vec<_> = line.iter().map(OsString::from).collect();
            let parsed = parse(&words);
            let error = parsed.expect_err("it is too small");
            let text = error.to_string();
            assert!(text.contains("invalid value '-1' for "), "{line:?}: {text}");
        }
    }

    /// The arguments of the program, without what a shell does with the output.
    fn words(line: &str) -> Vec<&str> {
        let is_own = |word: &&str| ![">", "|"].contains(word);
        line.split(' ').take_while(is_own).collect()
    }

    #[test]
    fn examples_are_command_lines_and_fit_a_terminal() {
        for (line, said) in EXAMPLES.lines().filter_map(|it| it.split_once(" # ")) {
            let words = ["decree"].into_iter().chain(words(line));
            let parsed = parse(&words.map(OsString::from).collect::<Vec<_>>());
            assert!(parsed.is_ok(), "decree {line}: {:?}", parsed.err());
            let (name, _) = line.split_once(' ').unwrap_or((line, ""));
            let text = text(name, "decree").expect("it has one");
            assert!(text.contains(line) && text.contains(said), "{text}");
            let long = text.lines().find(|line| line.chars().count() > 80);
            assert_eq!(long, None, "{name}");
        }
    }
}
