//! What is told of a run while it is worked, and of its end.

use pintle_domain::id::TurnId;
use pintle_domain::json::{Value, json};

use super::Run;
use crate::error::ApiError;
use crate::frame;
use crate::hub::Connection;

impl Run {
    /// Tells of it whoever may hear: its user, and those who see what others do.
    pub(crate) fn event(&self, kind: &str, payload: Option<Value>) {
        self.event_of(kind, payload, None);
    }

    /// The same, about a sub-agent of it.
    pub(crate) fn event_of(&self, kind: &str, payload: Option<Value>, below: Option<(&str, &TurnId)>) {
        self.event_to(|_| true, (kind, payload), below);
    }

    /// The same, to those of its listeners that `wanted` picks.
    pub(crate) fn event_to(
        &self,
        wanted: impl Fn(&Connection) -> bool,
        (kind, payload): (&str, Option<Value>),
        below: Option<(&str, &TurnId)>,
    ) {
        let mut heads: [Option<String>; 2] = [None, None];
        let hears = |it: &Connection| (it.who.user == self.name.user || it.who.sees_others()) && wanted(it);
        for connection in self.hub.of(&self.key.tenant, hears) {
            let own = usize::from(connection.who.user == self.name.user);
            let head = heads[own].get_or_insert_with(|| {
                let key = self.name.shown_to(&connection.who);
                frame::event_head("agent", &self.payload(kind, payload.as_ref(), (&key, below)))
            });
            connection.tell(head);
        }
    }

    fn payload(&self, kind: &str, payload: Option<&Value>, (key, below): (&str, Option<(&str, &TurnId)>)) -> Value {
        let (agent, run) = below.unwrap_or((&self.name.agent, self.id.get_or_init(TurnId::fresh)));
        let mut event = json!({ "type": kind, "agentId": agent, "runId": run, "sessionKey": key });
        if let Some(payload) = payload {
            event["payload"] = payload.clone();
        }
        if below.is_some() {
            event["parentAgentId"] = json!(self.name.agent);
            event["delegationId"] = json!(run);
        }
        event["userId"] = json!(self.name.user);
        event["channel"] = json!(self.name.channel.word());
        event["chatId"] = json!(self.name.conversation);
        event
    }

    /// Tells everybody who hears of it that it failed.
    pub(crate) fn tell_failed(&self, error: &ApiError) {
        let others = error.clone().in_class();
        for (reads_faults, why) in [(true, &error.message), (false, &others.message)] {
            let payload = Some(json!({ "error": why }));
            self.event_to(|it| it.who.reads_faults() == reads_faults, ("run.failed", payload), None);
        }
    }
}
