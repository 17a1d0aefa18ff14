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
  ALL_GO UNASSIGNED PHASE NOT_READY DELETION_COST CROWDED_NODE READY_RECENTLY
  RESTARTS CREATED_RECENTLY UID";

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
         without --explain.";

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

/// The examples by command, whose name is in brackets; the program itself has the empty name. An example is a command line
/// without the name of the program, and what it does.
const EXAMPLES: &str = "\
[]
demo # see it at work, without a cluster
up --cluster kubernetes # compare with your cluster
simulate deploy/web --replicas 3 # which pods would go, read-only
explain shop/web # why a ReplicaSet is not ready
[get]
get rs -n shop # ReplicaSets of a namespace
get rs -n shop --context prod # of a cluster, without a server
get rs web api -o wide # two of them, in full
get sessions # connected agents
get rs --server https://decree.example:50051 --tls-ca ca.crt
get rs --server unix:/run/decree.sock
[console]
console # of this machine, or else of the cluster
console --context prod -n decree-system
[explain]
explain shop/web # state and cause
explain deployment/web -n shop # of its ReplicaSets with pods
explain shop/web --why web-7qz9m # why a pod was deleted
explain shop/web --all # with the timeline
[simulate]
simulate shop/web --replicas 3 # which pods would go
simulate deployment/web --replicas 3 --context prod
simulate web api --replicas 0 -o json
simulate --drain node-b # which ReplicaSets lose pods
simulate -n shop --quota 20 # which creates are refused
simulate -f all.json --drain node-b # without a server
[watch]
watch # all decisions
watch shop/web --count 1 # wait for the next decision
[diff]
diff --unexplained # what needs a look
diff > report.txt # a report for others
[up]
up # a demo cluster in this process
up --cluster kubernetes # your cluster, read-only
up --context prod -n shop --mode shadow
[check]
check # before and after an installation
check --mode shadow --context prod # before a trial
check --only server # without cluster credentials
[resume]
resume shop/web # holds of a ReplicaSet
resume --all --agent http://127.0.0.1:8081 # a demo cluster
[take-over]
take-over # after the built-in controller is off
take-over --lease-namespace decree-system
[hand-back]
hand-back # before the built-in controller is on
hand-back --lease-namespace decree-system
[pki]
pki dev --out certs # certificates for a trial
[pki dev]
pki dev --out certs # certificates for a trial
pki dev --host decree.example --days 30
[demo]
demo # see it at work
demo --fast # without pauses
demo scale web 3 # change a running `decree up`
[demo scale]
demo scale web 3
demo scale shop/web 0 # in another namespace
[demo delete]
demo delete web-7qz9m # as a user would
[demo fail]
demo fail node-b # its pods become Unknown
[demo restore]
demo restore node-b # it is up again
[demo quota]
demo quota 10 -n shop # at most 10 pods in a namespace
[decide]
decide -f state.json # kubectl get rs,pods -o json > state.json
decide -f state.json --replica-set web --replicas 3
decide -f - -o json # from standard input
decide --context prod # from a cluster, read-only
[replay]
replay session.recording # does this version agree?
replay --explain *.recording # the input before
replay --console session.recording # step by step, in the browser
[completion]
completion bash > ~/.local/share/bash-completion/completions/decree
completion zsh > ~/.zfunc/_decree
completion fish > ~/.config/fish/completions/decree.fish
[man]
man ~/.local/share/man/man1 # then: man decree-get
[version]
version # for a bug report";

/// The commands with their examples: the command line, and what it does or nothing.
fn sections() -> impl Iterator<Item = (&'static str, Vec<(&'static str, &'static str)>)> {
    let sections = EXAMPLES.split('[').skip(1);
    sections.filter_map(|section| {
        let (command, lines) = section.split_once("]\n")?;
        let example = |line: &'static str| line.split_once(" # ").unwrap_or((line, ""));
        Some((command, lines.lines().map(example).collect()))
    })
}

/// The examples of a command under their heading, for a program of this name; `None` for a command without examples.
fn text(path: &str, program: &str) -> Option<String> {
    let (_, examples) = sections().find(|(command, _)| *command == path)?;
    let explained = examples.iter().filter(|(_, said)| !said.is_empty());
    let width = explained.map(|(line, _)| line.chars().count()).max();
    let width = width.unwrap_or(0);
    let lines = examples.iter().map(|(line, said)| match *said {
        "" => format!("  {program} {line}"),
        said => format!("  {program} {line:<width$}   # {said}"),
    });
    let lines: Vec<_> = lines.collect();
    Some(format!("Examples:\n{}", lines.join("\n")))
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
        assert!(lines.len() > 5, "only {} lines", lines.len());
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

    fn paths(command: &Command, above: &str) -> Vec<String> {
        let below = command.get_subcommands().flat_map(|command| {
            let path = format!("{above} {}", command.get_name());
            paths(command, path.trim())
        });
        [above.to_owned()].into_iter().chain(below).collect()
    }

    #[test]
    fn each_command_has_examples() {
        let has_none = |path: &String| text(path, "decree").is_none();
        let paths = paths(&Args::command(), "");
        let without: Vec<_> = paths.iter().filter(|path| has_none(path)).collect();
        assert_eq!(without, Vec::<&String>::new());
        let mut commands = sections().map(|(of, _)| of);
        let of_none = commands.find(|of| !paths.iter().any(|path| path == of));
        assert_eq!(of_none, None);
    }

    #[test]
    fn examples_are_command_lines_of_their_command_and_fit_a_terminal() {
        for (of, examples) in sections() {
            let text = text(of, "decree").unwrap_or_default();
            let long = text.lines().find(|line| line.chars().count() > 80);
            assert_eq!(long, None, "{of}");
            for (line, _) in examples {
                let words = words(line);
                let words = ["decree"].into_iter().chain(words);
                let words: Vec<_> = words.map(OsString::from).collect();
                let parsed = parse(&words);
                assert!(parsed.is_ok(), "decree {line}: {:?}", parsed.err());
                assert!(line.starts_with(of), "{line} is no example of {of:?}");
            }
        }
    }
}
