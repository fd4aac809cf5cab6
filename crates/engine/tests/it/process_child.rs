//! Process hooks with real children: what they do wrong, and what the hook makes of it.

mod close;
mod events;
mod faults;
mod replies;
mod restart;
mod stage;
