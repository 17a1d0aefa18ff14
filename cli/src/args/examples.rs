//! The examples of each command.

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
pub(super) fn text(path: &str, program: &str) -> Option<String> {
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

    use clap::{Command, CommandFactory as _};

    use super::{
        super::{Args, parse},
        *,
    };

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
