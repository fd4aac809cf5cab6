//! Results that are too long for the model: it gets their beginning, the session keeps the rest.

use pintle_domain::kept_result::{KeptResult, LineRange, ResultPlace, beginning};
use pintle_domain::session::JournalEntry;
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_domain::turn::Fact;

use super::work::Work;
use crate::tools::READ_FILE;

impl Work<'_> {
    /// The result as the model reads it; the first `said` bytes of its text are what the tool and the hooks said.
    pub(super) fn bounded(&mut self, output: ToolOutput, said: usize) -> ToolOutput {
        output.bounded(said, |text| self.keep_result(text))
    }

    /// Keeps a long text for `read_file`, and says under which number; nothing if the agent cannot read it.
    fn keep_result(&mut self, text: &str) -> Option<u64> {
        self.runner.tools.get(READ_FILE)?;
        let session = &mut self.conversation.session;
        let kept = KeptResult { id: session.results().next_id(), text: text.to_owned() };
        let (id, entry) = (kept.id, JournalEntry::Kept(kept));
        let journal = &self.conversation.journal;
        if self.kept && journal.store().is_some() {
            drop(journal.write(&self.runner.settings.id, vec![entry.clone()]));
        }
        session.apply(entry);
        Some(id)
    }

    /// The page of a long result that `call` of `read_file` asks for; nothing if it asks for a file.
    pub(super) fn page(&self, call: &ToolCall) -> Option<ToolOutput> {
        if call.tool != READ_FILE {
            return None;
        }
        let place = ResultPlace::of(call.text("path")?)?;
        let number = |name: &str| call.arguments.get(name).and_then(pintle_domain::json::Value::as_u64);
        let lines = LineRange { offset: number("offset"), limit: number("limit") };
        let page = place.and_then(|place| self.conversation.session.results().page(place, lines));
        Some(page.map_or_else(ToolOutput::error, ToolOutput::ok))
    }

    /// Cuts the result that stands at `at` in the conversation to at most `max` bytes; the rest stays within reach.
    pub(super) fn trim(&mut self, at: usize, max: usize) {
        let Some(text) = self.turn.messages().get(at).map(|message| message.get().content.clone()) else { return };
        let id = self.keep_result(&text);
        drop(self.note(Fact::Trimmed { at, text: beginning(&text, max, id) }));
    }
}
