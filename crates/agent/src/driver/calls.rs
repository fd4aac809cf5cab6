//! The tool calls of one batch: cleared, run or answered by a hook, settled, delivered.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::checkpoint::runtime::ToolExecution;
use domain::checkpoint::{AfterTool, Observed, RuntimeEvent};
use domain::id::{CallId, HookName};
use domain::json::Object;
use domain::message::CallPart;
use domain::ruling::Ruling;
use domain::tool::{ToolCall, ToolOutput};
use domain::turn::Answer;
use engine::{Clearance, Permit};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{Unruled, Work};

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

/// A call whose result is final.
struct Done {
    call: ToolCall,
    output: ToolOutput,
    /// The hook that answered in the tool's place, if one did.
    by: Option<HookName>,
    took: Duration,
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
        let id = CallId::from(part.id.as_str());
        let mut call = ToolCall { id, tool, raw_tool, arguments: Object::new() };
        match part.arguments() {
            Ok(arguments) => call.arguments = arguments,
            Err(why) => return self.refuse(place, &call, format!("the tool did not run: {why}"), None),
        }
        match self.hooks.clear(&self.cx, call).await {
            Clearance::Run(permit) => {
                self.turn.cleared(place, self.changes_nothing(permit.call()));
                self.flights.permits.insert(place, permit);
            }
            Clearance::Substituted { call, output, by, took } => {
                // Its result stands in the tool's place; `approve_tool` and `after_tool` are skipped.
                let done = Done { call, output, by: Some(by), took };
                self.tell_start(&done.call, done.by.as_ref());
                self.settle(place, done);
            }
            // A hook that was cancelled refuses too, but that is no verdict: the call is left to the turn's end.
            Clearance::Refused { .. } if self.cx.cancel.is_cancelled() => {}
            Clearance::Refused { call, text, by } => self.refuse(place, &call, text, by),
            Clearance::Abort(aborted) => self.stop(aborted),
        }
    }

    fn changes_nothing(&self, call: &ToolCall) -> bool {
        self.cx.known.owner(&call.tool).is_none()
            && self.runner.tools.get(&call.tool).is_some_and(|tool| tool.read_only())
    }

    fn refuse(&mut self, place: usize, call: &ToolCall, text: String, by: Option<HookName>) {
        self.tell(RuntimeEvent::ToolExecSkipped {
            tool: call.tool.clone(),
            reason: text.clone(),
            tool_call_id: call.id.to_string(),
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
            Ok((after, Ruling::Proceed)) => {
                self.settle(place, Done { call: after.call, output: after.result, by: None, took });
            }
            Ok((after, Ruling::Abort(aborted))) => {
                self.withhold(place, after, aborted.text());
                self.stop(aborted);
            }
            Ok((_, Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. })) => match never {},
            Ok((after, Ruling::Deny(denied))) => self.withhold(place, after, denied.text()),
            Err(Unruled(after)) => self.withhold(place, after, WITHHELD.into()),
        }
    }

    /// The tool ran, but `text` stands in the place of its result.
    fn withhold(&mut self, place: usize, after: AfterTool, text: String) {
        self.settle(place, Done { call: after.call, output: ToolOutput::error(text), by: None, took: after.duration });
    }

    /// Delivers a result that is final: to the user, the model, observers.
    fn settle(&mut self, place: usize, done: Done) {
        let done = Done { output: self.deliver(done.output), ..done };
        self.tell_end(&done);
        let answer = Answer {
            text: done.output.for_llm.clone(),
            media: Vec::new(),
            handled: done.output.response_handled,
            execution: Some(execution(&done)),
        };
        self.tell(Observed::PostToolUse { call: done.call, output: done.output, duration: done.took });
        self.turn.answered(place, answer);
    }

    /// Shows what is for the user, and tells the model what became of the rest.
    fn deliver(&self, output: ToolOutput) -> ToolOutput {
        if !output.for_user.is_empty() && !output.silent {
            self.outlet.for_user(&output.for_user);
        }
        let unusable = output.media.clone();
        output.delivered(&unusable, NO_MEDIA)
    }

    fn tell_start(&self, call: &ToolCall, by: Option<&HookName>) {
        self.tell(RuntimeEvent::ToolExecStart {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            tool_call_id: call.id.to_string(),
            hook: by.map(ToString::to_string),
        });
    }

    fn tell_end(&self, done: &Done) {
        self.tell(RuntimeEvent::ToolExecEnd {
            tool: done.call.tool.clone(),
            duration: done.took,
            for_llm_len: done.output.for_llm.len(),
            for_user_len: done.output.for_user.len(),
            is_error: done.output.is_error,
            r#async: done.output.is_async,
            tool_call_id: done.call.id.to_string(),
            hook: done.by.as_ref().map(ToString::to_string),
        });
    }
}

fn execution(done: &Done) -> ToolExecution {
    ToolExecution {
        name: done.call.tool.clone(),
        success: !done.output.is_error,
        error_summary: done.output.is_error.then(|| summary(&done.output.for_llm)),
    }
}

fn not_found(tool: &str) -> ToolOutput {
    ToolOutput::error(format!("tool \"{tool}\" not found"))
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
