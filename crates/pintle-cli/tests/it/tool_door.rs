//! The tool door: the built program between real clients and real servers.

mod asks;
mod changes;
mod clients;
mod ends;
mod http;
mod install;
mod signing_in;
mod stage;
