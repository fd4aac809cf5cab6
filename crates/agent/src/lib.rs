//! Drives turns: the loop, its tools, its conversations.
//!
//! [`Runner::turn`] works one prompt to its end: the pure [`Turn`](domain::turn::Turn) says what is next, the
//! dispatcher of `engine` asks the hooks, the providers answer, and a tool runs only with a permit.

pub mod ask;
pub mod conversation;
pub mod driver;
pub mod front_ends;
pub mod turn_handle;
mod journal;
pub mod skills;
pub mod media;
pub mod models;
pub mod user_output;
pub mod settings;
pub mod tools;

pub use conversation::Conversation;
pub use driver::{AgentRegistry, Runner, TurnReport};
pub use front_ends::FrontEnds;
pub use models::{Models, UnknownModel};
pub use settings::{AgentSettings, OnMissingTag, Planning};
pub use skills::{SkillSet, TextRequest, ToolNeedJudge};
pub use turn_handle::TurnHandle;
pub use user_output::{NullOutput, UserOutput};
