//! The behavior of all commands in a shell: help, usage, and streams that close early.

use std::io::{self, Write};

use super::{check, check_with, decree, decree_into, path, printed_as};
use crate::Exit;

/// A stream that takes some bytes and then fails.
struct Closing {
    left: usize,
    kind: io::ErrorKind,
}

impl Write for Closing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.left);
        self.left -= taken;
        if taken == 0 {
            Err(self.kind.into())
        } else {
            Ok(taken)
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn reader_that_goes_ends_a_command_quietly_and_a_full_disk_does_not() {
    let state = path("docs/examples/state.yaml");
    let decide_into = |left, kind| {
        let words = ["decide", "-f", &state];
        decree_into("", &mut Closing { left, kind }, "decree", &words)
    };
    for left in 0..200 {
        let ended = decide_into(left, io::ErrorKind::BrokenPipe);
        assert_eq!(ended, (Exit::Done, String::new()));
    }
    let (exit, err) = decide_into(10, io::ErrorKind::StorageFull);
    assert_eq!(exit, Exit::No);
    assert!(
        err.starts_with("error: output cannot be written: "),
        "{err}"
    );
}

/// Commands and what they print before they ask a server, if any.
const WITHOUT_A_SERVER: &str = "
[0] --help
…
  0  …
  1  …
  2  …
  3  …
  4  …
[2] decide --fil x
error: unexpected argument '--fil' found
hint: a similar argument exists: '--filename'
[2] demo scale web
error: the following required arguments were not provided: <NUMBER>
hint: list its arguments with: decree demo scale --help
[2] demo scale web -1
[2] demo fail node-b -n shop
error: unexpected argument '-n' found
hint: list its arguments with: decree demo fail --help
[2] get rs --timeout 5
error: …must be numbers with units, such as 500ms, 10s or 1m30s
hint: …
[2] gte rs
error: …
hint: list its arguments with: decree --help
[2] explian web
error: …
hint: …'explain'
[2] frobnicate
[0] version
decree … (commit …, contract decree.v1)
[0] --version
decree @VERSION
[2] completion tcl
[2] decide
error: no file is named, and no kubeconfig is found
hint: …-f…--kubeconfig
[2] decide -f no/such/file.json
error: no/such/file.json: cannot be read: …
[2] decide -f - --now yesterday
error: …RFC 3339…
[2] simulate -f -
[2] simulate web -f -
[2] simulate --drain node-b -f - --cluster other
[2] get rs -f - --server http://127.0.0.1:1
error: --server is for a server, and files or the cluster of a kubeconfig are read
hint: leave out one of them
[2] explain web --as bob --token-file x
error: --token-file is for a server, …
[2] get rs --server http://127.0.0.1:1 --tls-server-name a
error: http://127.0.0.1:1 does not use TLS, …
[2] console --admin 127.0.0.1:1 --context kind
error: --admin is for a server, …
[2] console --admin 127.0.0.1:1 -n decree-system
error: --admin is for a server, …
[2] simulate web --drain node-b
[2] simulate --drain node-b --quota 3
[2] simulate --drain node-b --replicas 3
[2] simulate --quota 3 -A
[2] simulate --quota -1
[2] up --context kind -f @WEB
error: --filename fills the embedded cluster, …
[2] up --cluster fake --context kind
error: --kubeconfig, --context and --as name a real cluster, …
[2] up -n shop
error: --namespace is for a real cluster, …
[2] up --kubeconfig /nowhere/config
error: …/nowhere/config…
[1] up --listen @TAKEN --admin 127.0.0.1:0
error: …@TAKEN…--listen…";

#[test]
fn commands_without_a_server_say_what_is_wrong_and_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("its address").to_string();
    let transcript = WITHOUT_A_SERVER.replace("@VERSION", service::build_info::text());
    let transcript = transcript.replace("@WEB", &path("docs/examples/web.yaml"));
    check(&transcript.replace("@TAKEN", &taken));
    assert_eq!(decree(&[]).exit, Exit::Usage);
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    let refused = "[2] up -f -\nerror: -: document 1: kind: \"Service\"…";
    check_with(service, &[], refused);
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        check(&format!("[0] completion {shell}\n…COMPLETE…"));
    }
}

#[test]
fn plugin_of_kubectl_speaks_of_itself_as_such() {
    let help = printed_as("/usr/local/bin/kubectl-decree", &["get", "--help"]);
    assert!(help.contains("Usage: kubectl decree get "), "{help}");
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let new = folder.path().join("a/b");
    let written = decree(&["man", new.to_str().expect("it is text")]);
    assert_eq!((written.exit, written.err.as_str()), (Exit::Done, ""));
    for page in ["decree.1", "decree-get.1", "decree-demo-scale.1"] {
        let text = std::fs::read_to_string(new.join(page));
        assert!(text.is_ok_and(|text| text.contains(".TH ")), "{page}");
    }
    let page = std::fs::read_to_string(new.join("decree-get.1")).expect("it is there");
    assert!(page.contains("Examples:") && page.contains("tls"), "{page}");
    let taken = new.join("decree.1");
    let refused = decree(&["man", taken.to_str().expect("it is text")]);
    assert_eq!(refused.exit, Exit::No);
}
