//! Values of later versions.

use decree::v1::{Pod, ReconcileResponse, outcome::Outcome, reconcile_response::Frame as Answer};
use prost::Message as _;
use tokio_stream::StreamExt as _;
use tonic::{Request, client::Grpc, codegen::http::uri::PathAndQuery};
use tonic_prost::ProstCodec;

use super::{
    case::cases,
    link::Server,
    objects::{failed, not_started, pod, settled, web},
    verdict::{Verdict, holds, wrong},
};

cases! {
    "frames" {
        "fields of a later version are ignored" => later_fields,
    }
    "compatibility" {
        "an unknown class of failure is taken as one that may pass" => failure_class,
        "an operation that was not started for an unknown cause is decided again" => cause,
        "a pod of an unknown phase counts as active" => phase,
    }
}

/// A value that no version defines.
const UNKNOWN: i32 = 77;

/// A frame of a later version. Its Hello is encoded, which makes no difference on the wire.
#[derive(Clone, PartialEq, prost::Message)]
struct LaterFrame {
    #[prost(uint64, tag = "1")]
    sequence: u64,
    #[prost(bytes = "vec", tag = "2")]
    hello: Vec<u8>,
    #[prost(string, tag = "1000")]
    later: String,
}

async fn later_fields(server: Server) -> Verdict {
    let later = LaterFrame {
        later: "unknown".to_owned(),
        ..LaterFrame::default()
    };
    let frame = LaterFrame {
        sequence: 1,
        hello: [server.hello().encode_to_vec(), later.encode_to_vec()].concat(),
        ..later
    };
    let mut client = Grpc::new(server.channel.clone());
    let ready = client.ready().await;
    ready.map_err(|error| wrong("a connection", &error))?;
    let frames = tokio_stream::once(frame).chain(tokio_stream::pending());
    let path = PathAndQuery::from_static("/decree.v1.DecisionService/Reconcile");
    let codec = ProstCodec::<LaterFrame, ReconcileResponse>::default();
    let answers = client.streaming(Request::new(frames), path, codec).await;
    let mut answers = answers
        .map_err(|status| wrong("a stream", &status))?
        .into_inner();
    let answer = answers.message().await;
    let answer = answer.map_err(|status| wrong("a Welcome", &status))?;
    let answer = answer.and_then(|answer| answer.frame);
    let is_right = matches!(answer, Some(Answer::Welcome(_)));
    holds(is_right, "a Welcome", &answer)
}

async fn failure_class(server: Server) -> Verdict {
    let (names, again) = after(&server, failed(UNKNOWN)).await?;
    holds(again == names, "the same name", &again)
}

async fn cause(server: Server) -> Verdict {
    after(&server, not_started(UNKNOWN)).await.map(drop)
}

/// Reports this outcome of a create. Returns the names of the create and of the next one.
async fn after(server: &Server, outcome: Outcome) -> Result<(Vec<String>, Vec<String>), String> {
    let (mut link, batch, names) = server.creates(web(1)).await?;
    link.report(batch.id, 0, outcome).await;
    Ok((names, link.creates_after_statuses().await?))
}

async fn phase(server: Server) -> Verdict {
    let pod = Pod {
        phase: UNKNOWN,
        ..pod("a")
    };
    let mut link = server.open_with(settled(1), [pod]).await?;
    link.expect_nothing().await
}
