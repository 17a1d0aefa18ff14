//! The detector is tried: code that must be found, and code that must not.

use super::{code::Source, reader};

/// Returns what is found in files of tests, with the lines.
fn found_in(files: &[(&str, &str)]) -> Vec<(usize, String)> {
    let sources = files.iter().filter_map(|(path, text)| {
        let text = (*text).to_owned();
        Source::read((*path).to_owned(), text)
    });
    let sources: Vec<_> = sources.collect();
    let found = reader::find(&sources).into_iter();
    found.map(|it| (it.line, it.what)).collect()
}

/// Returns what is found in the body of a function, without the lines.
fn found_in_body(body: &str) -> Vec<String> {
    let text = format!("async fn tried() {{ {body} }}");
    let found = found_in(&[("tests/kube/tried.rs", &text)]).into_iter();
    found.map(|(_, what)| what).collect()
}

fn assert_found(body: &str, what: &str) {
    assert_eq!(found_in_body(body), [what], "{body}");
}

fn assert_passed(body: &str) {
    assert_eq!(found_in_body(body), Vec::<String>::new(), "{body}");
}

const START: &str = "let start = Instant::now();";

/// Code in which less than so long must have passed since the start.
const BELOW_LIMIT: [&str; 13] = [
    "assert!(took < LIMIT, \"{took:?}\");",
    "assert!(took <= LIMIT);",
    "assert!(LIMIT > took);",
    "assert!(!(took > LIMIT));",
    "if took > LIMIT { panic!(\"slow\"); }",
    "if took > LIMIT { return Err(took); }",
    "while took < LIMIT { if look() { return; } }",
    "while !is_so() && took < LIMIT {}",
    "tokio::select! { () = other => { assert!(took < LIMIT); } }",
    "let (answer, took) = (ask(), took); assert!(took < LIMIT);",
    "let work = async { ask().await; took }; let ((), took) = tokio::join!(other, work); assert!(took < LIMIT);",
    "let mut all = Vec::new(); all.push(took); assert!(all.iter().all(|took| *took < LIMIT));",
    "let took = Duration::from_secs(1) + took; assert!(took < LIMIT);",
];

#[test]
fn upper_bounds_of_what_was_measured_are_found() {
    for body in BELOW_LIMIT {
        for measured in [
            "start.elapsed()",
            "Instant::now() - start",
            "Instant::now().duration_since(start)",
        ] {
            let body = format!("{START} let took = {measured}; {body}");
            assert_found(&body, "took < LIMIT");
        }
    }
    for (body, what) in [
        (
            "assert!(start.elapsed() < Duration::from_secs(3));",
            "elapsed < from_secs",
        ),
        (
            "assert!(start.elapsed().as_millis() + 1 < 900);",
            "as_millis < 900",
        ),
        (
            "assert!(u8::try_from(start.elapsed().as_secs()).unwrap() < 5);",
            "unwrap < 5",
        ),
        (
            "assert!((LEAST..LIMIT).contains(&start.elapsed()));",
            "contains(elapsed)",
        ),
        (
            "assert!(matches!(start.elapsed(), LEAST..LIMIT));",
            "matches!(elapsed)",
        ),
        ("assert_eq!(start.elapsed().as_secs(), 2);", "as_secs == 2"),
    ] {
        assert_found(&format!("{START} {body}"), what);
    }
}

#[test]
fn lower_bounds_and_minutes_are_passed() {
    for body in [
        "let took = start.elapsed(); assert!(took >= LEASE, \"{took:?}\");",
        "assert!(Duration::from_secs(1) < start.elapsed());",
        "assert!(start.elapsed() < Duration::from_mins(2));",
        "let limit = Duration::from_secs(40) * 2; assert!(start.elapsed() < limit);",
        "let most = 2 + start.elapsed().as_secs(); assert!(requests <= most);",
        "println!(\"{:?}\", start.elapsed());",
        "let took = start.elapsed(); let took = virtual_time(); assert!(took < LIMIT);",
        "if start.elapsed() > EVERY { look(); }",
        "while start.elapsed() < LIMIT { ask(); }",
    ] {
        assert_passed(&format!("{START} {body}"));
    }
    assert_passed("let took = world.now().duration_since(begun); assert!(took < LIMIT);");
}

