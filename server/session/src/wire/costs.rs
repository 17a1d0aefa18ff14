//! Questions for the deletion costs of pods, and the preference of a ReplicaSet that they are asked.

use decree_api::v1;
use decree_core::{CostsWanted, ScaleInCost};

use super::{
    batch::{key_ref, pod_refs},
    field,
};

/// The number of bytes of a source of costs that are read.
const SOURCE_MAX: usize = 256;

pub(super) fn preference(preference: &v1::ScaleInCost) -> ScaleInCost {
    let source = &preference.source;
    ScaleInCost {
        source: source[..source.floor_char_boundary(SOURCE_MAX)].into(),
        waits: preference.on_silence() == v1::OnSilence::Wait,
    }
}

pub(super) fn preference_out(preference: ScaleInCost) -> v1::ScaleInCost {
    let on_silence = if preference.waits {
        v1::OnSilence::Wait
    } else {
        v1::OnSilence::Proceed
    };
    v1::ScaleInCost {
        source: preference.source.into(),
        on_silence: on_silence.into(),
    }
}

/// Writes a question for the costs of pods.
pub(crate) fn question(question: CostsWanted) -> v1::CostsWanted {
    let CostsWanted {
        id,
        key,
        pods,
        timeout,
    } = question;
    v1::CostsWanted {
        id,
        replica_set: Some(key_ref(&key)),
        pods: pod_refs(&key.namespace, &pods),
        timeout: Some(field::duration(timeout)),
    }
}
