//! The files of a skill: its manifest of hooks, their texts, and the head of its `SKILL.md`.
//!
//! Nothing here opens a file: bytes come in, and go out as hooks, texts and findings.

pub mod front;
pub mod manifest;
pub mod name;
pub mod text;

pub use front::Front;
pub use manifest::{Around, Entry, Manifest, Place};