#[test]
fn deadlines_are_found_where_they_are_met() {
    let until = "let until = Instant::now() + Duration::from_secs(5);";
    for (body, what) in [
        ("assert!(Instant::now() < until);", "now < until"),
        (
            "let late = Instant::now() >= until; assert!(!late);",
            "!late",
        ),
        (
            "if Instant::now() >= until { panic!(\"late\"); }",
            "now < until",
        ),
        (
            "let left = until.saturating_duration_since(Instant::now());",
            "until - now",
        ),
        ("let left = until - Instant::now();", "until - now"),
    ] {
        assert_found(&format!("{until} {body}"), what);
        assert_passed(&format!("{} {body}", until.replace("secs", "mins")));
    }
    assert_passed(&format!("{until} assert!(Instant::now() >= until);"));
    assert_passed(&format!("{until} sleep_until(until).await;"));
}

#[test]
fn attempts_are_found_where_they_must_come_to_their_end() {
    let timeout = "tokio::time::timeout(Duration::from_secs(9), it).await";
    for body in [
        "timeout.expect(\"it comes\");",
        "timeout?;",
        "let it = timeout; it.expect(\"it comes\");",
        "let in_time = timeout.is_ok(); assert!(in_time);",
        "if let Ok(it) = timeout { note(it); }",
        "let Ok(it) = timeout else { return };",
        "match timeout { Ok(it) => note(it), Err(_) => failed() }",
        "if timeout.is_err() { return; }",
        "assert!(!timeout.is_err());",
    ] {
        assert_found(&body.replace("timeout", timeout), "timeout(from_secs)");
        let minutes = timeout.replace("secs", "mins");
        assert_passed(&body.replace("timeout", &minutes));
    }
    for body in [
        "assert!(timeout.is_err(), \"it came\");",
        "let none = timeout; assert!(none.is_err(), \"{none:?}\", none);",
        "let quiet = timeout.is_err(); assert!(quiet);",
        "assert!(matches!(timeout, Err(_)));",
        "timeout.expect_err(\"nothing comes\");",
        "timeout;",
        "let _ = timeout;",
        "drop(timeout);",
        "let _ = runtime.block_on(async { timeout });",
        "while timeout.is_err() { look(); }",
        "while timeout == Err(Elapsed) { look(); }",
    ] {
        assert_passed(&body.replace("timeout", timeout));
    }
    let received = "queue.recv_timeout(Duration::from_secs(9)).expect(\"it comes\");";
    assert_found(received, "recv_timeout(from_secs)");
    assert_passed("let _: Result<(), _> = queue.recv_timeout(Duration::from_secs(9));");
}

#[test]
fn short_validity_is_found() {
    let now = "let now = SystemTime::now();";
    let pair = format!("{now} let pair = agent().valid(now - HOUR, now + Duration::from_secs(2));");
    assert_found(&pair, "valid(now)");
    assert_passed(&pair.replace("secs", "mins"));
    assert_passed(&pair.replace("now +", "now -"));
    assert_found("sign(&Issuer::claims(\"agent-a\", 6));", "claims(6)");
    assert_passed("sign(&Issuer::claims(\"agent-a\", 600));");
    assert_passed("sign(&Issuer::claims(\"agent-a\", -1));");
}

