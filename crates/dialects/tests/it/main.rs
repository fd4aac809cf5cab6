//! Every wire from outside: what is sent, what is understood.

#[cfg(test)]
mod process_reply;
#[cfg(test)]
mod process_wire;
