//! The tool door: whatever passes between an MCP client and a server, every call of a tool cleared first.
//!
//! Pure: [`message`] reads one message as text with places, [`tools`] what a server lists and which of it is shown,
//! [`pins`] what was listed first and what changed since, [`result`] what hooks read of a result and how a changed one is
//! written, [`sampling`] the same of a request to the client's model; [`proxy`] is the machine: messages in, steps out.
//!
//! Effects: [`door`] is what a door needs of its host, `clearing` puts calls, results and samplings to the hooks, [`hub`]
//! drives one machine between two ends, [`stdio`] and [`listener`] are a client's ends, `child` and `remote` a server's.

mod child;
mod clearing;
pub mod door;
mod ends;
pub mod hub;
pub mod listener;
pub mod message;
pub mod pins;
pub mod proxy;
mod remote;
pub mod result;
pub mod sampling;
pub mod stdio;
pub mod tools;

pub use door::{PersonAsked, ToolDoor, ToolDoorHost, ToolVisit};
pub use pins::{OnChange, PinFinding, ToolPins};
pub use tools::{ToolDefinition, ToolFilter};
