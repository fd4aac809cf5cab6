//! Rules at work in whole turns of the real program.

pub(crate) mod stage;
