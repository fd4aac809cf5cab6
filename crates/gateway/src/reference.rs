//! The protocol, described once: what each method takes and gives, and which events there are.
//!
//! `reference/table.rs` is the description. From it `cargo xtask gen` writes the page `docs/reference/websocket.md`, the JSON Schema
//! `schema/websocket.json` and the types `clients/typescript/src/protocol.generated.ts`. Every frame that a test of
//! `pintle serve` sends or gets is held against the schema, so the description cannot lie.
//!
//! To add a method: one line in its `METHODS`, with what it takes, what it gives, and what else there is to say:
//!
//! ```text
//! method("sessions.patch", "{ key: string, label?: string }", "{ ok: true }", ""),
//! ```
//!
//! An event is a line in `EVENTS` of `reference/table/events.rs`, an event of a run one in `RUN_EVENTS` there, and an
//! object that stands at several places a line in `SHAPES`. Words come from the enums that have them. The notation
//! stands in `reference/notation.rs`. Then run `cargo xtask gen`. A test sees to it that no method is missing.

use pintle_domain::json::Value;

mod notation;
mod page;
mod protocol;
mod rows;
mod schema;
mod table;
mod typescript;

pub use notation::BadNotation;

use protocol::Protocol;

/// The page.
///
/// # Errors
/// A row of the table that cannot be read.
pub fn page() -> Result<String, BadNotation> {
    Ok(page::of(&Protocol::read()?))
}

/// The JSON Schema of frames. What a method takes stands in `$defs` as `METHOD.params`, what it gives as
/// `METHOD.payload`, and the payload of an event as `event.NAME`.
///
/// # Errors
/// A row of the table that cannot be read.
pub fn schema() -> Result<Value, BadNotation> {
    schema::of(&Protocol::read()?)
}

/// The types for clients in TypeScript.
///
/// # Errors
/// A row of the table that cannot be read.
pub fn typescript() -> Result<String, BadNotation> {
    Ok(typescript::of(&Protocol::read()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::methods;

    #[test]
    fn every_method_is_described_and_none_beside() {
        let mut there: Vec<&str> = methods().iter().map(|method| method.name).collect();
        let mut described: Vec<&str> = table::all_methods().map(|row| row.name).collect();
        there.sort_unstable();
        described.sort_unstable();
        assert_eq!(there, described);
    }

    #[test]
    fn every_row_can_be_read_and_names_only_what_is_there() {
        assert_eq!((page().err(), schema().err(), typescript().err()), (None, None, None));
    }
}
