//! The texts of skills in a turn: what it has of them, who is told of them, and what is kept as evidence.

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::history::SignedContent;
use pintle_domain::id::EventId;
use pintle_domain::ledger::{HookChunk, LedgerEvent};
use pintle_domain::record::{EventRecord, EventRuling, Record};
use pintle_domain::turn::{Fact, TurnSetup};
use pintle_domain::verdict::VerdictKind;

use super::runner::Runner;
use super::shape;
use super::work::Work;
use crate::skills::TextRequest;

impl Runner {
    /// What a turn has beside its conversation; nothing if it is a plain one. Settled once, for the whole turn.
    pub(super) fn equipment(&self, request: Option<TextRequest<'_>>) -> Option<TurnSetup> {
        let skills = self.skill_set.skills();
        let skills = match request.and_then(|request| request.skills) {
            Some(wanted) => skills.narrowed(wanted),
            None => skills,
        };
        let enabled = request.is_none_or(|request| request.enable_tools);
        shape::equipment(&self.settings, &self.offered, skills, enabled)
    }
}

impl Work<'_> {
    /// Tells of everything that happened to texts: the evidence first, then whoever keeps the conversation.
    pub(super) fn tell_texts(&mut self) {
        let mut events = self.turn.take_events();
        // A turn that is ending sends nothing more, so what leaves then is gone.
        if !self.turn.is_ending() {
            events.iter_mut().for_each(|event| event.settle(|id| self.wire.fate(id)));
        }
        let records = events.iter().filter_map(|event| self.evidence(event)).collect();
        self.hooks.keep(records);
        let chunks = self.turn.to_announce().to_vec();
        let Some(last) = chunks.last() else { return };
        // Noted first: a text that was told of twice would be kept twice.
        drop(self.note(Fact::Announced { upto: last.id }));
        let records = chunks.iter().filter_map(|chunk| self.announce(chunk)).collect();
        self.hooks.keep(records);
    }

    fn announce(&self, chunk: &HookChunk) -> Option<EventRecord> {
        let signed = SignedContent::hook(chunk, self.tenant(), self.signed_session());
        let sent = self.turn_env.user_output.hook(chunk, &self.runner.front_ends.sign(signed));
        let text = if sent { "sent" } else { "no front end" };
        let hooks = self.turn.skills()?.hooks.clone();
        let hook = hooks.iter().find(|hook| (&hook.skill, &hook.name) == (&chunk.skill, &chunk.name))?;
        let at = chunk.timing.checkpoint();
        let outcome = pintle_domain::record::HookOutcome::Said {
            word: VerdictKind::Inject,
            reason: Some(format!("{} {text}", chunk.id)),
            took: std::time::Duration::ZERO,
        };
        let lines = vec![Record::of(&hook.registered(), at, outcome)];
        Some(EventRecord { kind: Some("hook_persisted"), hooks: lines.into(), ..self.blank(at, None) })
    }

    fn evidence(&self, event: &LedgerEvent) -> Option<EventRecord> {
        let skills = self.turn.skills()?;
        let (at, hooks) = event.records(skills);
        let text = event.text(skills);
        let mut record = EventRecord { hooks: hooks.into(), kind: Some(event.name()), ..self.blank(at, text) };
        if let LedgerEvent::Injected { round, call, .. } = event {
            // The lines of a point are what is kept of every hook that is registered there.
            record.kind = None;
            record.who.iteration = *round;
            record.who.tool_call_id = call.as_deref().map(Into::into);
        }
        Some(record)
    }

    /// What is kept of something that happened just now.
    pub(super) fn blank(&self, checkpoint: CheckpointKind, text: Option<String>) -> EventRecord {
        let mut who = self.hooks.who().clone();
        who.iteration = self.turn.iteration();
        who.tool_call_id = None;
        EventRecord {
            event_id: EventId::fresh(),
            at: jiff::Timestamp::now(),
            checkpoint,
            kind: None,
            who,
            tool: None,
            input: None,
            ruling: EventRuling { text, ..EventRuling::word(VerdictKind::Inject) },
            hooks: pintle_domain::record::RecordLines::default(),
        }
    }
}
