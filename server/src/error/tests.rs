//! Refusals are small even if a peer sent large texts.

use tonic::metadata::MetadataMap;

use super::*;

/// The part of the 8 KiB that the library and the client use themselves.
const OTHERS: usize = 1 << 10;

/// A text of 4 MB, each character of which takes the maximum size in a header.
fn huge() -> String {
    "é".repeat(2_000_000)
}

fn header_bytes(refusal: Refusal) -> usize {
    let mut headers = MetadataMap::new().into_headers();
    Status::from(refusal)
        .add_header(&mut headers)
        .expect("a status can be written");
    headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum()
}

#[test]
fn every_refusal_fits_the_headers_that_clients_take() {
    let violation = || Violation::new(huge(), Fault::LabelValue, huge());
    let refusals = [
        Refusal::Malformed { detail: huge() },
        Refusal::invalid(vec![violation(), violation(), violation()]),
        Refusal::invalid(vec![Violation::new("f", Fault::Required, "g"); 100_000]),
        Refusal::Session(SessionRefusal::CapabilityUnsupported {
            first: vec!["c".repeat(80); 16],
            more: usize::MAX,
        }),
        Refusal::ClusterUnknown(huge()),
        Refusal::SessionUnknown(huge()),
        Refusal::Denied(Denial::NotAllowed {
            identity: huge(),
            what: huge(),
        }),
        Refusal::ReplicaSetUnknown {
            namespace: huge(),
            name: huge(),
        },
        Refusal::Transport {
            code: Code::Unknown,
            message: huge(),
        },
    ];
    for refusal in refusals {
        let reason = refusal.reason();
        let bytes = header_bytes(refusal);
        assert!(bytes + OTHERS <= 8 << 10, "{reason}: {bytes}");
    }
}

#[test]
fn long_text_is_cut_between_characters() {
    assert_eq!(cut("short", 5), "short");
    assert_eq!(cut("longer", 5), "lo…");
    assert_eq!(cut("ééé", 5), "é…");
}
