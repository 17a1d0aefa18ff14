//! The help of the commands: examples first, then the flags, and at the end the exit codes. The connection flags have a separate
//! page.

use clap::{
    Arg, Args as _, Command,
    builder::{PossibleValue, Resettable, StyledStr, styling::Styles},
};

use super::examples;
use crate::server::ServerArgs;

/// The hidden command whose help describes the connection flags.
pub(super) const CONNECTION: &str = "connection";

/// The groups of the list of commands.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Ask",
        &["get", "explain", "simulate", "watch", "top", "diff"],
    ),
    (
        "Run",
        &["up", "check", "take-over", "hand-back", "resume", "pki"],
    ),
    ("Try", &["demo", "decide"]),
    (
        "Support",
        &["sysdump", "replay", "completion", "man", "version", "help"],
    ),
];
/// The help of the command `help`, which clap adds, in the list of commands.
const HELP_ABOUT: &str = "Print the help of a command, or of `connection`";
/// The width of names in the list of commands, with the gap after them.
const NAME_WIDTH: usize = 13;

const TEMPLATE: &str =
    "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// The names of numeric values of flags.
const NUMBERS: [&str; 3] = ["NUMBER", "COUNT", "RATIO"];

pub(super) const DECIDE_HELP: &str = "\
Output:
  table  a line for each operation: what, which pod, by which rule, and why
  json   an object on its own line for each ReplicaSet, by namespace and name:
         replicaSet, creates{count,names}, deletes[{name,reason{rule,detail}}],
         adopts, releases, status (as Kubernetes writes it, null if no write is
         needed), requeueAfterSeconds, quarantined.
         `deletes` are in the order of choice, all other lists in that of names.

Rules of `deletes`, the first that tells a victim from the next pod:
  ALL_GO UNASSIGNED PHASE NOT_READY DELETION_COST CROWDED_NODE READY_RECENTLY
  RESTARTS CREATED_RECENTLY UID

Exit codes:
  0  decided, including the decision to quarantine
  1  the ReplicaSet is not in the input, or the output cannot be written
  2  invalid command line or input; the message names file, document and field";

pub(super) const DIFF_HELP: &str = "\
Exit codes:
  0  no differences, or none that --fail-on names
  1  there are some, or the output cannot be written
  2  invalid command line, or no agent in mode shadow is connected
  3  the server cannot be reached, or stopped responding
  4  the server refused";

pub(super) const REPLAY_HELP: &str = "\
Output:
  table  for each difference the time, the ReplicaSet, the recorded decision,
         and the decision of this version
  json   an object on a line of its own for each difference, and one for each
         file behind its differences:
         difference{file,time,recorded,decided,after[{time,input,frame}]}
         summary{file,cluster,session,serverVersion,differences,decisions{
         batches,creates,deletes,adopts,releases,statusWrites},framesIn,
         framesOut,ending,tornAt}
         Frames are canonical proto3 JSON of the contract; `after` is empty
         without --explain.

Exit codes:
  0  all decisions agree, up to the tear where a recording is torn
  1  some differ, or the output cannot be written
  2  a file cannot be read, is no recording, or is damaged";

pub(super) const CHECK_HELP: &str = "\
Exit codes:
  0  no check failed
  1  a check failed, or the output cannot be written
  2  invalid command line";

/// Sets the help that a terminal shows, for a program of this name.
pub(super) fn for_terminal(command: Command, program: &str) -> Command {
    let styles = command.get_styles().clone();
    let template = format!(
        "{{about-with-newline}}\n{{before-help}}{{usage-heading}} {{usage}}\n\n{}{}\n{{options}}{{after-help}}",
        groups(&command, &styles),
        headed("Options:", &styles),
    );
    dress(command, program, "").help_template(template)
}

/// Sets the help of the manual pages.
pub(super) fn for_manual(command: Command) -> Command {
    with_examples_below(command, "").mut_subcommand(CONNECTION, |it| it.hide(false))
}

fn with_examples_below(command: Command, path: &str) -> Command {
    let below = [
        examples::text(path, "decree"),
        text(command.get_after_help()),
    ];
    command
        .after_help(paragraphs(below))
        .mut_subcommands(|command| {
            let path = join(path, command.get_name());
            with_examples_below(command, &path)
        })
}

