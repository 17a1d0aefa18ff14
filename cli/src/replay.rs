//! `decree replay`: decides recordings again.

use std::{
    io::{self, BufReader, Read, Write},
    net::Ipv4Addr,
    path::Path,
};

use decree::json::Json;
use serde_json::{Value, json};
use server_core::wording::count;
use server_session::recording::{Difference, EndReason, Ending, Input, ReadError, Replay, Summary};
use tokio::net::TcpListener;

use crate::{
    age,
    args::{Output, ReplayArgs},
    console,
    exit::{Exit, Failure},
    format::write_json,
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
    let json = match args.output {
        Output::Table => None,
        Output::Json => Some(Json::default()),
    };
    let mut exit = Exit::Done;
    for file in &args.files {
        if replay_file(file, args.explain, json.as_ref(), io)? > 0 {
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

/// Replays a file, as text without `json`, and returns the number of differences.
fn replay_file(
    file: &Path,
    explain: bool,
    json: Option<&Json>,
    io: &mut Io<'_>,
) -> Result<u64, Failure> {
    let name = one_line(&file.display().to_string());
    let unreadable = |error: ReadError| unreadable(&name, &error);
    let mut replay = open(file, &name, io.stdin)?;
    if explain {
        replay = replay.keep_inputs();
    }
    let mut differences = 0;
    while let Some(difference) = replay.next_difference().map_err(unreadable)? {
        differences += 1;
        match json {
            None => write_text(&difference, explain, io.stdout)?,
            Some(json) => {
                let difference = difference_json(json, &name, &difference)?;
                write_json(&difference, io.stdout)?;
            }
        }
    }
    let (identity, version) = (replay.identity(), replay.server_version());
    let summary = replay.summary();
    if let Some(notice) = notice(&summary.ending) {
        writeln!(io.stderr, "notice: {name}: {notice}")?;
    }
    match json {
        None => {
            writeln!(io.stdout, "{name}: {}", conclusion(&summary, differences))?;
            let (cluster, session) = (identity.cluster(), &identity.session_id);
            let about = format!("cluster {cluster}, session {session}, server {version}");
            writeln!(io.stdout, "  {}", one_line(&about))?;
        }
        Some(_) => {
            let summary = summary_json(&name, identity, version, differences, &summary);
            write_json(&summary, io.stdout)?;
        }
    }
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

fn write_text(difference: &Difference, explain: bool, out: &mut dyn Write) -> io::Result<()> {
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
    match difference {
        Difference::Frame { after, .. } if explain => entry::write(*now, after, out),
        Difference::Frame { .. } | Difference::End { .. } => Ok(()),
    }
}

fn difference_json(json: &Json, file: &str, difference: &Difference) -> Result<Value, Failure> {
    let (now, recorded, decided, after) = match difference {
        Difference::Frame {
            now,
            recorded,
            decided,
            after,
        } => {
            let frame = |frame: &Option<_>| match frame {
                Some(frame) => Ok(json!({"frame": json.value("ReconcileResponse", frame)?})),
                None => Ok::<_, Failure>(Value::Null),
            };
            let after: Result<Vec<_>, Failure> =
                after.iter().map(|it| input_json(json, it)).collect();
            (now, frame(recorded)?, frame(decided)?, after?)
        }
        Difference::End {
            now,
            recorded,
            decided,
        } => (now, end(recorded), end(decided), Vec::new()),
    };
    Ok(json!({"difference": {
        "file": file, "time": age::core_text(now.wall), "recorded": recorded, "decided": decided, "after": after,
    }}))
}

fn input_json(json: &Json, input: &Input) -> Result<Value, Failure> {
    let (now, word, frame) = match input {
        Input::Frame(now, frame) => (now, "FRAME", Some(frame)),
        Input::Timeout(now) => (now, "TIMEOUT", None),
        Input::Drain(now) => (now, "DRAIN", None),
        Input::Closed(now) => (now, "CLOSED", None),
    };
    let frame = frame.map(|frame| json.value("ReconcileRequest", frame));
    let frame = frame.transpose()?;
    Ok(json!({"time": age::core_text(now.wall), "input": word, "frame": frame}))
}

fn summary_json(
    file: &str,
    identity: &server_session::SessionIdentity,
    server_version: &str,
    differences: u64,
    summary: &Summary,
) -> Value {
    let it = &summary.decisions;
    let (ending, torn_at) = ending_word(&summary.ending);
    json!({"summary": {
        "file": file,
        "cluster": identity.cluster(),
        "session": identity.session_id,
        "serverVersion": server_version,
        "differences": differences,
        "decisions": {
            "batches": it.batches, "creates": it.creates, "deletes": it.deletes, "adopts": it.adopts,
            "releases": it.releases, "statusWrites": it.status_writes,
        },
        "framesIn": summary.frames_in,
        "framesOut": summary.frames_out,
        "ending": ending,
        "tornAt": torn_at,
    }})
}

/// How a recording ends, and the offset at which it is torn.
fn ending_word(ending: &Ending) -> (&'static str, Option<u64>) {
    match ending {
        Ending::Marked(EndReason::Session) => ("SESSION", None),
        Ending::Marked(EndReason::Full) => ("FULL", None),
        Ending::Marked(EndReason::Behind) => ("BEHIND", None),
        Ending::Marked(EndReason::Failed | EndReason::Unspecified) => ("FAILED", None),
        Ending::Unmarked => ("UNMARKED", None),
        Ending::Torn(at) => ("TORN", Some(*at)),
    }
}

/// How a session ends; null if it continues.
fn end(end: &str) -> Value {
    match end {
        "" => Value::Null,
        end => json!({"end": end}),
    }
}
