//! Hooks for an agent loop of your own: no tool runs without a permit, no stage is forgotten, nothing is dropped.
//!
//! [`Pintle`] holds the hooks of one program. A [`Tenant`] owns what its turns leave behind; a [`Turn`] is one prompt
//! worked to its end. [`Turn::call`] asks the hooks, and a person where one has to say, writes the record, runs the tool
//! with a [`Permit`] that nobody else can make, and shows the result to the hooks that may change it.
//!
//! ```
//! use pintle::prelude::*;
//!
//! /// Refunds money.
//! struct Refund;
//!
//! impl Executor for Refund {
//!     type Error = std::io::Error;
//!
//!     fn runs(&self, tool: &str) -> bool {
//!         tool == "refund"
//!     }
//!
//!     async fn execute(&self, permit: Permit, _cancel: &Cancel) -> Result<Output, Self::Error> {
//!         Ok(Output::ok(format!("refunded {}", permit.call().arguments["amount"])))
//!     }
//! }
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let pintle = Pintle::open(Stores::none(), &["refund"])?;
//! pintle.hook("limit", "refund", |at: &PreToolUse| match at.call.number("amount") {
//!     Some(amount) if amount <= 200.0 => Verdict::Continue,
//!     _ => Verdict::deny("refunds above 200 need a person"),
//! })?;
//! let turn = pintle.tenant("default")?.turn("support", "session-1", TurnId::fresh());
//! let done = turn.call(Call::new("call-1", "refund", [("amount", 50)]), &Refund).await?;
//! assert_eq!(done.output.for_llm, "refunded 50");
//! let refused = turn.call(Call::new("call-2", "refund", [("amount", 900)]), &Refund).await;
//! assert!(matches!(refused, Err(Stop::Refused(_))));
//! pintle.close(Duration::from_secs(5)).await;
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().expect("a runtime").block_on(run()).expect("it runs");
//! ```
//!
//! # Inside
//!
//! | module | holds |
//! |---|---|
//! | `pintle`, `host`, `tenant` | the hooks of one program, the state its handles share, the handle of a tenant |
//! | `turn` | one prompt, step by step like the loop in `crates/agent`: `calls.rs`, `delegating.rs`, `subagent.rs`, `ending.rs`, `state.rs` |
//! | `stage`, `process_hook` | hooks in Rust, and process hooks |
//! | `executor`, `outcome`, `known` | the trait that runs tools, results, what hooks may rely on |
//! | `approvals`, `stores`, `call_journal` | questions for a person, storage, the journal of calls |
//! | `pintle_store`, `rule_source`, `rules_in_force`, `rules` | stored rules: opening, source, the rules in force, administration |

mod approvals;
mod call_journal;
mod executor;
mod host;
mod known;
mod outcome;
mod pintle;
#[cfg(feature = "rules")]
mod pintle_store;
#[cfg(feature = "process")]
mod process_hook;
#[cfg(feature = "rules")]
mod rule_source;
#[cfg(feature = "rules")]
mod rules;
#[cfg(feature = "rules")]
mod rules_in_force;
mod stage;
mod stores;
mod tenant;
mod turn;

pub use approvals::{Approvals, Ui};
pub use call_journal::{CallFolder, CallJournal, CallKey, CallStanding, OpenCall};
pub use executor::Executor;
pub use outcome::{Completion, Done, Parked, Refusal, Stop, Submitted};
pub use pintle::{AddError, Left, OpenError, Pintle};
#[cfg(feature = "rules")]
pub use pintle_store::{PintleStore, PintleStoreError};
#[cfg(feature = "process")]
pub use process_hook::Process;
#[cfg(feature = "rules")]
pub use rule_source::Judge;
#[cfg(feature = "rules")]
pub use rules::{RuleError, Rules, WrittenRule};
pub use stage::{Fut, HookAt, Observer, Stage};
pub use stores::Stores;
pub use tenant::{Records, Tenant, UnknownTenant};
pub use turn::{Turn, TurnSnapshot};

pub use pintle_domain::approval;
pub use pintle_domain::approval::{Approval, PersonAnswer as Answer};
pub use pintle_domain::chain::Note;
pub use pintle_domain::checkpoint;
pub use pintle_domain::checkpoint::user_prompt_submit::InputKind;
pub use pintle_domain::id;
pub use pintle_domain::id::TurnId;
pub use pintle_domain::identity::Identity;
pub use pintle_domain::json;
pub use pintle_domain::llm;
pub use pintle_domain::message;
pub use pintle_domain::record;
pub use pintle_domain::store;
pub use pintle_domain::tool::{ToolCall as Call, ToolOutput as Output};
pub use pintle_domain::verdict::Verdict;
pub use pintle_engine::{HookCx, Permit};
pub use tokio_util::sync::CancellationToken as Cancel;

/// The page of the crate, whose program has to compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Everything that a program around hooks writes down.
pub mod prelude {
    pub use std::time::Duration;

    #[cfg(feature = "process")]
    pub use crate::Process;
    pub use crate::checkpoint::{
        AfterLlm, AfterTool, ApproveTool, BeforeLlm, BeforeTool, Notice, PreToolUse, SubagentStart, UserPromptSubmit,
    };
    pub use crate::{
        AddError, Answer, Approval, Call, Cancel, Done, Executor, Fut, HookAt, HookCx, InputKind, Observer, OpenError,
        Output, Parked, Permit, Pintle, Refusal, Stop, Stores, Tenant, Turn, TurnId, TurnSnapshot, Ui, Verdict,
    };
}
