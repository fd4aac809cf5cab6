//! Two doors for other people's agents. At the model door, every request to a model and every call the model wants passes
//! hooks; at the tool door ([`mcp`]), every call to an MCP server does. The ports [`DoorHost`] and `ToolDoorHost` decide
//! whose hooks those are.
//!
//! The model door. Pure: [`spans`] finds values in JSON text and changes one and no other byte, [`sse`] cuts events,
//! `strict` reads members in one form only; [`request`] is what an agent asks and [`answer`] how an answer is worked, both
//! in one form for all wires; [`anthropic`], [`gemini`], [`openai`] and [`responses`] are the wires, [`wire`] their table;
//! [`keeper`] knows what became of what was said before, [`tokens`] what answers cost, [`spending`] who may spend how
//! much, `entrance` who may knock.
//!
//! Effects: [`door`] knows vendors and sessions, [`upstream`] asks a vendor, `body` takes a request in, `packed` undoes
//! compression, `room` bounds what is worked at once, `inbound` puts to the hooks what a request brings, `talk` works an
//! answer, [`reply`] turns a request away, [`serve`] is all of it over HTTP.
//!
//! The tool door, in `mcp`. Pure: `message` reads one message, `proxy` is the machine between a client and a server,
//! `tools` what is listed, `pins` what was listed first, `result` and `sampling` what hooks read. Effects: `clearing` asks
//! the hooks, `hub` drives a machine between two of the ends `stdio`, `listener`, `child` and `remote`.

pub mod anthropic;
pub mod answer;
mod body;
pub mod door;
mod entrance;
pub mod gemini;
mod inbound;
pub mod keeper;
pub mod mcp;
pub mod openai;
mod packed;
pub mod reply;
pub mod request;
pub mod responses;
mod room;
pub mod serve;
pub mod spans;
pub mod spending;
mod strict;
mod talk;
pub mod tokens;
pub mod upstream;
pub mod wire;

pub use door::{DoorGuest, DoorHost, DoorVisit, ModelDoor, VendorSettings};
pub use upstream::{DoorKey, VendorKey};
pub use wire::{Vendor, Wire};
