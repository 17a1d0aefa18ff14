//! `decree replay`: decides recordings again.

use std::{
    io::{self, BufReader, Write},
    path::Path,
};

use decree::json::Json;
use server_core::wording::count;
use server_session::Now;
use server_session::recording::{
    Decisions, Difference, EndReason, Ending, ReadError, Replay, Summary,
};

use crate::{
    age,
    args::{Output, ReplayArgs},
    exit::{Exit, Failure},
    format::write_json,
    input,
    streams::Io,
    table::one_line,
};

mod entry;
mod inputs;
mod json;

pub(crate) fn run(args: &ReplayArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
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

/// Replays a file, as text without `json`, and returns the number of differences.
fn replay_file(
    file: &Path,
    explain: bool,
    json: Option<&Json>,
    io: &mut Io<'_>,
) -> Result<u64, Failure> {
    let name = one_line(&file.display().to_string());
    let unreadable = |error: ReadError| {
        Failure::new(Exit::Usage, format!("{name}: {error}"))
            .hint("name files that decree-server --record has written")
    };
    let bytes = input::open(file, io.stdin).map_err(|error| unreadable(error.into()))?;
    let replay = Replay::open(BufReader::new(bytes)).map_err(unreadable)?;
    let mut replay = if explain {
        replay.keep_inputs()
    } else {
        replay
    };
    let mut differences = 0;
    while let Some(difference) = replay.next_difference().map_err(unreadable)? {
        differences += 1;
        match json {
            None => write_text(&difference, explain, io.stdout)?,
            Some(json) => {
                let difference = json::difference(json, &name, &difference)?;
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
            let summary = json::summary(&name, identity, version, differences, &summary);
            write_json(&summary, io.stdout)?;
        }
    }
    Ok(differences)
}

fn conclusion(summary: &Summary, differences: u64) -> String {
    let Summary {
        frames_in,
        frames_out,
        decisions,
        ..
    } = summary;
    let Decisions {
        batches,
        creates,
        deletes,
        adopts,
        releases,
        status_writes,
    } = decisions;
    let of = format!(
        "{}: create {creates}, delete {deletes}, adopt {adopts}, release {releases}, status {status_writes}; \
         {} in, {frames_out} out",
        count(*batches, "decision"),
        count(*frames_in, "frame"),
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
    match difference {
        Difference::Frame {
            now,
            recorded,
            decided,
            after,
        } => {
            for pair in entry::pairs(recorded.as_ref(), decided.as_ref()) {
                write_pair(*now, &pair, out)?;
            }
            if explain {
                inputs::write(*now, after, out)?;
            }
            Ok(())
        }
        Difference::End {
            now,
            recorded,
            decided,
        } => {
            let word = |end: &str| match end {
                "" => "the session continues".to_owned(),
                end => format!("the session ends: {end}"),
            };
            let pair = entry::Pair {
                subject: "end".to_owned(),
                recorded: word(recorded),
                decided: word(decided),
            };
            write_pair(*now, &pair, out)
        }
    }
}

fn write_pair(now: Now, pair: &entry::Pair, out: &mut dyn Write) -> io::Result<()> {
    let entry::Pair {
        subject,
        recorded,
        decided,
    } = pair;
    writeln!(out, "{}  {}", age::core_text(now.wall), one_line(subject))?;
    writeln!(out, "  recorded  {}", one_line(recorded))?;
    writeln!(out, "  decided   {}", one_line(decided))
}
