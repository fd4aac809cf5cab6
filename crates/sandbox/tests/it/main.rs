//! Tests of scripts in real children.

mod behaves;
mod dies;
mod example;
mod hostile;
mod stage;
