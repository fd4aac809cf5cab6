//! Children from outside: real ones, real pipes.

mod command;
mod descendants;
mod process_child;
