//! The model door: what any agent asks of a model, and every call that the model wants, passes hooks.
//!
//! Pure: [`spans`] finds values in JSON text and changes one without another, [`sse`] cuts events, `strict` reads members
//! in one form only; [`request`] is what an agent asks and [`answer`] how an answer is worked, both in one form for all
//! wires; [`anthropic`], [`gemini`], [`openai`] and [`responses`] are the wires, [`wire`] their table; [`keeper`] knows what
//! became of what was said before, [`tokens`] what answers cost and [`spending`] who may spend how much.
//!
//! Effects: [`door`] knows vendors and sessions, [`upstream`] asks a vendor, `inbound` puts to the hooks what a request
//! brings, `talk` works an answer, `packed` undoes compression, `room` bounds what is worked at once, [`serve`] is all of it
//! over HTTP.

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