#[test]
fn constants_parameters_results_and_fields_are_followed() {
    let harness = "pub const PATIENCE: Duration = Duration::from_mins(3);";
    let short = "const PATIENCE: Duration = SECOND.saturating_add(SECOND);\nconst SECOND: Duration = Duration::from_secs(1);\n";
    let waits = "async fn waits() {\n    timeout(PATIENCE, it).await.expect(\"it comes\");\n}\n";
    let imports = format!("use tests::real::{{LOOK_EVERY, PATIENCE}};\n{waits}");
    let files = [("tests/src/real.rs", harness), ("tests/kube/own.rs", short)];
    assert_eq!(
        found_in(&[files[0], ("tests/kube/a.rs", &imports), files[1]]),
        []
    );
    assert_eq!(
        found_in(&[files[0], ("tests/grpc/a.rs", waits), files[1]]),
        []
    );
    let own = format!("{short}{waits}");
    let what = (4, "timeout(PATIENCE)".to_owned());
    assert_eq!(found_in(&[files[0], ("tests/kube/a.rs", &own)]), [what]);

    let soon = "pub async fn soon(what: &str, limit: Duration) { within(limit * 2, it).await }
        async fn within(limit: Duration, it: It) { timeout(limit, it).await.expect(\"it comes\"); }";
    let other = "fn calls() { Agent::soon(\"a\", SECOND); agent.soon(\"a\", SECOND); within(\"a\", SECOND); }
        const SECOND: Duration = Duration::from_secs(1);";
    assert_eq!(
        found_in(&[("tests/src/soon.rs", soon), ("tests/kube/a.rs", other)]),
        []
    );
    let quiet =
        "async fn soon(limit: Duration) { timeout(limit, it).await.expect_err(\"nothing comes\"); }
        async fn tried() { soon(Duration::from_secs(1)).await; }";
    assert_eq!(found_in(&[("tests/kube/a.rs", quiet)]), []);
    let calls = "fn calls() {\n    soon(\"a\", Duration::from_secs(2));\n    soon(\"b\", Duration::from_mins(2));\n}";
    let what = (2, "soon(from_secs)".to_owned());
    assert_eq!(
        found_in(&[("tests/src/soon.rs", soon), ("tests/kube/a.rs", calls)]),
        [what]
    );

    let stops = "impl Process { fn stop(&self) -> Result<Duration, Error> { let start = Instant::now(); Ok(start.elapsed()) }
        fn ends(&self) { assert!(self.stop().unwrap() < LIMIT); }
        fn begins(&self) { self.found.took = elapsed(&self.start); self.found.stop = self.start.elapsed(); }
        fn bound(&self) { assert!(self.found.stop < LIMIT); assert!(self.found.size < LIMIT); } }";
    let what = ["unwrap < LIMIT", "stop < LIMIT"].map(str::to_owned);
    assert_eq!(
        found_in(&[("tests/kube/a.rs", stops)]),
        [(2, what[0].clone()), (4, what[1].clone())]
    );
}

#[test]
fn virtual_time_and_other_code_are_passed() {
    let body =
        "let start = Instant::now();\n    assert!(start.elapsed() < Duration::from_secs(3));";
    let test = format!("#[tokio::test]\nasync fn tried() {{\n    {body}\n}}\n");
    for path in [
        "agent/src/shell/tests.rs",
        "agent/src/tests/shell.rs",
        "server/shadow/tests/stories/main.rs",
    ] {
        let line = (4, "elapsed < from_secs".to_owned());
        assert_eq!(found_in(&[(path, &test)]), [line], "{path}");
    }
    let unit = format!("fn tried() {{ {body} }}\n#[cfg(test)]\nmod tests {{\n{test}}}");
    let line = (8, "elapsed < from_secs".to_owned());
    assert_eq!(found_in(&[("agent/src/shell.rs", &unit)]), [line]);
    for passed in [
        test.replace("tokio::test", "tokio::test(start_paused = true)"),
        test.replace("let start", "tokio::time::pause(); let start"),
        test.replace(
            "let start",
            "let runtime = builder().start_paused(true); let start",
        ),
    ] {
        assert_eq!(
            found_in(&[("agent/src/shell/tests.rs", &passed)]),
            [],
            "{passed}"
        );
    }
    assert_eq!(found_in(&[("agent/src/shell.rs", &test)]), []);
    assert_eq!(found_in(&[("benches/core.rs", &test)]), []);
}
