//! The stores from outside: the suite that all backends pass, and what a file has to survive.

#![cfg(test)]

mod child;
mod conformance;
mod file;
mod journal;
mod kill;
mod processes;
mod queue;
mod random;
