//! The model, the tool and the loop without hooks: what every turn has to do.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use futures_util::future::BoxFuture;
use pintle_dialects::process::{frame, wire};
use pintle_domain::checkpoint::{BeforeTool, CheckpointKind, Subject};
use pintle_domain::id::EventId;
use pintle_domain::json::{Object, Rendered, json};
use pintle_domain::llm::{LlmReply, LlmRequest, ToolDef};
use pintle_domain::message::{CallPart, Message, Role};
use pintle_domain::tool::ToolOutput;
use pintle_engine::Permit;
use pintle_engine::tool::Tool;
use pintle_providers::{Delta, Provider, ProviderError};
use tokio_util::sync::CancellationToken;

use crate::child::Pipes;
use crate::stage::{NOTE_BYTES, TOOL, call, who};

/// Rounds with a call of the tool; a last answer follows.
pub(crate) const ROUNDS: usize = 10;
/// The message that begins a turn.
pub(crate) const PROMPT: &str = "Look up ten things, one after the other, and say when you are done.";
/// The name of the model, without that of its provider.
const MODEL: &str = "m";
/// The number in the frames of the floor, as long as those of a hook that has been asked for a while.
const ID: u64 = 10_000;

/// A model that asks for the tool in each round, and then is done. The same answers in every turn.
pub(crate) struct Replies(Vec<LlmReply>);

impl Replies {
    pub(crate) fn new() -> Self {
        let arguments = json!(call("wanted").arguments).to_string();
        let asks = |round| LlmReply::calls(vec![CallPart::new(&format!("call_{round}"), TOOL, &arguments)]);
        Self((0..ROUNDS).map(asks).chain([LlmReply::text("All ten are looked up.")]).collect())
    }
}

impl Provider for Replies {
    fn call<'a>(
        &'a self,
        _model: &'a str,
        request: &'a LlmRequest,
        _on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> BoxFuture<'a, Result<LlmReply, ProviderError>> {
        let round = request.messages.iter().filter(|message| message.get().role == Role::Assistant).count();
        let reply = self.0.get(round).cloned();
        Box::pin(
            async move { reply.ok_or_else(|| ProviderError::Final { message: "there are no more rounds".into() }) },
        )
    }
}

/// What the tool answers: as many bytes as it was asked with.
fn look_up(arguments: &Object) -> ToolOutput {
    let found = if arguments.contains_key("note") { "f" } else { "" };
    ToolOutput::ok(found.repeat(NOTE_BYTES))
}

pub(crate) fn definition() -> ToolDef {
    let text = json!({ "type": "string" });
    let parameters = json!({ "type": "object", "properties": { "mark": text, "note": text } });
    ToolDef::new(TOOL, "Looks something up.", parameters)
}

/// The tool as the agent has it.
pub(crate) struct LookUp(pub(crate) ToolDef);

impl Tool for LookUp {
    fn definition(&self) -> &ToolDef {
        &self.0
    }

    fn read_only(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, permit: Permit, _cancel: &'a CancellationToken) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { look_up(&permit.call().arguments) })
    }
}

/// The line that a process hook is sent before the tool runs.
pub(crate) fn line() -> anyhow::Result<Vec<u8>> {
    let asked = BeforeTool { call: call("wanted"), owner: None };
    let params = wire::params(&EventId::fresh(), jiff::Timestamp::now(), &who(), Subject::BeforeTool(&asked));
    let method = wire::method(CheckpointKind::BeforeTool).context("process hooks act at before_tool")?;
    Ok([frame::request_head(ID, method), params, frame::FRAME_TAIL.to_vec()].concat())
}

/// A whole turn in a bare loop; before the tool runs, `line` goes to each of `children`, and its answer is waited for.
pub(crate) async fn turn(
    model: &Arc<dyn Provider>,
    tools: &[Rendered<ToolDef>],
    (children, line): (&mut [Pipes], &[u8]),
) -> anyhow::Result<()> {
    let request = LlmRequest::new(MODEL, [Message::text(Role::User, PROMPT)]);
    let mut request = LlmRequest { tools: tools.to_vec(), ..request };
    loop {
        let reply = model.call(MODEL, &request, &|_| {}).await?;
        let calls = reply.tool_calls.clone();
        request.messages.push(reply.into_message(MODEL).into());
        if calls.is_empty() {
            return Ok(());
        }
        for call in calls {
            let arguments = call.arguments().map_err(|why| anyhow!(why))?;
            for child in children.iter_mut() {
                child.write(line)?;
                child.read()?;
            }
            let output = look_up(&arguments);
            request.messages.push(Message::tool(&call.id, output.for_llm).into());
        }
    }
}
