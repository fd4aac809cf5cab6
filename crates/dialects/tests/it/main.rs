//! Every wire from outside: what is sent, what is understood.

mod process_reply;
mod process_wire;
