//! Runs the hooks of stores: by a command, a request, a judge or a script.
//!
//! One [`RuleHandler`] stands for one row. It renders the event once for all of them, hands it to whatever runs the
//! row, reads the answer and turns it into a verdict. Nothing is decided here but what the published tables of the
//! handlers say of an answer.

use std::sync::Arc;

use domain::account::Answered;
use domain::agent_hook::{Edition, HandlerType};
use domain::checkpoint::{Notice, Reply, Subject};
use domain::fault::Fault;
use domain::hook::{Family, Hook};
use domain::id::{HookId, TenantId};
use domain::shell::ShellFacts;
use futures_util::future::BoxFuture;

use self::answer::Failure;
use self::running::Heard;
use engine::handler::{Call, Handler};

mod answer;
mod denied;
mod judging;
mod observing;
mod parts;
mod running;
mod tracing;
mod trying;

pub use judging::{Evaluator, JudgeSettings, Judged, Judges, Wanted};
pub use observing::{ATTEMPTS, Kept, LEASE, LOOK_EVERY, Outbox, PAUSES_SECONDS, Pool, PoolLimits};
pub use parts::{CommandSurroundings, Parts, ScriptCall, ScriptFailure, ScriptRan, Scripts, SlugOf, Vault};
pub use running::{Asked, Runs};
pub(crate) use trying::Tried;

/// Runs one stored hook.
pub struct RuleHandler {
    about: Arc<About>,
}

/// One row, ready to run, with everything that it needs of the host.
pub(crate) struct About {
    pub(crate) hook: Arc<Hook>,
    pub(crate) runs: Runs,
    pub(crate) parts: Arc<Parts>,
}

impl RuleHandler {
    /// Runs `hook` by `runs`.
    pub fn new(hook: Arc<Hook>, runs: Runs, parts: Arc<Parts>) -> Arc<Self> {
        Arc::new(Self { about: Arc::new(About { hook, runs, parts }) })
    }

    /// Tells what the outbox kept of an event, as [`Handler::tell`] would have told it.
    fn resume(&self, kept: Kept) {
        self.about.parts.pool.resume(&self.about, kept);
    }
}

impl About {
    /// The row's id.
    pub(crate) fn id(&self) -> HookId {
        self.hook.stored.as_ref().map_or_else(|| HookId::from(""), |stored| stored.id.clone())
    }

    /// Its version.
    pub(crate) fn version(&self) -> u32 {
        self.hook.stored.as_ref().map_or(0, |stored| stored.version)
    }

    /// Whose row it is; the sentinel for global ones.
    pub(crate) fn owner(&self) -> TenantId {
        self.hook.stored.as_ref().map_or_else(TenantId::sentinel, |stored| stored.tenant.clone())
    }

    /// How it is run.
    pub(crate) fn handler(&self) -> HandlerType {
        self.hook.stored.as_ref().map_or(HandlerType::Command, |stored| stored.handler)
    }

    /// Why it must not run here, whatever its row says: a second look, for rows that came past validation.
    pub(crate) fn refused(&self) -> Option<String> {
        let command = self.handler() == HandlerType::Command;
        (command && self.parts.edition == Edition::Standard)
            .then(|| "command handler not allowed: hook.command_disabled_standard".to_owned())
    }
}

impl Handler for RuleHandler {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Answered> {
        Box::pin(async move {
            if call.cancel.is_cancelled() {
                return Err(Fault::Cancelled).into();
            }
            let about = &self.about;
            let render = || crate::payload::of_subject(call.event_id, call.who, now(), &call.subject);
            let payload = call.wire.rendering(Family::Agent, || render().unwrap_or_default());
            if payload.is_empty() {
                let detail = format!("stored hooks are not asked at `{}`", call.subject.kind().name());
                return Err(Fault::Unavailable { detail }).into();
            }
            let asked = Asked {
                about,
                event_id: call.event_id,
                who: call.who,
                payload,
                shell: shell(about, &call),
                facts: answer::facts(&call.subject),
                event: call.subject.kind(),
                timeout: call.timeout,
                budget: call.budget,
                cancel: call.cancel,
                again: call.again,
            };
            let heard = asked.run(|answer| answer::reply(&call.subject, answer).map_err(Failure::from)).await;
            if let Ok(reply) = &heard.said {
                about.log_denied(&call.subject, reply);
            }
            answered(heard)
        })
    }

    fn tell(&self, notice: &Arc<Notice>) -> bool {
        self.about.parts.pool.submit(&self.about, notice)
    }

    fn room<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, ()> {
        Box::pin(self.about.parts.pool.room(tenant))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// Scripts see the shell facts, too: they are computed when a script is asked about a call that has a shell text.
fn shell(about: &About, call: &Call<'_>) -> Option<Arc<ShellFacts>> {
    let Subject::PreToolUse(gate) = call.subject else { return None };
    (about.handler() == HandlerType::Script).then(|| call.known.shell(&gate.call.tool, &gate.call.arguments))
}

/// What a handler said, as the chain takes it.
fn answered(heard: Heard<Reply>) -> Answered {
    let Heard { said, mut account } = heard;
    let heard = said.map_err(|Failure { fault, detail }| {
        account.detail.get_or_insert(detail);
        fault
    });
    Answered { heard, account: Some(Box::new(account)) }
}

fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
