//! The texts that skills and the host put into the conversation of one turn, and when they leave it.
//!
//! A ledger works on one list and belongs to one turn. It takes out by identity: neither by place, which every removal
//! shifts, nor by content, of which the conversation may hold an equal copy.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::json::Rendered;
use crate::message::{Lifetime, Message, ProviderData, Role};
use crate::skill::{SkillHook, Skills, Timing, Voice};

mod event;
pub(crate) mod provenance;

pub use event::{InjectionOutcome, LedgerEvent, NotInjectedReason, Removal, RemovalEffect, tokens};
pub use provenance::{HostPrompt, MessageSource, MsgId, Provenance};

/// The list that a ledger works on.
pub type MessageList = Vec<Rendered<Message>>;

/// A point of the flow at which texts go in.
#[derive(Clone, Copy, Debug)]
pub struct InjectionPoint<'a> {
    /// Which.
    pub timing: Timing,
    /// The round it belongs to; 0 before the first.
    pub round: u32,
    /// The first call of a model that sees what goes in here; 0 is the planning call.
    pub first_call: u32,
    /// The call of a tool that it is about, at [`Timing::AfterToolCall`].
    pub call: Option<CalledTool<'a>>,
}

/// A call of a tool, as filters see it.
#[derive(Clone, Copy, Debug)]
pub struct CalledTool<'a> {
    /// Its id.
    pub id: &'a str,
    /// The canonical name of the tool in the end, and the name that the model wrote.
    pub names: &'a [&'a str],
}

/// A persistent text that went in, for whoever keeps the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookChunk {
    /// Its identity in the list of the turn.
    pub id: MsgId,
    /// The hook.
    pub name: String,
    /// Who seems to say it.
    pub role: Voice,
    /// The text.
    pub content: String,
    /// The skill that brought it.
    pub skill: String,
    /// When it went in.
    pub timing: Timing,
}

/// The texts that stand in the list, and who put them there.
#[derive(Clone, Debug)]
pub struct Ledger {
    skills: Skills,
    placed: Vec<PlacedText>,
    prompts: Vec<ListedText>,
    last: MsgId,
    events: Vec<LedgerEvent>,
}

/// A text of a hook.
#[derive(Clone, Debug)]
struct PlacedText {
    timing: Timing,
    persistent: bool,
    it: ListedText,
}

/// Something of ours in the list.
#[derive(Clone, Debug)]
struct ListedText {
    id: MsgId,
    from: Arc<Provenance>,
    /// The first and the last call that saw it.
    seen: Option<(u32, u32)>,
}

impl ListedText {
    fn removal(self) -> Removal {
        Removal { message: self.from, seen: self.seen, wire: RemovalEffect::default() }
    }
}

impl Ledger {
    /// A ledger for the texts of `skills`.
    pub fn new(skills: Skills) -> Self {
        Self { skills, placed: Vec::new(), prompts: Vec::new(), last: MsgId::default(), events: Vec::new() }
    }

    /// The texts it puts in.
    pub fn skills(&self) -> &Skills {
        &self.skills
    }

    /// The identity of the newest message that it put in.
    pub fn last(&self) -> MsgId {
        self.last
    }

    /// The events since this was asked last, oldest first.
    pub fn take_events(&mut self) -> Vec<LedgerEvent> {
        std::mem::take(&mut self.events)
    }

    /// Appends every text that belongs to this point, in the order of the hooks. What comes back are the persistent
    /// ones, to be announced. Nothing is left out because it stands there already.
    pub fn inject(&mut self, list: &mut MessageList, at: InjectionPoint<'_>) -> Vec<HookChunk> {
        let skills = self.skills.clone();
        let mut chunks = Vec::new();
        let mut lines = Vec::new();
        for (number, hook) in skills.hooks.iter().enumerate().filter(|(_, hook)| hook.timing == at.timing) {
            if let Some(why) = skills.passes_over(hook, at.call) {
                lines.push(InjectionOutcome { hook: number, went: Err(why) });
                continue;
            }
            let it = self.place(list, hook, at);
            lines.push(InjectionOutcome { hook: number, went: Ok(it.from.clone()) });
            if hook.persistent {
                chunks.push(hook.chunk(it.id));
            }
            self.placed.push(PlacedText { timing: at.timing, persistent: hook.persistent, it });
        }
        if !lines.is_empty() {
            let call = at.call.map(|call| call.id.to_owned());
            self.events.push(LedgerEvent::Injected {
                timing: at.timing,
                round: at.round,
                call,
                first_call: at.first_call,
                lines,
            });
        }
        chunks
    }

    fn place(&mut self, list: &mut MessageList, hook: &SkillHook, at: InjectionPoint<'_>) -> ListedText {
        let from = Provenance {
            skill: Some(hook.skill.clone()),
            hook: Some(hook.name.clone()),
            timing: Some(at.timing),
            tool_call_id: at.call.map(|call| call.id.to_owned()),
            snapshot_hash: Some(self.skills.hash.clone()),
            ..Provenance::new(MessageSource::Hook, at.round)
        };
        let lifetime = if hook.persistent { Lifetime::Stays } else { hook.timing.lifetime() };
        self.append(list, Message::text(hook.role.role(), hook.content.as_str()), (from, lifetime))
    }

