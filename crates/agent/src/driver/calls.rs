//! The tool calls of one batch: cleared, run or answered by a hook, settled, delivered.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::checkpoint::runtime::ToolExecution;
use domain::checkpoint::{AfterTool, Observed, RuntimeEvent};
use domain::id::{CallId, HookName};
use domain::message::CallPart;
use domain::ruling::Ruling;
use domain::tool::{ToolCall, ToolOutput};
use domain::turn::Answer;
use engine::{Clearance, Permit};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{Unruled, Work};

/// What the text of a result gains when the user has it already.
const DELIVERED_NOTE: &str = "The output above was already delivered to the user in this chat.";
/// Why media of a hook or tool goes nowhere.
const NO_MEDIA: &str = "no media store is in use";
/// What a result leaves when its turn was cancelled before every hook had seen it: what they would remove reaches nobody.
const WITHHELD: &str =
    "The tool ran, and its result was withheld: the turn was cancelled before every hook had seen it.";
/// How much of an error text stands in `turn_end`: a line of a listing.
const SUMMARY_BYTES: usize = 200;

/// Permits that wait, and calls that run.
pub(super) struct Flights {
    tasks: TaskTracker,
    permits: BTreeMap<usize, Permit>,
    running: BTreeMap<usize, Flight>,
}

struct Flight {
    call: ToolCall,
    handle: JoinHandle<(ToolOutput, Duration)>,
}

impl Flights {
    pub(super) fn new(tasks: TaskTracker) -> Self {
        Self { tasks, permits: BTreeMap::new(), running: BTreeMap::new() }
    }
}

