//! Screens of several sizes, as text.

use expect_test::expect;
use ratatui::{Terminal, backend::TestBackend};

use super::*;

/// Returns the cluster of the story while the server is asked which pods would go.
fn forecast() -> Picture {
    let pod = |name: &str, state| Pod {
        name: format!("web-old-{name}"),
        state,
    };
    let node = |name: &str, pods: Vec<Pod>| Node {
        name: name.to_owned(),
        answers: true,
        pods,
    };
    let ready = PodState::Ready;
    let victims = [
        ("2xk7d", "NOT_READY"),
        ("8bwzc", "CROWDED_NODE"),
        ("4lmtp", "READY_RECENTLY"),
    ];
    Picture {
        title: "step 1: scale down".to_owned(),
        standings: vec![standing("default/web-new", 0), standing("default/web-old", 6)],
        nodes: vec![
            node(
                "node-a",
                vec![
                    pod("2xk7d", PodState::NotReady),
                    pod("5vqrn", ready),
                    pod("8bwzc", ready),
                ],
            ),
            node("node-b", vec![pod("4lmtp", ready), pod("7ghjx", ready)]),
            node("node-c", vec![pod("6dfkq", PodState::Terminating)]),
        ],
        victims: victims
            .map(|(name, rule)| (format!("web-old-{name}"), rule.to_owned()))
            .into(),
        text: vec![
            "ReplicaSet web-old has 7 pods. Which would go if it were scaled to 2?".to_owned(),
            "  delete web-old-8bwzc  CROWDED_NODE    3 pods of this owner on node-a before 2 pods of this owner on node-b".to_owned(),
        ],
        utf8: true,
    }
}

fn standing(path: &str, count: i64) -> Standing {
    Standing {
        path: path.to_owned(),
        wanted: count,
        there: count,
        ready: count,
        going: 0,
        told: true,
        failure: None,
    }
}

/// Returns the text of a picture on a screen of so many columns and lines.
fn drawn(picture: &Picture, columns: u16, lines: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).expect("it has no limits");
    let draw = |frame: &mut Frame<'_>| picture.draw(Playback::default(), frame);
    terminal.draw(draw).expect("it has no limits");
    let cells = terminal.backend().buffer().content();
    let rows = cells.chunks(usize::from(columns));
    let text = rows.map(|row| {
        let row: String = row.iter().map(|cell| cell.symbol()).collect();
        row.trim_end().to_owned() + "\n"
    });
    text.collect()
}

#[test]
fn screen_of_80_columns_shows_pods_on_nodes_and_why_they_go() {
    expect![[r#"
         Decree: step 1: scale down                                             speed 1
         ReplicaSets ───────────────────────────────────────────────────────────────────
         default/web-new  0 wanted  0 there  0 ready  0 going
         default/web-old  6 wanted  6 there  6 ready  0 going
         Nodes  ✗ chosen to go  ● ready  ○ not ready  ◌ pending  − terminating ─────────
         node-a                    node-b                    node-c
         ✗ 2xk7d NOT_READY         ✗ 4lmtp READY_RECENTLY    − web-old-6dfkq
         ● web-old-5vqrn           ● web-old-7ghjx
         ✗ 8bwzc CROWDED_NODE
         What happens ──────────────────────────────────────────────────────────────────
        ReplicaSet web-old has 7 pods. Which would go if it were scaled to 2?
          delete web-old-8bwzc  CROWDED_NODE    3 pods of this owner on node-a before 2
              pods of this owner on node-b




        space pause · → next · ↑↓ speed · q quit
    "#]]
    .assert_eq(&drawn(&forecast(), 80, 18));
}

#[test]
fn screen_of_40_columns_shows_the_same_in_rows() {
    expect![[r#"
         Decree: step 1: scale down     speed 1
         ReplicaSets ───────────────────────────
         default/web-new  0 of 0 ready
         default/web-old  6 of 6 ready
         Nodes ─────────────────────────────────
         node-a ✗2xk7d ●5vqrn ✗8bwzc
         node-b ✗4lmtp ●7ghjx
         node-c −6dfkq
         What happens ──────────────────────────
        ReplicaSet web-old has 7 pods. Which
            would go if it were scaled to 2?
          delete web-old-8bwzc  CROWDED_NODE
              3 pods of this owner on node-a
              before 2 pods of this owner on
              node-b


        space pause · → next · ↑↓ speed · q quit
    "#]]
    .assert_eq(&drawn(&forecast(), 40, 18));
}

#[test]
fn refusal_stands_with_its_replica_set_in_the_words_of_the_cluster() {
    let mut picture = forecast();
    let words = "pods \"web-new-x\" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=8, limited: pods=8";
    picture.standings[0].failure = Some(words.to_owned());
    let text = drawn(&picture, 80, 24);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!("refused: {words}")), "{text}");
}

#[test]
fn terminal_without_utf8_gets_ascii() {
    let mut picture = forecast();
    picture.utf8 = false;
    let text = drawn(&picture, 80, 24);
    let letters: String = text
        .chars()
        .filter(|it| !it.is_ascii() && *it != '─')
        .collect();
    assert_eq!(letters, "", "{text}");
    assert!(text.contains("X 8bwzc CROWDED_NODE"), "{text}");
}

#[test]
fn no_size_is_too_small() {
    for (columns, lines) in [
        (1, 1),
        (1, 40),
        (40, 1),
        (13, 5),
        (20, 10),
        (59, 24),
        (500, 3),
    ] {
        drawn(&forecast(), columns, lines);
    }
}

#[test]
fn node_that_does_not_answer_says_so() {
    let mut picture = forecast();
    picture.nodes[1].answers = false;
    picture.nodes[1].pods[0].state = PodState::Unknown;
    let text = drawn(&picture, 80, 24);
    assert!(text.contains("node-b (does not answer)"), "{text}");
}
