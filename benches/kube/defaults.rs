//! Both with their default limits: 0 → 1,000 pods of one ReplicaSet.

use tests::table::{head, row};

use crate::{
    contender::{Contender, Guest},
    meter, scaling,
};

const PODS: usize = 1_000;

pub(crate) async fn run(guest: Guest) {
    head(
        &format!("0 → {PODS} pods, everyone with its defaults, once"),
        &[
            ["controller", "up s", "relative"].as_slice(),
            &meter::COLUMNS,
        ]
        .concat(),
    );
    let contenders = [Contender::PeerByDefault, Contender::Decree];
    let mut first = None;
    for contender in contenders {
        let mut arena = contender.start(guest).await;
        let seconds = scaling::up(&arena, 1, PODS).await.seconds;
        let relative = seconds / *first.get_or_insert(seconds);
        let mut cells = vec![contender.name().to_owned(), format!("{seconds:.2}")];
        cells.push(format!("{relative:.3}"));
        cells.extend(meter::cells(&[arena.lap()]));
        row(&cells);
    }
}
