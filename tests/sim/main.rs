//! Simulation: the real machines of both halves and a model of the cluster, in virtual time, under random schedules.

mod canonical;
mod checkers;
mod crashes;
mod mutants;
mod repeat;
