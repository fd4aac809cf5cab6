//! The planning call of a turn: no tool is offered, and what comes back says whether tools are needed.

use domain::checkpoint::CheckpointKind;
use domain::llm::LlmReply;
use domain::planning::{Need, stripped};
use domain::record::EventRecord;
use domain::turn::Fact;

use super::model::{Answered, Asking};
use super::work::Work;
use crate::settings::OnMissingTag;

impl Work<'_> {
    /// Asks the model for a plan, and notes what it said.
    pub(super) async fn plan(&mut self) {
        let Some(Answered { reply, model, .. }) = self.answer_to(Asking::Plan).await else { return };
        self.spend(reply.usage);
        let need_tool = self.needs_tool(&reply);
        let content = stripped(&reply.content).trim().to_owned();
        // Without its thoughts: they belong to a call that is not gone on with.
        let dropped = need_tool && self.runner.settings.planning.as_ref().is_some_and(|planning| !planning.record);
        let plan = LlmReply::text(if dropped { String::new() } else { content });
        drop(self.note(Fact::Planned { message: plan.into_message(&model).into(), need_tool }));
    }

    fn needs_tool(&self, reply: &LlmReply) -> bool {
        match self.runner.need_tool.need(reply) {
            Need::Tools => true,
            Need::Nothing => false,
            Need::Unsaid => {
                let planning = self.runner.settings.planning.as_ref();
                let goes_on = planning.is_some_and(|planning| planning.on_missing_tag == OnMissingTag::Loop);
                let became = if goes_on { "the loop follows" } else { "it is the answer" };
                let text = format!("the plan does not say whether tools are needed: {became}");
                let at = CheckpointKind::BeforePlanning;
                let record = EventRecord { kind: Some("plan_tag_missing"), ..self.blank(at, Some(text)) };
                self.around.hooks.keep(vec![record]);
                goes_on
            }
        }
    }
}
