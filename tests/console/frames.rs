//! The work of the board in a frame while 5,000 ReplicaSets change 500 times a second.

use decree_server::Config;

use crate::{crowd::Crowd, play, stage::Stage};

/// The story scrolls and counts. For any number of ReplicaSets, the document has few rows, few of its parts change in a frame, no
/// visible row is missing, and the changes reach the page. The frame rate depends on the machine: `cargo bench -p tests --bench console` measures it.
#[tokio::test(flavor = "multi_thread")]
async fn board_of_thousands_stays_smooth() {
    let stage = Stage::open(Config::embedded()).await;
    let crowd = Crowd::open(stage.grpc()).await;
    let changes = tokio::spawn(crowd.change());
    play("board_of_thousands_stays_smooth", stage).await;
    changes.abort();
}
