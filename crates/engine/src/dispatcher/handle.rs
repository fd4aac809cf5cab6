//! The handle itself: how it is made for a turn, and what a host sets on it.

use std::sync::Arc;

use pintle_domain::checkpoint::{AgentInfo, EventContext};
use pintle_domain::id::{CallId, HookName};
use pintle_domain::identity::{ForeignEvent, Identity};
use tokio_util::sync::CancellationToken;

use super::{Dispatcher, FileSink};
use crate::approvals::Approvals;
use crate::evidence::Evidence;
use crate::live_rules::CurrentSet;

/// The knowledge about an agent whose host resolves tools and models by itself: every name is taken as it is, and no hook
/// owns a tool.
pub struct AsNamed;

impl AgentInfo for AsNamed {
    fn tool(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    fn model(&self, _model: &str) -> bool {
        true
    }

    fn owner(&self, _name: &str) -> Option<HookName> {
        None
    }
}

impl Dispatcher {
    /// The hooks of a turn of `who`. Until more is said, every name of a tool or model is taken as it is, nobody can be
    /// asked, and files stay as hooks write them.
    pub(crate) fn new(current: Arc<CurrentSet>, evidence: Arc<Evidence>, who: Identity) -> Self {
        let (cancel, known) = (CancellationToken::new(), Arc::new(AsNamed));
        Self { current, evidence, who, cancel, known, approvals: None, asks_by_content: false, files: None }
    }

    /// The hooks of a turn of `who` that works for this one: the configured hooks are those that this one began with,
    /// and the tenant is this one's, whatever `who` says.
    #[must_use]
    pub fn below(&self, who: Identity) -> Self {
        let who = Identity { tenant_id: self.who.tenant_id.clone(), ..who };
        Self::new(self.current.clone(), self.evidence.clone(), who)
    }

    /// Sets where the message came from: the channel, the conversation there, who wrote it.
    #[must_use]
    pub fn with_origin(mut self, channel: &str, chat: &str, sender: &str) -> Self {
        channel.clone_into(&mut self.who.channel);
        chat.clone_into(&mut self.who.chat_id);
        sender.clone_into(&mut self.who.sender_id);
        self
    }

    /// Sets what a foreign agent said of the event.
    #[must_use]
    pub fn with_foreign(mut self, event: ForeignEvent) -> Self {
        self.who.foreign = Some(Arc::new(event));
        self
    }

    /// Sets the token that ends the turn.
    #[must_use]
    pub fn with_cancel(self, cancel: CancellationToken) -> Self {
        Self { cancel, ..self }
    }

    /// Sets what is known about the agent: its tools, models and who owns which injected tool.
    #[must_use]
    pub fn with_known(self, known: Arc<dyn AgentInfo>) -> Self {
        Self { known, ..self }
    }

    /// Sets where persons are asked; without it an ask refuses.
    #[must_use]
    pub fn with_approvals(self, approvals: Option<Arc<Approvals>>) -> Self {
        Self { approvals, ..self }
    }

    /// Lets persons be asked about what a call is, whatever its turn and id: for a foreign agent, which makes a call
    /// that was not approved in time again.
    #[must_use]
    pub fn asking_by_content(self) -> Self {
        Self { asks_by_content: true, ..self }
    }

    /// Sets who takes files over that hooks hand over at `after_tool`; without it they stay as the hook wrote them.
    #[must_use]
    pub fn with_files(self, files: Arc<dyn FileSink>) -> Self {
        Self { files: Some(files), ..self }
    }

    /// Changes what is known about the agent, for what comes next in the turn.
    pub fn set_known(&mut self, known: Arc<dyn AgentInfo>) {
        self.known = known;
    }

    /// Changes the round that the turn is in.
    pub fn set_iteration(&mut self, iteration: u32) {
        self.who.iteration = iteration;
    }

    /// Changes the call that the turn works on; none between calls.
    pub fn set_call(&mut self, call: Option<CallId>) {
        self.who.tool_call_id = call;
    }

    /// The identity of the turn.
    pub fn who(&self) -> &Identity {
        &self.who
    }

    /// Set when the turn is ending.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// The knowledge about the agent.
    pub fn known(&self) -> &Arc<dyn AgentInfo> {
        &self.known
    }

    /// Where persons are asked.
    pub fn approvals(&self) -> Option<&Arc<Approvals>> {
        self.approvals.as_ref()
    }

    pub(crate) fn event_context(&self) -> EventContext<'_> {
        EventContext { who: &self.who, known: &*self.known }
    }
}
