//! The stores from outside: the suite that all backends pass, and what a file has to survive.

#![cfg(test)]

mod anchors;
mod astray;
mod child;
mod columns;
mod commits;
mod conformance;
mod evidence;
mod file;
mod journal;
mod kept_output;
mod key_changes;
mod kill;
mod migrations;
mod outage;
mod postgres;
mod postgres_processes;
mod processes;
mod queue;
mod random;
mod rules;
mod rules_outage;
mod sealed_approvals;
mod sealed_changes;
mod sealed_identities;
mod threads;
mod turns;
mod unsigned;
