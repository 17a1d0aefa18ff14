//! Scenarios of the controller: the spec's checklists 12.1–12.5, as far as they apply to this design, and properties of any scenario.

mod advice;
mod asking;
mod cluster_change;
mod credit;
mod hostile;
mod ledger;
mod memory;
mod objects;
mod older;
mod properties;
mod queueing;
mod resuming;
mod rig;
mod scaling;
mod table;

#[test]
fn scenarios_lead_to_the_expected_batches() {
    for file in [
        "scaling.txt",
        "availability.txt",
        "room.txt",
        "deleting.txt",
        "unseen.txt",
        "queueing.txt",
        "events.txt",
        "snapshots.txt",
        "failures.txt",
        "claiming.txt",
        "older.txt",
        "status.txt",
        "preferences.txt",
        "surge.txt",
        "advice.txt",
        "asking.txt",
    ] {
        table::play(file);
    }
}
