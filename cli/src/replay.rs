//! `decree replay`: decides recordings again.

use std::{
    io::{self, BufReader, Read, Write},
    net::Ipv4Addr,
    path::Path,
};

use decree_core::wording::count;
use serde_json::Value;
use server_session::recording::{Difference, EndReason, Ending, ReadError, Replay, Summary};
use tokio::net::TcpListener;

use crate::{
    age,
    args::ReplayArgs,
    console,
    exit::{Exit, Failure},
    input,
    page::{Io, one_line},
    sandbox, server,
};

mod entry;
mod steps;

/// The maximum number of connections to the page of a recording: a browser has at most six.
const CONNECTIONS_MAX: usize = 64;

pub(crate) fn run(args: &ReplayArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    if args.console {
        return show(args, io);
    }
    let mut exit = Exit::Done;
    for file in &args.files {
        if replay_file(file, io)? > 0 {
            exit = Exit::No;
        }
    }
    Ok(exit)
}

/// Serves the steps of a recording to the browser, until interrupted.
fn show(args: &ReplayArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let [file] = &args.files[..] else {
        let failure = Failure::new(Exit::Usage, "--console shows one recording");
        return Err(failure.hint("name one file"));
    };
    let name = one_line(&file.display().to_string());
    let page = page(&name, open(file, &name, io.stdin)?)?;
    let unserved = |error: io::Error| Failure::new(Exit::No, format!("no local port: {error}"));
    server::block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.map_err(unserved)?;
        let address = listener.local_addr().map_err(unserved)?;
        let stop = sandbox::on_signal()?;
        console::open(address, args.no_browser, ", until Ctrl-C", io)?;
        let router = decree_server::recording_page(&page);
        let served = service::admin::serve(listener, router, CONNECTIONS_MAX);
        stop.run_until_cancelled(served).await;
        Ok(Exit::Done)
    })
}

/// The steps of a recording as JSON, with sentences about it.
fn page(name: &str, replay: Replay<impl Read>) -> Result<String, Failure> {
    let mut replay = replay.keep_inputs();
    let steps = steps::read(&mut replay).map_err(|error| unreadable(name, &error))?;
    let (identity, version) = (replay.identity(), replay.server_version());
    let (cluster, session) = (identity.cluster(), &identity.session_id);
    let summary = replay.summary();
    let mut about = vec![
        format!("{name}: {}", conclusion(&summary, steps.differences)),
        format!("Cluster {cluster}, session {session}, server {version}"),
    ];
    if steps.is_cut {
        let all = "decree replay without --console reads all";
        let first = count(steps.count, "step");
        about.push(format!("These are the first {first}; {all}"));
    } else {
        let notice = notice(&summary.ending);
        about.extend(notice.map(|notice| format!("The recording {notice}")));
    }
    let (about, json) = (Value::from(about), steps.json);
    Ok(format!("{{\"about\":{about},\"steps\":[{json}]}}"))
}

fn open<'a>(
    file: &Path,
    name: &str,
    stdin: &'a mut dyn Read,
) -> Result<Replay<impl Read + 'a>, Failure> {
    let bytes = input::open(file, stdin).map_err(|error| unreadable(name, &error.into()))?;
    Replay::open(BufReader::new(bytes)).map_err(|error| unreadable(name, &error))
}

fn unreadable(name: &str, error: &ReadError) -> Failure {
    Failure::new(Exit::Usage, format!("{name}: {error}"))
        .hint("name files that decree-server --record has written")
}

/// Replays a file, and returns the number of differences.
fn replay_file(file: &Path, io: &mut Io<'_>) -> Result<u64, Failure> {
    let name = one_line(&file.display().to_string());
    let unreadable = |error: ReadError| unreadable(&name, &error);
    let mut replay = open(file, &name, io.stdin)?;
    let mut differences = 0;
    while let Some(difference) = replay.next_difference().map_err(unreadable)? {
        differences += 1;
        write(&difference, io.stdout)?;
    }
    let (identity, version) = (replay.identity(), replay.server_version());
    let summary = replay.summary();
    if let Some(notice) = notice(&summary.ending) {
        writeln!(io.stderr, "notice: {name}: {notice}")?;
    }
    writeln!(io.stdout, "{name}: {}", conclusion(&summary, differences))?;
    let (cluster, session) = (identity.cluster(), &identity.session_id);
    let about = format!("cluster {cluster}, session {session}, server {version}");
    writeln!(io.stdout, "  {}", one_line(&about))?;
    Ok(differences)
}

fn conclusion(summary: &Summary, differences: u64) -> String {
    let it = &summary.decisions;
    let of = format!(
        "{}: create {}, delete {}, adopt {}, release {}, status {}; {} in, {} out",
        count(it.batches, "decision"),
        it.creates,
        it.deletes,
        it.adopts,
        it.releases,
        it.status_writes,
        count(summary.frames_in, "frame"),
        summary.frames_out,
    );
    match differences {
        0 => format!("all agree ({of})"),
        1 => format!("1 difference ({of})"),
        _ => format!("{differences} differences ({of}); later ones may follow from the first"),
    }
}

/// The notice for a recording that ends before its session.
fn notice(ending: &Ending) -> Option<String> {
    let before = |why| Some(format!("ends before its session: {why}"));
    match ending {
        Ending::Marked(EndReason::Session) => None,
        Ending::Marked(EndReason::Full) => before("it had used up its share of --record-bytes-max"),
        Ending::Marked(EndReason::Behind) => before("the disk was too slow for it"),
        Ending::Marked(EndReason::Failed | EndReason::Unspecified) => {
            before("it could not be written")
        }
        Ending::Unmarked => Some("has no end: the server was killed, or still records".into()),
        Ending::Torn(at) => Some(format!(
            "is torn in the record at byte {at}; all before it was replayed"
        )),
    }
}

fn write(difference: &Difference, out: &mut dyn Write) -> io::Result<()> {
    let (Difference::Frame { now, .. } | Difference::End { now, .. }) = difference;
    for pair in entry::of(difference) {
        writeln!(
            out,
            "{}  {}",
            age::core_text(now.wall),
            one_line(&pair.subject)
        )?;
        writeln!(out, "  recorded  {}", one_line(&pair.recorded))?;
        writeln!(out, "  decided   {}", one_line(&pair.decided))?;
    }
    Ok(())
}
