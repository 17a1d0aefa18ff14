//! The canonical workloads converge despite all crashes, failures and delays.

test_each_workload!(tests::simulation::check);
