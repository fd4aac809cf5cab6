//! The command line, as its users see it: the real program, in surroundings of its own.

#![cfg(test)]

mod doctor;
mod endings;
mod env;
mod hooks_lint;
mod hooks_list;
mod hooks_new;
mod hooks_test;
mod init;
mod reload;
mod run;
mod terminal;
mod trust;
mod why;
