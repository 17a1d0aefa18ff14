//! Tier: the whole journey of a cluster with Decree, on a real control plane whose nodes run Decree's pods.
//!
//! etcd, kube-apiserver with its audit log, kube-controller-manager and kube-scheduler are those of Kubernetes. [`kubelet`] is a
//! substitute for the nodes, so that the manifests run and are not only applied. A [`installation::Installation`] is one way to install Decree.
//! Each installation has the same steps ([`journey`]). After each step, the audit log must have exactly the expected numbers of created
//! and deleted pods.
//!
//! The tier needs root and name spaces of Linux. Without them, the tests are skipped with a notice, also in CI.

mod cluster;
mod console;
mod documents;
mod installation;
mod journey;
mod kubelet;
mod ledger;
mod statics;
mod workload;

use tests::depth;
use tokio::sync::Semaphore;

use self::{
    installation::Installation,
    journey::{Journey, Pace},
};

/// Makes a test of each journey.
macro_rules! journeys {
    ($(fn $journey:ident() at $pace:ident on $installation:ident;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $journey() {
                goes(Pace::$pace, Installation::$installation).await;
            }
        )*
    };
}

journeys! {
    fn all_in_one_is_installed_switched_to_broken_and_left_without_a_pod_lost() at Brisk on AllInOne;
    fn all_in_one_goes_the_whole_journey() at Thorough on AllInOne;
    fn any_node_goes_the_whole_journey() at Thorough on AnyNode;
    fn high_availability_goes_the_whole_journey() at Thorough on HighAvailability;
    fn high_availability_tokens_goes_the_whole_journey() at Thorough on Tokens;
    fn sharded_goes_the_whole_journey() at Thorough on Sharded;
    fn static_pods_go_the_whole_journey() at Thorough on StaticPods;
    fn chart_goes_the_whole_journey_from_shadow_mode_on() at Thorough on Chart;
}

/// Runs a whole journey, if this machine can.
async fn goes(pace: Pace, installation: Installation) {
    let more = format!("the journey of {installation:?} is made");
    if pace == Pace::Thorough && !depth::is_full_or_told(&more) {
        return;
    }
    // Each journey is a cluster with its nodes, and more of them at once are slower in total.
    static PLACES: Semaphore = Semaphore::const_new(4);
    let _place = PLACES.acquire().await.expect("it is never closed");
    let mut journey = tests::or_skip!(Journey::begin(pace, installation).await);
    journey.installs().await;
    journey.switches().await;
    journey.opens_the_console();
    journey.rolls_out_and_scales().await;
    journey.meets_a_quota().await;
    journey.loses_all_pods().await;
    journey.loses_nodes().await;
    journey.loses_the_control_plane().await;
    journey.rolls_out_a_bad_image().await;
    journey.goes_to_the_last_release_and_back().await;
    journey.goes_back().await;
    journey.uninstalls().await;
}
