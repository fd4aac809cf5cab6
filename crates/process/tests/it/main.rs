//! Children from outside: real ones, real pipes.

mod command;
mod process_child;
