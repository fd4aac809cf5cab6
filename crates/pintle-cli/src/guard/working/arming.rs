//! Whether an agent may be told or call anything at all where it stands: before any rule is asked.

use pintle_guard::HostWhat;

use super::WorkedEvent;
use crate::guard::armed::lacks_here;
use crate::guard::folders::InForce;
use crate::guard::proving::{is_trial, is_trial_prompt};

impl WorkedEvent<'_> {
    /// Why this agent may neither be told anything nor call anything here: it does not let be held what has to be.
    pub(super) async fn not_armed(&self, in_force: &InForce) -> Option<String> {
        if !self.asks() {
            return None;
        }
        if let Some(why) = in_force.team.shut() {
            return Some(why);
        }
        if let Some(why) = in_force.broken_hosts.get(self.host.id) {
            return Some(why.clone());
        }
        if in_force.required.is_empty() || self.is_tried() {
            return None;
        }
        // The first look may have failed, or a daemon may have ended before it: a person who tries again has another one.
        if self.version.is_none() && matches!(self.event.what, HostWhat::Prompt { .. }) {
            self.desk.begun.add(self.event.session_id().to_string());
        }
        let here = (self.desk.folders.env_in(&self.place.workspace), self.desk.places.clone());
        lacks_here((self.host, self.version.clone()), here, in_force.required.clone()).await
    }

    /// Whether it asks for something that can be refused.
    fn asks(&self) -> bool {
        match &self.event.what {
            HostWhat::Prompt { .. } => !self.place.goes_on,
            HostWhat::SessionStart
            | HostWhat::PromptSent { .. }
            | HostWhat::Tool(_)
            | HostWhat::Permission { .. }
            | HostWhat::BeforeModel { .. } => true,
            HostWhat::SessionEnd
            | HostWhat::ToolDone { .. }
            | HostWhat::SubagentStart
            | HostWhat::SubagentStop { .. }
            | HostWhat::Stop { .. }
            | HostWhat::AfterModel { .. }
            | HostWhat::ConfigChange { .. }
            | HostWhat::Other => false,
        }
    }

    /// Whether this is how a trial comes to its call: who is tried could never be proven else. The call itself is no part
    /// of it.
    fn is_tried(&self) -> bool {
        match &self.event.what {
            HostWhat::Prompt { text } => is_trial_prompt(&self.place.workspace, text),
            // What is sent is that prompt, with what the host puts beside it.
            HostWhat::SessionStart | HostWhat::PromptSent { .. } | HostWhat::BeforeModel { .. } => {
                is_trial(&self.place.workspace)
            }
            HostWhat::SessionEnd
            | HostWhat::Tool(_)
            | HostWhat::Permission { .. }
            | HostWhat::ToolDone { .. }
            | HostWhat::SubagentStart
            | HostWhat::SubagentStop { .. }
            | HostWhat::Stop { .. }
            | HostWhat::AfterModel { .. }
            | HostWhat::ConfigChange { .. }
            | HostWhat::Other => false,
        }
    }
}
