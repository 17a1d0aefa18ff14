//! `decree check`: whether Decree can work here, a line for each thing that must be so.
//!
//! What cannot be asked is a finding as well, so one thing that is wrong keeps no other from being looked at.

use std::io;

use serde_json::json;

use crate::{
    args::{CheckArgs, Output},
    exit::{Exit, Failure},
    server as connection,
    streams::Io,
    table::Table,
};

mod budget;
mod cluster;
mod finding;
mod server;

use finding::{Finding, Grade};

pub(crate) fn run(args: &CheckArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let findings = connection::block_on(async {
        let (mut findings, sessions) = server::check(args).await;
        findings.append(&mut budget::check(args).await);
        findings.append(&mut cluster::check(args, sessions.as_deref()).await);
        Ok(findings)
    })?;
    match args.output {
        Output::Table => write_table(&findings, io)?,
        Output::Json => writeln!(io.stdout, "{}", json(&findings))?,
    }
    let failed = findings.iter().any(|finding| finding.grade == Grade::Fail);
    Ok(if failed { Exit::No } else { Exit::Done })
}

fn write_table(findings: &[Finding], io: &mut Io<'_>) -> io::Result<()> {
    let mut table = Table::new(["RESULT", "CHECK", "DETAIL", "HINT"]);
    for finding in findings {
        let Finding {
            grade,
            check,
            detail,
            hint,
        } = finding;
        let result = grade.as_str().to_owned();
        table.row([result, check.clone(), detail.clone(), hint.clone()]);
    }
    table.write(io.stdout, "")
}

fn json(findings: &[Finding]) -> serde_json::Value {
    let line = |finding: &Finding| {
        let Finding {
            grade,
            check,
            detail,
            hint,
        } = finding;
        json!({"check": check, "result": grade.as_str(), "detail": detail, "hint": hint})
    };
    findings.iter().map(line).collect()
}
