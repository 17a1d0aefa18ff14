//! `decree check`: whether Decree can work here, a line for each thing that must be so.
//!
//! What cannot be asked is a finding as well, so one thing that is wrong keeps no other from being looked at.

use std::io;

use serde_json::json;

use crate::{
    Io,
    args::{CheckArgs, Output},
    exit::{Exit, Failure},
    server as connection,
    table::Table,
};

mod cluster;
mod server;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    Ok,
    Warn,
    Fail,
}

/// One line of the answer.
#[derive(Debug)]
struct Finding {
    grade: Grade,
    check: String,
    detail: String,
    hint: String,
}

pub(crate) fn run(args: &CheckArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let findings = connection::block_on(async {
        let (mut findings, sessions) = server::check(args).await;
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

// === impl Grade ===

impl Grade {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warn => "WARN",
            Self::Fail => "FAIL",
        }
    }
}

// === impl Finding ===

impl Finding {
    fn ok(check: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            grade: Grade::Ok,
            check: check.into(),
            detail: detail.into(),
            hint: String::new(),
        }
    }

    fn warn(check: impl Into<String>, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            grade: Grade::Warn,
            hint: hint.into(),
            ..Self::ok(check, detail)
        }
    }

    fn fail(check: impl Into<String>, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            grade: Grade::Fail,
            ..Self::warn(check, detail, hint)
        }
    }
}
