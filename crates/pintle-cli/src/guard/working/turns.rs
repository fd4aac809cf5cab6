//! What hooks are told, and say, where a turn of a host begins and ends.

use std::time::Duration;

use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::checkpoint::user_prompt_submit::InputKind;
use pintle_domain::checkpoint::{ObservedEvent, RuntimeEvent, SubagentStart};
use pintle_domain::id::{AgentId, SessionId};
use pintle_domain::llm::Usage;
use pintle_engine::Dispatcher;
use pintle_guard::GuardRuling;

use super::subagent::SUBAGENT;
use super::{CHANNEL, WorkedEvent};
use crate::guard::open_matters::OpenPrompt;
use crate::guard::rulings::{of_prompt, of_stopped};

impl WorkedEvent<'_> {
    pub(super) async fn submit(&self, hooks: &Dispatcher, prompt: &str) -> GuardRuling {
        let kind = if self.place.is_first_turn { InputKind::First } else { InputKind::Followup };
        match hooks.submit(prompt, kind).await {
            Ok((text, notes)) => {
                hooks.tell(RuntimeEvent::TurnStart {
                    channel: CHANNEL.into(),
                    chat_id: self.host.id.into(),
                    user_message: text.clone(),
                    media_count: 0,
                });
                self.sent_later(prompt, of_prompt(prompt, text, &notes))
            }
            Err(stopped) => of_stopped(&stopped),
        }
    }

    /// What the host is told of a prompt now: a host that says it once more before it is sent is told the change then.
    fn sent_later(&self, before: &str, ruling: GuardRuling) -> GuardRuling {
        if !pintle_guard::is_sent_later(self.event) {
            return ruling;
        }
        let (open, now) = match ruling {
            GuardRuling::ModifyPrompt { text } => {
                (Some(OpenPrompt::Changed { before: before.to_owned(), text }), GuardRuling::NoObjection)
            }
            GuardRuling::Inject { text } => (Some(OpenPrompt::Added(text)), GuardRuling::NoObjection),
            other @ (GuardRuling::NoObjection
            | GuardRuling::Allow
            | GuardRuling::Deny { .. }
            | GuardRuling::Ask { .. }
            | GuardRuling::ModifyInput { .. }
            | GuardRuling::Respond { .. }
            | GuardRuling::ModifyResult { .. }
            | GuardRuling::ModifyRequest { .. }
            | GuardRuling::AbortTurn { .. }
            | GuardRuling::AbortRun { .. }) => (None, other),
        };
        self.desk.open.keep_prompt(self.event.session_id().as_str(), open);
        now
    }

    pub(super) fn stop(&self, hooks: &Dispatcher, reply: &str) {
        let duration = self.place.turn_took;
        hooks.tell(ObservedEvent::Stop { reply: reply.into(), iterations: 0, usage: Usage::default(), duration });
        hooks.tell(RuntimeEvent::TurnEnd {
            status: TurnStatus::Completed,
            iterations: 0,
            duration,
            final_content_len: reply.len(),
            user_message: String::new(),
            final_content: reply.into(),
            tool_kinds: Vec::new(),
            tool_executions: Vec::new(),
        });
    }

    pub(super) fn subagent_stop(&self, hooks: &Dispatcher, outcome: &str) {
        let subagent = self.event.subagent.clone().unwrap_or_default();
        let kind = subagent.kind.unwrap_or_else(|| SUBAGENT.into());
        let start = SubagentStart::new(AgentId::from(kind.as_str()), "", 1, None);
        let session = self.event.session_id();
        let session_id = match subagent.id {
            Some(id) => SessionId::new(format!("{session}/{id}")),
            None => session,
        };
        hooks.tell(ObservedEvent::SubagentStop {
            start: Box::new(start),
            session_id,
            status: TurnStatus::Completed,
            timed_out: false,
            outcome: outcome.into(),
            denials: Vec::new(),
            duration: Duration::ZERO,
        });
    }
}
