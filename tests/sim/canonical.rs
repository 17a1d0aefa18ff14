//! The canonical workloads come to rest as wanted, whatever dies, breaks or comes late on the way.

use tests::{simulation::check, workloads::Workload};

#[test]
fn create() {
    check(Workload::Create);
}

#[test]
fn up() {
    check(Workload::Up);
}

#[test]
fn down() {
    check(Workload::Down);
}

#[test]
fn up_then_down() {
    check(Workload::UpThenDown);
}

#[test]
fn delete() {
    check(Workload::Delete);
}

#[test]
fn pod_killed() {
    check(Workload::PodKilled);
}

#[test]
fn pod_failed() {
    check(Workload::PodFailed);
}

#[test]
fn node_lost() {
    check(Workload::NodeLost);
}

#[test]
fn relabel_out() {
    check(Workload::RelabelOut);
}

#[test]
fn adopt_orphan() {
    check(Workload::AdoptOrphan);
}

#[test]
fn template_change() {
    check(Workload::TemplateChange);
}

#[test]
fn pod_replaced() {
    check(Workload::PodReplaced);
}

#[test]
fn min_ready_seconds() {
    check(Workload::MinReadySeconds);
}

#[test]
fn overlapping_selectors() {
    check(Workload::OverlappingSelectors);
}
