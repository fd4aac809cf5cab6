//! Runs the hooks of stores: by a command, a request, a judge or a script.
//!
//! One [`RuleHandler`] stands for one row. It renders the event once for all of them, hands it to whatever runs the
//! row, reads the answer and turns it into a verdict. Nothing is decided here but what the published tables of the
//! handlers say of an answer.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_domain::account::HandlerAnswer;
use pintle_domain::checkpoint::{Notice, Reply, Subject};
use pintle_domain::fault::Fault;
use pintle_domain::hook::{Family, Hook};
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::rule::{Edition, HandlerType};
use pintle_domain::shell::ShellFacts;

use self::answer::Failure;
use self::running::RunResult;
use pintle_engine::handler::{Handler, HookCall, NoticeViews};

mod answer;
mod argv;
mod denied;
mod judges;
mod booking;
mod judging;
mod observing;
mod scripts;
mod services;
mod running;
mod tracing;
mod trying;

pub use argv::is_script;
pub use judges::{Evaluator, JudgeChoice, JudgeSettings, Judgement, Judges, OnLowBudget, QuestionSent};
pub use observing::{
    ATTEMPTS, LEASE, LOOK_EVERY, ObserverPool, Outbox, PAUSES_SECONDS, PoolLimits, SEND_TIME, TakenJob,
};
pub use running::{RuleQuestion, RuleRunner};
pub use scripts::{ScriptCall, ScriptFailure, ScriptResult, Scripts};
pub use services::{CommandEnv, RuleServices, SlugOf, Vault};
pub(crate) use trying::TryResult;

/// Runs one rule.
pub struct RuleHandler {
    about: Arc<BoundRule>,
}

/// One row, ready to run, with everything that it needs of the host.
pub(crate) struct BoundRule {
    pub(crate) hook: Arc<Hook>,
    pub(crate) runs: RuleRunner,
    pub(crate) parts: Arc<RuleServices>,
}

impl RuleHandler {
    /// Runs `hook` by `runs`.
    pub fn new(hook: Arc<Hook>, runs: RuleRunner, parts: Arc<RuleServices>) -> Arc<Self> {
        Arc::new(Self { about: Arc::new(BoundRule { hook, runs, parts }) })
    }

    /// Tells what the outbox kept of an event, as [`Handler::tell`] would have told it.
    fn resume(&self, kept: TakenJob) {
        self.about.parts.pool.resume(&self.about, kept);
    }
}

impl BoundRule {
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
    fn ask<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, HandlerAnswer> {
        Box::pin(async move {
            if call.cancel.is_cancelled() {
                return Err(Fault::Cancelled).into();
            }
            let about = &self.about;
            let render = || crate::payload::of_subject(call.event_id, call.who, now(), &call.subject);
            let payload = call.wire.rendering(Family::Rule, || render().unwrap_or_default());
            if payload.is_empty() {
                let detail = format!("rules are not asked at `{}`", call.subject.kind().name());
                return Err(Fault::Unavailable { cause: detail.into() }).into();
            }
            let asked = RuleQuestion {
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

    fn tell(&self, notice: &Arc<Notice>, _views: &NoticeViews) -> bool {
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
fn shell(about: &BoundRule, call: &HookCall<'_>) -> Option<Arc<ShellFacts>> {
    let Subject::PreToolUse(gate) = call.subject else { return None };
    (about.handler() == HandlerType::Script).then(|| call.known.shell(&gate.call.tool, &gate.call.arguments))
}

/// What a handler said, as the chain takes it.
fn answered(heard: RunResult<Reply>) -> HandlerAnswer {
    let RunResult { said, mut account } = heard;
    let heard = said.map_err(|Failure { fault, detail }| {
        account.detail.get_or_insert(detail);
        fault
    });
    HandlerAnswer { heard, account: Some(Box::new(account)) }
}

fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
