//! One operation: its calls to the cluster and what their answers mean.
