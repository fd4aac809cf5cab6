//! The engine from outside: real children, real pipes.

mod process_child;
