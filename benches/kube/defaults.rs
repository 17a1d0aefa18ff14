//! Both with their default limits: 0 → 1,000 pods of one ReplicaSet.

use tests::table::{head, row};

use crate::{
    contender::{Contender, Guest},
    scaling,
};

const PODS: usize = 1_000;

pub(crate) async fn run(guest: Guest) {
    head(
        &format!("0 → {PODS} pods, everyone with its defaults, once"),
        &["controller", "up s", "relative"],
    );
    let contenders = [Contender::PeerByDefault, Contender::Decree];
    let mut times = [0.0; 2];
    for (contender, seconds) in contenders.iter().zip(&mut times) {
        let arena = contender.start(guest).await;
        *seconds = scaling::up(&arena, 1, PODS).await.seconds;
    }
    for (contender, seconds) in contenders.into_iter().zip(times) {
        let relative = format!("{:.3}", seconds / times[0]);
        row(&[
            contender.name().to_owned(),
            format!("{seconds:.2}"),
            relative,
        ]);
    }
}
