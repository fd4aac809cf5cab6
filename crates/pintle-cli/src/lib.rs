//! The `pintle` command as a library, so that tests reach its parts without a process.
//!
//! | module | holds |
//! |---|---|
//! | `cli` | the command line, one file per command; `cli/question.rs` invents a subject for each checkpoint |
//! | `cli/why` | picks events (`chosen.rs`, `newest.rs`, `stopped.rs`) and prints them (`summary.rs`, `detail.rs`, `observed.rs`, `list.rs`, `words.rs`) |
//! | `error` | maps every failure to an exit code, a message and a hint |
//! | `operator` | tells a person from an agent |
//! | `timeline`, `turn_counts` | a turn as it happens, and its totals |
//! | `table`, `text`, `moment`, `clean` | lists, texts and times; foreign text with nothing hidden in it |
//! | `guard` | the daemon behind coding agents' hooks, for `pintle guard serve` and `pintle serve` |
//! | `guard/hook_door`, `daemon_process`, `set_up`, `places` | the daemon as a whole; its process, how a hook starts it, its files |
//! | `guard/listening`, `question_room`, `working`, `rulings`, `known` | takes a question, bounds its memory, answers it; what hooks may know |
//! | `guard/folders`, `sessions`, `kept_sessions`, `session_files`, `open_matters` | configurations by folder; sessions, and what is open between two events |
//! | `guard/reconciling`, `looking_after`, `call_log`, `written_down` | what got past the guard |
//! | `guard/links`, `found_files` | where the paths of a call really lead |
//! | `guard/installs`, `host_files`, `accepted` | our hooks in agents' settings |
//! | `guard/versions`, `host_program`, `host_process`, `own_process`, `begun`, `newcomers`, `armed` | which version of an agent runs, and whether everything that must be held is held |
//! | `guard/proving`, `canary`, `proofs` | runs an agent to prove that its calls reach the guard; keeps the proofs |
//! | `guard/model_door`, `tool_door`, `tool_pins` | the hooks of the two other doors |

pub mod clean;
pub mod cli;
pub mod error;
mod guard;
pub mod moment;
pub mod operator;
mod table;
pub mod text;
pub mod timeline;
mod turn_counts;
