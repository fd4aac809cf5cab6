//! The wires of the model door, as tables and properties.

#![cfg(test)]

mod answers;
mod chains;
mod conversation;
mod gemini;
mod played;
mod proxy;
mod requests;
mod responses;
mod strict;
