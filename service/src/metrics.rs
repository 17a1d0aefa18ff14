//! Metrics as a table.

use prometheus_client::registry::{Metric, Registry};

/// Upstream's label of a work queue.
pub const QUEUE: (&str, &str) = ("name", "replicaset");

/// Defines metrics by a table: the field and type of each metric, its name, its help text, which states its meaning and the action to take,
/// and the new metric if it is not the default. Clones share the values. Fields between the braces are not registered.
#[macro_export]
macro_rules! metrics {
    (@new) => { Default::default() };
    (@new $new:expr) => { $new };
    (
        $(#[$attribute:meta])*
        $visible:vis struct $Metrics:ident { $($other:ident: $Other:ty)? }
        $($field:ident: $kind:ty = $name:literal, $help:literal $(, $new:expr)?;)*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug)]
        $visible struct $Metrics {
            $(pub(crate) $field: $kind,)*
            $(pub(crate) $other: $Other,)?
        }

        impl Default for $Metrics {
            fn default() -> Self {
                Self {
                    $($field: $crate::metrics!(@new $($new)?),)*
                    $($other: Default::default(),)?
                }
            }
        }

        impl $Metrics {
            fn register_table(&self, registry: &mut ::prometheus_client::registry::Registry) {
                $($crate::metrics::register(registry, $name, $help, &self.$field);)*
            }
        }
    };
}

/// Registers a metric. The metrics of the work queue have upstream's label.
pub fn register<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: &M) {
    let registry = if name.starts_with("workqueue_") {
        let (name, value) = QUEUE;
        registry.sub_registry_with_label((name.into(), value.into()))
    } else {
        registry
    };
    registry.register(name, help, metric.clone());
}
