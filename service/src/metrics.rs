//! Metrics as a table.

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
                $(registry.register($name, $help, self.$field.clone());)*
            }
        }
    };
}