impl Work<'_> {
    /// Clears the call that the model wrote in `part`.
    pub(super) async fn clear(&mut self, place: usize, part: CallPart) {
        self.cx.who.tool_call_id = Some(CallId::from(part.id.as_str()));
        let raw_tool = part.function.name.clone();
        let tool = self.cx.known.tool(&raw_tool).unwrap_or_else(|| raw_tool.clone());
        let arguments = match part.arguments() {
            Ok(arguments) => arguments,
            Err(why) => return self.refuse(place, &tool, &part.id, format!("the tool did not run: {why}"), None),
        };
        let call = ToolCall { id: CallId::from(part.id.as_str()), tool, raw_tool, arguments };
        match self.hooks.clear(&self.cx, call).await {
            Clearance::Run(permit) => {
                self.turn.cleared(place, self.changes_nothing(permit.call()));
                self.flights.permits.insert(place, permit);
            }
            Clearance::Substituted { call, output, by, took } => self.substitute(place, &call, output, by, took),
            // A hook that was cancelled refuses too, but that is no verdict: the call is left to the turn's end.
            Clearance::Refused { .. } if self.cx.cancel.is_cancelled() => {}
            Clearance::Refused { call, text, by } => self.refuse(place, &call.tool, &part.id, text, by),
            Clearance::Abort(aborted) => self.stop(aborted),
        }
    }

    fn changes_nothing(&self, call: &ToolCall) -> bool {
        self.cx.known.owner(&call.tool).is_none()
            && self.runner.tools.get(&call.tool).is_some_and(|tool| tool.read_only())
    }

    fn refuse(&mut self, place: usize, tool: &str, call_id: &str, text: String, by: Option<HookName>) {
        self.tell(RuntimeEvent::ToolExecSkipped {
            tool: tool.into(),
            reason: text.clone(),
            tool_call_id: call_id.into(),
            hook: by.map(|by| by.to_string()),
        });
        self.turn.answered(place, Answer::not_run(text));
    }

    /// Lets the cleared call run; others may be cleared meanwhile.
    pub(super) fn start(&mut self, place: usize) {
        let Some(permit) = self.flights.permits.remove(&place) else {
            return self.turn.answered(place, Answer::not_run("the call was not cleared"));
        };
        let call = permit.call().clone();
        // Another call may have been settled since this one was cleared.
        self.cx.who.tool_call_id = Some(call.id.clone());
        self.tell_start(&call, None);
        let (tools, cancel) = (self.runner.tools.clone(), self.cx.cancel.clone());
        // Nobody may answer for an injected tool but its owner, so no built-in of that name runs in its place.
        let owned = self.cx.known.owner(&call.tool).is_some();
        let handle = self.flights.tasks.spawn(async move {
            let started = Instant::now();
            let output = if owned { not_found(&permit.call().tool) } else { tools.run(permit, &cancel).await };
            (output, started.elapsed())
        });
        self.flights.running.insert(place, Flight { call, handle });
    }

    /// Waits for the running call, lets `after_tool` see its result, and settles it.
    pub(super) async fn land(&mut self, place: usize) {
        let Some(Flight { call, handle }) = self.flights.running.remove(&place) else {
            return self.turn.answered(place, Answer::not_run("the call did not start"));
        };
        self.cx.who.tool_call_id = Some(call.id.clone());
        let (output, took) = match handle.await {
            Ok(ran) => ran,
            Err(error) => (ToolOutput::error(format!("the tool failed: {error}")), Duration::ZERO),
        };
        let after = AfterTool { call, result: output, duration: took };
        match self.ask_hooks(after).await {
            Ok((after, Ruling::Proceed)) => self.settle(place, &after.call, after.result, None, took),
            Ok((after, Ruling::Abort(aborted))) => {
                self.withhold(place, &after.call, aborted.text(), took);
                self.stop(aborted);
            }
            Ok((_, Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. })) => match never {},
            Ok((after, Ruling::Deny(denied))) => self.withhold(place, &after.call, denied.text(), took),
            Err(Unruled(after)) => self.withhold(place, &after.call, WITHHELD.into(), took),
        }
    }

    /// The tool ran, but `text` stands in the place of its result.
    fn withhold(&mut self, place: usize, call: &ToolCall, text: String, took: Duration) {
        let output = ToolOutput::error(text.as_str());
        self.tell_end(call, &output, None, took);
        self.turn.answered(place, Answer { execution: Some(execution(call, &output)), ..Answer::not_run(text) });
    }

    /// A hook's result stands in the tool's place; `approve_tool` and `after_tool` are skipped.
    fn substitute(&mut self, place: usize, call: &ToolCall, output: ToolOutput, by: HookName, took: Duration) {
        self.tell_start(call, Some(&by));
        self.settle(place, call, output, Some(&by), took);
    }

    /// Delivers a result that is final: to the user, the model, observers.
    fn settle(&mut self, place: usize, call: &ToolCall, output: ToolOutput, by: Option<&HookName>, took: Duration) {
        let output = self.deliver(output);
        self.tell_end(call, &output, by, took);
        let answer = Answer {
            text: output.for_llm.clone(),
            media: Vec::new(),
            handled: output.response_handled,
            execution: Some(execution(call, &output)),
        };
        self.tell(Observed::PostToolUse { call: call.clone(), output, duration: took });
        self.turn.answered(place, answer);
    }

    /// Shows what is for the user, and tells the model what became of the rest.
    fn deliver(&self, mut output: ToolOutput) -> ToolOutput {
        if !output.for_user.is_empty() && !output.silent {
            self.outlet.for_user(&output.for_user);
        }
        let media = std::mem::take(&mut output.media);
        if output.response_handled && !media.is_empty() {
            output.response_handled = false;
            output.is_error = true;
            output.for_llm = format!("failed to deliver attachment: {NO_MEDIA}");
        } else {
            for entry in &media {
                append(&mut output.for_llm, &format!("media unavailable: {entry}: {NO_MEDIA}"));
            }
        }
        if output.response_handled {
            append(&mut output.for_llm, DELIVERED_NOTE);
        }
        if !output.artifact_tags.is_empty() {
            let paths = format!("Local artifact paths: {}", output.artifact_tags.join(", "));
            append(&mut output.for_llm, &paths);
        }
        output
    }

    fn tell_start(&self, call: &ToolCall, by: Option<&HookName>) {
        self.tell(RuntimeEvent::ToolExecStart {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            tool_call_id: call.id.to_string(),
            hook: by.map(ToString::to_string),
        });
    }

    fn tell_end(&self, call: &ToolCall, output: &ToolOutput, by: Option<&HookName>, took: Duration) {
        self.tell(RuntimeEvent::ToolExecEnd {
            tool: call.tool.clone(),
            duration: took,
            for_llm_len: output.for_llm.len(),
            for_user_len: output.for_user.len(),
            is_error: output.is_error,
            r#async: output.is_async,
            tool_call_id: call.id.to_string(),
            hook: by.map(ToString::to_string),
        });
    }
}

fn execution(call: &ToolCall, output: &ToolOutput) -> ToolExecution {
    ToolExecution {
        name: call.tool.clone(),
        success: !output.is_error,
        error_summary: output.is_error.then(|| summary(&output.for_llm)),
    }
}

fn not_found(tool: &str) -> ToolOutput {
    ToolOutput::error(format!("tool \"{tool}\" not found"))
}

fn append(text: &mut String, note: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(note);
}

/// The beginning of an error text, on one line.
fn summary(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut end = line.len().min(SUMMARY_BYTES);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line[..end].to_owned()
}
