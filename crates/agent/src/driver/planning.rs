//! The planning call of a turn: no tool is offered, and what comes back says whether tools are needed.

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::llm::LlmReply;
use pintle_domain::planning::ToolNeed;
use pintle_domain::record::EventRecord;

use super::model::CheckedAnswer;
use super::shape::{self, ModelRequest};
use super::work::Work;

impl Work<'_> {
    /// Asks the model for a plan, and notes what it said.
    pub(super) async fn plan(&mut self) {
        let Some(answer) = self.answer_to(ModelRequest::Plan).await else { return };
        self.usage.add(answer.reply.usage);
        let lacks = answer.lacks();
        let CheckedAnswer { reply, model, .. } = answer;
        let need_tool = self.needs_tool(&reply);
        // An empty plan says nothing of tools; as an answer it is none.
        if let Some(text) = lacks.filter(|_| !need_tool) {
            return self.fail("llm", text);
        }
        drop(self.note(shape::plan(&self.runner.settings, &reply, &model, need_tool)));
    }

    fn needs_tool(&self, reply: &LlmReply) -> bool {
        let need = self.runner.need_tool.need(reply);
        let goes_on = shape::goes_on(&self.runner.settings, need);
        if need == ToolNeed::Unsaid {
            let became = if goes_on { "the loop follows" } else { "it is the answer" };
            let text = format!("the plan does not say whether tools are needed: {became}");
            let at = CheckpointKind::BeforePlanning;
            let record = EventRecord { kind: Some("plan_tag_missing"), ..self.blank(at, Some(text)) };
            self.hooks.keep(vec![record]);
        }
        goes_on
    }
}
