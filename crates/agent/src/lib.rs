//! Drives turns: the loop, its tools, its conversations.
//!
//! [`Runner::turn`] works one prompt to its end: the pure [`Turn`](pintle_domain::turn::Turn) says what is next, the
//! dispatcher of `engine` asks the hooks, the providers answer, and a tool runs only with a permit.
//!
//! | module | holds |
//! |---|---|
//! | `driver` | starts, continues and resumes turns; agents and their delegates are in `driver/runner.rs` |
//! | `driver/work` | the loop around one turn |
//! | `driver/front_end` | puts a message, and any history sent with it, through the gates |
//! | `driver/model`, `planning`, `compact`, `deltas` | a model call; the planning call; compaction; streamed text |
//! | `driver/calls`, `calls_in_progress` | a batch of tool calls, from clearing to result |
//! | `driver/long_results`, `files`, `sending`, `delivery` | results that a model reads page by page; files for the user and the model |
//! | `driver/polls` | messages, sub-agents' results and interrupts that arrive during a turn |
//! | `driver/subturns`, `recovery` | sub-agents, and those whose process died |
//! | `driver/texts`, `known`, `messages` | the texts of skills; what hooks may know about the agent; messages a turn adds itself |
//! | `driver/shape`, `rehearsal` | what settings alone say about a turn; rehearsals from a script or a journal |
//! | `driver/turn_env`, `report` | the surroundings of a turn; the report for the host |
//! | `conversation`, `journal` | the session of a turn; where its facts go |
//! | `turn_handle`, `user_output` | steers a turn from outside; shows it to the user as it happens |
//! | `ask`, `media`, `settings`, `models`, `skills`, `front_ends` | the `ask` gate, files, and the agent's settings |
//! | `tools` | the built-in tools and their registry; `workspace.rs` keeps file tools inside, `protected.rs` alone decides which files may be touched, `sandbox.rs` confines `exec` |

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
