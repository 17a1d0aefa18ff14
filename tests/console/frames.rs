//! How much the board does in a frame while 5,000 ReplicaSets change 500 times a second.

use decree_server::Config;

use crate::{crowd::Crowd, play, stage::Stage};

/// The story scrolls and counts: however many ReplicaSets there are, few rows are in the document and few of its parts change in a frame, no
/// row in sight is missing, and the changes reach the page. How many frames a second that makes is the machine's as well: `cargo bench -p tests --bench console` measures it.
#[tokio::test(flavor = "multi_thread")]
async fn board_of_thousands_stays_smooth() {
    let stage = Stage::open(Config::embedded()).await;
    let crowd = Crowd::open(stage.grpc()).await;
    let changes = tokio::spawn(crowd.change());
    play("board_of_thousands_stays_smooth", stage).await;
    changes.abort();
}
