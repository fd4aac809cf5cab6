//! Drives turns: the loop, its tools, its conversations.
//!
//! [`Runner::turn`] works one prompt to its end: the pure [`Turn`](domain::turn::Turn) says what is next, the
//! dispatcher of `engine` asks the hooks, the providers answer, and a tool runs only with a permit.

pub mod ask;
pub mod conversation;
pub mod driver;
pub mod front_ends;
pub mod helm;
mod journal;
pub mod skills;
pub mod media;
pub mod models;
pub mod outlet;
pub mod settings;
pub mod team;
pub mod tools;

pub use conversation::Conversation;
pub use driver::{Report, Runner};
pub use front_ends::FrontEnds;
pub use helm::Helm;
pub use models::{Models, UnknownModel};
pub use outlet::{Outlet, Quiet};
pub use settings::{OnMissingTag, Planning, Settings};
pub use skills::{NeedTool, Request, Shelf};
pub use team::Team;
