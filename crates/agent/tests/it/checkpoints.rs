//! Every checkpoint of the table has its emit site in the loop: a scripted turn hits each line of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use domain::checkpoint::{
    AfterLlm, AfterTool, ApproveTool, BeforeLlm, BeforeTool, CHECKPOINTS, CheckpointKind, Notice, PreToolUse,
    UserPromptSubmit,
};
use domain::verdict::Verdict;
use engine::{Answer, HookCx, NativeHook, async_trait};
use serde_json::json;

use crate::host::Host;

/// Counts how often it is reached, by checkpoint.
#[derive(Default)]
struct Counter(Mutex<BTreeMap<CheckpointKind, usize>>);

impl Counter {
    fn count(&self, kind: CheckpointKind) {
        *self.0.lock().unwrap().entry(kind).or_default() += 1;
    }
}

#[async_trait]
impl NativeHook for Counter {
    fn stages(&self) -> Vec<CheckpointKind> {
        CHECKPOINTS.iter().map(|row| row.kind).collect()
    }

    async fn on_event(&self, notice: &Notice) {
        self.count(notice.what.checkpoint());
    }

    async fn user_prompt_submit(&self, _cx: &HookCx<'_>, _at: &UserPromptSubmit) -> Answer<UserPromptSubmit> {
        self.count(CheckpointKind::UserPromptSubmit);
        Ok(Verdict::Continue)
    }

    async fn before_llm(&self, _cx: &HookCx<'_>, _at: &BeforeLlm) -> Answer<BeforeLlm> {
        self.count(CheckpointKind::BeforeLlm);
        Ok(Verdict::Continue)
    }

    async fn after_llm(&self, _cx: &HookCx<'_>, _at: &AfterLlm) -> Answer<AfterLlm> {
        self.count(CheckpointKind::AfterLlm);
        Ok(Verdict::Continue)
    }

    async fn before_tool(&self, _cx: &HookCx<'_>, _at: &BeforeTool) -> Answer<BeforeTool> {
        self.count(CheckpointKind::BeforeTool);
        Ok(Verdict::Continue)
    }

    async fn pre_tool_use(&self, _cx: &HookCx<'_>, _at: &PreToolUse) -> Answer<PreToolUse> {
        self.count(CheckpointKind::PreToolUse);
        Ok(Verdict::Continue)
    }

    async fn approve_tool(&self, _cx: &HookCx<'_>, _at: &ApproveTool) -> Answer<ApproveTool> {
        self.count(CheckpointKind::ApproveTool);
        Ok(Verdict::Continue)
    }

    async fn after_tool(&self, _cx: &HookCx<'_>, _at: &AfterTool) -> Answer<AfterTool> {
        self.count(CheckpointKind::AfterTool);
        Ok(Verdict::Continue)
    }
}

#[tokio::test]
async fn every_checkpoint_has_its_emit_site() {
    let script = json!({"replies": [
        {"tool_calls": [{"name": "list_dir", "arguments": {"path": "."}}]},
        {"text": ["done"]},
    ]});
    let mut host = Host::new(&script, &["list_dir"]);
    let counter = Arc::new(Counter::default());
    host.mount(vec![host.engine.native("counter", 0, counter.clone())]);
    let report = host.turn("look around").await;
    assert_eq!(report.reply, "done");
    host.engine.close().await;
    let counts = counter.0.lock().unwrap();
    let count = |kind| counts.get(&kind).copied().unwrap_or_default();
    for row in &CHECKPOINTS {
        let expected = match row.kind {
            CheckpointKind::BeforeLlm | CheckpointKind::AfterLlm => 2,
            CheckpointKind::Runtime => count(CheckpointKind::Runtime).max(1),
            CheckpointKind::SessionStart
            | CheckpointKind::UserPromptSubmit
            | CheckpointKind::BeforeTool
            | CheckpointKind::PreToolUse
            | CheckpointKind::ApproveTool
            | CheckpointKind::AfterTool
            | CheckpointKind::PostToolUse
            | CheckpointKind::Stop => 1,
        };
        assert_eq!(count(row.kind), expected, "{}", row.name);
    }
    // A second turn of the same session starts no session.
    assert_eq!(host.seen.names().iter().filter(|name| **name == "session_start").count(), 1);
}
