//! Lists and events without end.

use super::{evictions::first_news, *};

const MEBIBYTE: usize = 1024 * 1024;

/// An answer of this many mebibytes without content.
fn long(mebibytes: usize) -> Answer {
    Answer::stream(vec![vec![b'{'; MEBIBYTE]; mebibytes])
}

#[tokio::test]
async fn list_whose_tokens_come_again_is_an_error() {
    let pages = ["t1", "t2", "t1"].map(|token| page(&["a"], "7", token));
    let server = Server::start(pages.into()).await;
    let error = list(&server.cluster).await.expect_err("it ends");
    let expected = "the list does not end: a token comes again";
    assert_eq!((error.to_string().as_str(), error.code), (expected, None));
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn page_that_is_too_long_is_asked_for_with_fewer_objects_and_the_next_with_more() {
    let mut answers = vec![page(&["a"], "7", "t1"), long(65)];
    answers.extend(["t2", "t3", "t4", ""].map(|next| page(&["b"], "7", next)));
    let server = Server::start(answers).await;
    let list = list(&server.cluster).await.expect("it is read");
    assert_eq!(names(&list), ["a", "b", "b", "b", "b"]);
    let lines: Vec<_> = server.asked().into_iter().map(|it| it.line).collect();
    assert_eq!(
        lines,
        [
            "GET /api/v1/pods?limit=500",
            "GET /api/v1/pods?limit=500&continue=t1",
            "GET /api/v1/pods?limit=63&continue=t1",
            "GET /api/v1/pods?limit=126&continue=t2",
            "GET /api/v1/pods?limit=252&continue=t3",
            "GET /api/v1/pods?limit=500&continue=t4",
        ]
    );
}

#[tokio::test]
async fn page_of_one_object_that_is_too_long_is_an_error() {
    let server = Server::start((0..4).map(|_| long(65)).collect()).await;
    let error = list(&server.cluster).await.expect_err("nothing is smaller");
    assert_eq!(error.message, "the answer is longer than 64 MiB");
    let asked = server.asked();
    let last = asked.last().expect("it was asked for");
    assert_eq!(
        (asked.len(), last.line.as_str()),
        (4, "GET /api/v1/pods?limit=1")
    );
}

#[tokio::test]
async fn followed_page_that_is_too_long_is_asked_for_with_fewer_objects_and_the_next_with_more() {
    let list = |next: &str| {
        let metadata = json!({"resourceVersion": "7", "continue": next});
        Answer::json(200, json!({"metadata": metadata, "items": [{}]}))
    };
    let answers = vec![list("t1"), long(65), long(65), list("t2"), list("")];
    let server = Server::start(answers).await;
    let news = first_news(&server).await;
    assert!(
        matches!(&news, Ok(Some(Change::Listed(found))) if found.len() == 3),
        "{news:?}"
    );
    let pages = server.asked().into_iter().map(|it| {
        let page = it.line.split_once("&limit=");
        page.expect("it is limited").1.to_owned()
    });
    let expected = [
        "500&continue=",
        "500&continue=t1",
        "63&continue=t1",
        "8&continue=t1",
        "16&continue=t2",
    ];
    assert_eq!(pages.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn followed_list_whose_tokens_come_again_is_an_error() {
    let pages = ["t1", "t2", "t1"].map(|next| {
        let metadata = json!({"resourceVersion": "7", "continue": next});
        Answer::json(200, json!({"metadata": metadata, "items": [{}]}))
    });
    let server = Server::start(pages.into()).await;
    let (verb, error) = first_news(&server).await.expect_err("it ends");
    let expected = "the list does not end: a token comes again";
    assert_eq!((verb, error.message.as_str()), ("list", expected));
}

#[tokio::test]
async fn followed_object_that_is_too_long_is_an_error() {
    let server = Server::start((0..4).map(|_| long(65)).collect()).await;
    let (verb, error) = first_news(&server).await.expect_err("nothing is smaller");
    let expected = "the answer is longer than 64 MiB";
    assert_eq!((verb, error.message.as_str()), ("list", expected));
}

#[tokio::test]
async fn event_that_is_too_long_asks_for_a_new_list() {
    let server = Server::start(vec![long(17)]).await;
    let events = server.cluster.watch(Kind::Pod, "7".into()).await;
    let chunk = next(&mut events.expect("it opens")).await;
    let chunk = chunk.expect("there is an event");
    let [WatchEvent::Error(error)] = &chunk[..] else {
        panic!("{chunk:?}")
    };
    let expected = "unreadable event: it is longer than 16 MiB";
    assert_eq!((error.message.as_str(), error.code), (expected, Some(410)));
}
