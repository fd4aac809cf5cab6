//! The wires of the model door, as tables and properties.

#![cfg(test)]

mod answers;
mod conversation;
mod played;
mod requests;
mod strict;
