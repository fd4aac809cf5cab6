//! The files of a skill: its manifest of hooks, and their texts.
//!
//! Nothing here opens a file: bytes come in, and go out as hooks, texts and findings.

pub mod manifest;
pub mod name;
pub mod text;

pub use manifest::{Manifest, ManifestContext, ManifestEntry, ManifestPlace};