    fn append(
        &mut self,
        list: &mut MessageList,
        message: Message,
        (from, lifetime): (Provenance, Lifetime),
    ) -> ListedText {
        self.last = self.last.next();
        let from = Arc::new(Provenance { msg_id: Some(self.last), ..from });
        let private = ProviderData { lifetime, from: Some(from.clone()), ..ProviderData::default() };
        list.push(Message { private, ..message }.into());
        ListedText { id: self.last, from, seen: None }
    }

    /// Takes out what went in at `timing`, but for what is persistent, which stays and stays known. What is gone already
    /// is no matter.
    pub fn remove(&mut self, list: &mut MessageList, timing: Timing) {
        let goes = |placed: &PlacedText| placed.timing == timing && !placed.persistent;
        let (gone, kept) = std::mem::take(&mut self.placed).into_iter().partition(goes);
        self.placed = kept;
        self.take_out(list, gone);
    }

    fn take_out(&mut self, list: &mut MessageList, gone: Vec<PlacedText>) {
        let ids: BTreeSet<MsgId> = gone.iter().map(|placed| placed.it.id).collect();
        drop_from(list, &ids);
        for timing in Timing::ALL {
            let of_it = gone.iter().filter(|placed| placed.timing == timing);
            let lines: Vec<Removal> = of_it.map(|placed| placed.it.clone().removal()).collect();
            if !lines.is_empty() {
                self.events.push(LedgerEvent::Removed { timing, lines });
            }
        }
    }

    /// Appends a prompt of the host's own. An empty one is not appended, and has no identity.
    pub fn inject_prompt(
        &mut self,
        list: &mut MessageList,
        (which, text): (HostPrompt, &str),
        round: u32,
    ) -> Option<MsgId> {
        if text.is_empty() {
            return None;
        }
        let from = Provenance { prompt: Some(which), ..Provenance::new(MessageSource::Builtin, round) };
        let it = self.append(list, Message::text(Role::System, text), (from, Lifetime::Passing));
        self.events.push(LedgerEvent::PromptInjected { message: it.from.clone(), bytes: text.len() });
        let id = it.id;
        self.prompts.push(it);
        Some(id)
    }

    /// Takes that prompt out, if it stands there.
    pub fn remove_prompt(&mut self, list: &mut MessageList, prompt: Option<MsgId>) {
        let Some(at) = self.prompts.iter().position(|it| Some(it.id) == prompt) else { return };
        let it = self.prompts.remove(at);
        drop_from(list, &BTreeSet::from([it.id]));
        self.events.push(LedgerEvent::PromptRemoved(it.removal()));
    }

    /// Takes out everything that is not to stay: for a list that outlives its turn.
    pub fn finalize(&mut self, list: &mut MessageList) {
        let (kept, gone) = std::mem::take(&mut self.placed).into_iter().partition(|placed| placed.persistent);
        self.placed = kept;
        self.take_out(list, gone);
        while let Some(it) = self.prompts.first() {
            self.remove_prompt(list, Some(it.id));
        }
    }

    /// A model is called with the list as it stands; 0 is the planning call.
    pub fn called(&mut self, call: u32) {
        let hooks = self.placed.iter_mut().map(|placed| &mut placed.it);
        for it in hooks.chain(&mut self.prompts) {
            it.seen = Some((it.seen.map_or(call, |(first, _)| first), call));
        }
    }

    /// Whether it will take `message` out: it is not part of what is said in the conversation.
    pub fn holds(&self, message: &Message) -> bool {
        let Some(id) = message.id() else { return false };
        let placed = self.placed.iter().any(|placed| placed.it.id == id && !placed.persistent);
        placed || self.prompts.iter().any(|it| it.id == id)
    }
}

fn drop_from(list: &mut MessageList, ids: &BTreeSet<MsgId>) {
    if !ids.is_empty() {
        list.retain(|message| message.get().id().is_none_or(|id| !ids.contains(&id)));
    }
}

impl Message {
    /// Its identity, if a ledger put it into its list.
    pub fn id(&self) -> Option<MsgId> {
        self.private.from.as_ref().and_then(|from| from.msg_id)
    }
}

impl SkillHook {
    fn chunk(&self, id: MsgId) -> HookChunk {
        HookChunk {
            id,
            name: self.name.clone(),
            role: self.role,
            content: self.content.clone(),
            skill: self.skill.clone(),
            timing: self.timing,
        }
    }
}

impl Skills {
    /// Why a hook whose timing has come does not go in, if it does not.
    fn passes_over(&self, hook: &SkillHook, call: Option<CalledTool<'_>>) -> Option<NotInjectedReason> {
        if self.off.contains(&hook.skill) {
            return Some(NotInjectedReason::Disabled);
        }
        if hook.timing != Timing::AfterToolCall {
            return None;
        }
        let names = call.map_or(&[] as &[&str], |call| call.names);
        if hook.is_about(names) {
            return None;
        }
        Some(NotInjectedReason::Filter { names: names.iter().map(|name| (*name).to_owned()).collect() })
    }
}

impl Timing {
    /// The time that a text stands that is not persistent.
    fn lifetime(self) -> Lifetime {
        match self {
            Self::AfterUserInput | Self::BeforeFirstAgent => Lifetime::Stays,
            Self::BeforePlanning | Self::BeforeEachAgent | Self::AfterToolCall => Lifetime::Passing,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
