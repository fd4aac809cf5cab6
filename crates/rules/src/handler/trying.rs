//! One run of a hook that only observes, for somebody who tests it and waits.

use std::time::Duration;

use crate::payload;
use crate::reply::HandlerReply;
use bytes::Bytes;
use pintle_domain::account::Account;
use pintle_domain::checkpoint::Notice;
use pintle_domain::fault::{Cause, Fault};
use tokio_util::sync::CancellationToken;

use super::RuleHandler;
use super::answer::{Failure, ShownInput};
use super::observing::SLOT_TIME;
use super::running::{RuleQuestion, RunResult};

/// The result of a trial.
pub(crate) struct TryResult {
    /// The reply, or the fault with the words for it.
    pub(crate) said: Result<HandlerReply, (Fault, Cause)>,
    /// How it came to that.
    pub(crate) account: Account,
}

impl RuleHandler {
    /// Tells the hook of `notice` and waits for what it says.
    pub(crate) async fn try_out(&self, notice: &Notice, cancel: &CancellationToken) -> TryResult {
        let kind = notice.what.checkpoint();
        let Some(payload) = payload::of_notice(notice) else {
            let detail = Cause::from(format!("rules are not told of `{}`", kind.name()));
            let said = Err((Fault::Unavailable { cause: detail.clone() }, detail));
            return TryResult { said, account: Account::default() };
        };
        let timeout = self.about.hook.stages.get(kind).map_or(Duration::ZERO, |stage| stage.timeout);
        let facts = notice.what.facts();
        let tool = facts.tool.map(|(tool, _)| tool).unwrap_or_default();
        let asked = RuleQuestion {
            about: &self.about,
            event_id: &notice.event_id,
            who: &notice.who,
            payload: Bytes::from(payload),
            shell: None,
            facts: ShownInput { tool, input: facts.input },
            event: kind,
            timeout,
            budget: timeout + SLOT_TIME,
            cancel,
            again: false,
        };
        let RunResult { said, account } = asked.run(|answer| Ok(answer.said)).await;
        TryResult { said: said.map_err(|Failure { fault, detail }| (fault, detail)), account }
    }
}
