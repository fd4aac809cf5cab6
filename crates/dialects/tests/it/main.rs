//! Every wire from outside: what is sent, what is understood.

#[cfg(test)]
mod condition;
#[cfg(test)]
mod judge;
#[cfg(test)]
mod payload_page;
#[cfg(test)]
mod process_reply;
#[cfg(test)]
mod process_wire;
