//! The command line, as its users see it: the real program, in surroundings of its own.

#![cfg(test)]

mod approvals;
mod approvals_table;
mod audit;
mod budget;
mod chat;
mod collector;
mod doctor;
mod doctor_stored;
mod endings;
mod env;
mod found_folders;
mod guards;
mod homes;
mod hooks_lint;
mod hooks_list;
mod hooks_new;
mod hooks_test;
mod import_goclaw;
mod init;
mod kill;
mod leftovers;
mod mcp;
mod mcp_serve;
mod media;
mod observers;
mod pictures;
mod notes;
mod redactor;
mod reload;
mod rules_in_turns;
mod run;
mod secrets;
mod sessions;
mod sinks;
mod skills;
mod lowering;
mod skills_explain;
mod store;
mod stored_hooks;
mod terminal;
mod transcripts;
mod trust;
mod untrusted_rules;
mod why;