/// Sets the help of a command and of its subcommands. Long and short help are the same.
fn dress(command: Command, program: &str, path: &str) -> Command {
    let styles = command.get_styles().clone();
    let connection = connection();
    let has_server = command.get_arguments().any(|arg| arg.get_id() == "server");
    let asks_server = path != CONNECTION && has_server;
    let pointer = asks_server.then(|| {
        format!("Flags of the connection, such as --server, --token-file and --tls-ca: {program} help connection")
    });
    let more = command.get_long_about().map(ToString::to_string);
    let more = more.and_then(|it| it.split_once("\n\n").map(|(_, rest)| rest.to_owned()));
    let before = [more, examples::text(path, program)];
    let after = [text(command.get_after_help()), pointer];
    let command = if asks_server {
        let usage = usage(&command, &format!("{program} {path}"), &styles);
        command.override_usage(usage)
    } else {
        command
    };
    let after = after.iter().any(Option::is_some).then(|| paragraphs(after));
    let after = after.map(|after| StyledStr::from(headed(&after, &styles)));
    command
        .mut_args(|arg| {
            let is_hidden = asks_server && connection.iter().any(|it| *arg.get_id() == **it);
            let arg = with_short_help(with_negative_numbers(arg));
            let is_hidden = is_hidden || arg.is_hide_set();
            arg.hide(is_hidden)
        })
        .after_help(Resettable::from(after))
        .long_about(None::<&'static str>)
        .before_help(headed(&paragraphs(before), &styles))
        .help_template(TEMPLATE)
        .mut_subcommands(|command| {
            let path = join(path, command.get_name());
            dress(command, program, &path)
        })
}

/// The usage of a command, without the flags that are given: if the environment names a server, clap would show `--server` as if
/// it were required.
fn usage(command: &Command, path: &str, styles: &Styles) -> String {
    let usage = command.clone().render_usage().to_string();
    let arguments = usage.split_once(command.get_name());
    let arguments = arguments.map_or("", |(_, arguments)| arguments);
    let literal = styles.get_literal();
    format!("{literal}{path}{literal:#}{arguments}")
}

/// The names of the connection flags.
fn connection() -> Vec<String> {
    let flags = ServerArgs::augment_args(Command::new(CONNECTION));
    let ids = flags.get_arguments().map(|arg| arg.get_id().to_string());
    ids.collect()
}

/// Puts the values of a flag on one line with its help, as the short help of clap does.
fn with_short_help(arg: Arg) -> Arg {
    let arg = arg.long_help(None::<&'static str>);
    if !arg.get_action().takes_values() || arg.is_hide_possible_values_set() {
        return arg;
    }
    let values = arg.get_possible_values();
    let values = values.iter().filter(|it| !it.is_hide_set());
    let values: Vec<_> = values.map(PossibleValue::get_name).collect();
    if values.is_empty() {
        return arg;
    }
    let (help, values) = (text(arg.get_help()).unwrap_or_default(), values.join(", "));
    arg.help(format!("{help} [possible values: {values}]"))
        .hide_possible_values(true)
}

/// Passes a negative number to the parser of its flag, whose error says what is wrong, instead of taking it for a flag.
fn with_negative_numbers(arg: Arg) -> Arg {
    let mut names = arg.get_value_names().unwrap_or_default().iter();
    let is_number = names.any(|name| NUMBERS.contains(&name.as_str()));
    arg.allow_negative_numbers(is_number)
}

fn groups(command: &Command, styles: &Styles) -> String {
    let literal = styles.get_literal();
    let mut list = String::new();
    for (title, names) in GROUPS {
        list += &format!("{}\n", headed(&format!("{title}:"), styles));
        for name in names {
            let about = command.find_subcommand(name).map(Command::get_about);
            let about = about.map_or_else(|| Some(HELP_ABOUT.to_owned()), text);
            let about = about.unwrap_or_default();
            list += &format!("  {literal}{name:<NAME_WIDTH$}{literal:#}{about}\n");
        }
        list.push('\n');
    }
    list
}

/// Styles headings as clap does. A heading is a line that ends with a colon.
fn headed(text: &str, styles: &Styles) -> String {
    let header = styles.get_header();
    let lines = text.split('\n').map(|line| {
        if line.ends_with(':') && !line.starts_with(' ') {
            format!("{header}{line}{header:#}")
        } else {
            line.to_owned()
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn paragraphs(texts: [Option<String>; 2]) -> String {
    let texts: Vec<_> = texts.into_iter().flatten().collect();
    texts.join("\n\n")
}

fn text(styled: Option<&StyledStr>) -> Option<String> {
    styled.map(ToString::to_string)
}

fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{super::Args, *};

    #[test]
    fn list_of_commands_has_each_once_and_fits_a_terminal() {
        let command = Args::command();
        let commands = command.get_subcommands().filter(|it| !it.is_hide_set());
        let mut names: Vec<_> = commands.map(Command::get_name).collect();
        names.push("help");
        names.sort_unstable();
        let grouped = GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
        let mut grouped: Vec<_> = grouped.collect();
        grouped.sort_unstable();
        assert_eq!(grouped, names);
        let list = groups(&command, &Styles::plain());
        let long = list.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None);
        assert!(!list.contains(['{', '}']), "it would be read as a template");
    }

    fn said(line: &str) -> String {
        let words = line.split(' ').map(std::ffi::OsString::from);
        let page = super::super::parse(words).expect_err("it is help, or wrong");
        page.to_string()
    }

    #[test]
    fn help_has_examples_first_and_leads_to_the_flags_of_the_connection() {
        let help = said("decree get --help");
        let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
        assert!(at("Examples:") < at("Usage: ") && at("Usage: ") < at("Options:"));
        assert!(!help.contains("--tls-ca <"), "{help}");
        let last = help.lines().last().unwrap_or_default();
        assert!(last.ends_with("decree help connection"), "{last}");
        assert_eq!(said("decree get -h"), help);
        assert_eq!(said("decree help get"), help);
        let connection = said("decree help connection");
        for flag in [
            "--server <URL>",
            "--token-file <FILE>",
            "--tls-ca <FILE>",
            "--timeout <TIME>",
        ] {
            assert!(connection.contains(flag), "{connection}");
        }
    }

    #[test]
    fn usage_does_not_take_a_named_server_for_required() {
        let said = said("decree get --server http://127.0.0.1:1");
        let usage = "Usage: decree get [OPTIONS] <RESOURCE>...";
        assert!(said.contains(usage), "{said}");
    }
}
