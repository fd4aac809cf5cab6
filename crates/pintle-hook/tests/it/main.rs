//! The built hook against daemons that answer, lie, stall, die or are not there.

#![cfg(test)]

mod faults;
mod hook;
mod starting;
