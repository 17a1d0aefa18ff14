//! The canonical workloads come to rest as wanted, whatever dies, breaks or comes late on the way.

test_each_workload!(tests::simulation::check);
