//! A loop of one's own around Pintle: one native hook, one process hook, and no tool without a permit.

use std::path::Path;
use std::sync::Arc;

use engine::domain::checkpoint::{AfterTool, CheckpointKind, PreToolUse};
use engine::domain::id::{CallId, TurnId};
use engine::domain::identity::Identity;
use engine::domain::json::{Value, json};
use engine::domain::tool::{ToolCall, ToolOutput};
use engine::domain::verdict::Verdict;
use engine::{Clearance, Engine, HookCx, NativeAnswer, NativeHook, NullStore, Permit, TurnCx, async_trait};

/// Refuses to refund more than 200.
struct RefundLimit;

#[async_trait]
impl NativeHook for RefundLimit {
    fn stages(&self) -> Vec<CheckpointKind> {
        vec![CheckpointKind::PreToolUse]
    }

    async fn pre_tool_use(&self, _cx: &HookCx<'_>, at: &PreToolUse) -> NativeAnswer<PreToolUse> {
        let amount = at.call.arguments.get("amount").and_then(Value::as_f64);
        Ok(match (at.call.tool.as_str(), amount) {
            ("refund", Some(amount)) if amount <= 200.0 => Verdict::Continue,
            ("refund", _) => Verdict::deny("refunds above 200 need a person"),
            _ => Verdict::Continue,
        })
    }
}

/// The host's own tool runner. It takes nothing but a permit, so no call site can forget the hooks.
fn run_tool(permit: Permit) -> ToolOutput {
    ToolOutput::ok(format!("{} done with {}", permit.call().tool, json!(permit.call().arguments)))
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "it is what the example shows")]
async fn main() -> anyhow::Result<()> {
    let engine = Engine::new(Arc::new(NullStore), Vec::new());
    let guard = json!({ "enabled": true, "command": ["sh", "guard.sh"], "intercept": ["before_tool"] });
    engine.replace(vec![
        engine.native("refund-limit", 0, Arc::new(RefundLimit)),
        process::mount_entry(&engine, "guard", &guard, Path::new(env!("CARGO_MANIFEST_DIR")))?,
    ])?;

    let hooks = engine.dispatcher();
    let cx = TurnCx::new(Identity::top("support", "session-1", TurnId::fresh()));
    let asked = [("refund", json!({"amount": 50})), ("refund", json!({"amount": 900})), ("delete", json!({}))];
    for (i, (tool, arguments)) in asked.into_iter().enumerate() {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let call =
            ToolCall { id: CallId::new(format!("call-{i}")), tool: tool.into(), raw_tool: tool.into(), arguments };
        let output = match hooks.clear(&cx, call.clone()).await {
            Clearance::Run(permit, _) => run_tool(permit),
            Clearance::Substituted { output, .. } => output,
            Clearance::Refused { text, .. } => ToolOutput::error(text),
            Clearance::Waiting { approval, .. } => ToolOutput::error(approval.reason),
            Clearance::Abort { aborted, .. } => anyhow::bail!(aborted.text()),
        };
        let after = AfterTool { call, result: output, duration: std::time::Duration::ZERO };
        let (after, _ruling) = hooks.check(&cx, after).await;
        println!("{tool}: {}", after.result.for_llm);
    }
    engine.close().await;
    Ok(())
}
