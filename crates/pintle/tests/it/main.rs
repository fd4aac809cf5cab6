//! The command line, as its users see it: the real program, in surroundings of its own.

#![cfg(test)]

mod approvals;
mod chat;
mod doctor;
mod endings;
mod env;
mod hooks_lint;
mod hooks_list;
mod hooks_new;
mod hooks_test;
mod init;
mod kill;
mod mcp;
mod mcp_serve;
mod media;
mod reload;
mod run;
mod sessions;
mod terminal;
mod trust;
mod why;
