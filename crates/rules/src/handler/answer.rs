//! From what a handler said to what a chain takes.

use crate::reply::{self, CurrentInput, Decision, HandlerReply, InputShape, ReplyFault, Rewrite};
use pintle_domain::checkpoint::{PreToolUse, Reply, RuleSubject, SubagentStart, Subject, UserPromptSubmit};
use pintle_domain::fault::{Cause, Direction, Fault, FaultKind, ProtocolBreach};
use pintle_domain::json::Object;
use pintle_domain::verdict::{ParsedVerdict as HeardAt, Reason, Verdict};

/// An answer that was read, and how its rewrite is written.
pub(crate) struct ReadAnswer {
    pub(crate) said: HandlerReply,
    pub(crate) shape: InputShape,
}

/// A fault with the words for it.
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    pub(crate) detail: Cause,
}

impl Failure {
    /// A fault that is not in the answer.
    pub(crate) fn of(fault: Fault, detail: impl Into<Cause>) -> Self {
        Self { fault, detail: detail.into() }
    }

    /// Something that is missing or refused before anybody was asked.
    pub(crate) fn unavailable(detail: impl Into<Cause>) -> Self {
        let detail = detail.into();
        Self { fault: Fault::Unavailable { cause: detail.clone() }, detail }
    }
}

impl From<ReplyFault> for Failure {
    fn from(broken: ReplyFault) -> Self {
        let detail = Cause::from(broken.to_string());
        let fault = match (&broken, broken.kind()) {
            (ReplyFault::Exited { code, .. }, _) => Fault::exited(*code),
            (ReplyFault::Killed { signal, .. }, _) => Fault::killed(*signal),
            (ReplyFault::TooLarge { .. }, _) => {
                Fault::TooLarge { way: Direction::Reply, limit: reply::MAX_REPLY_BYTES }
            }
            (ReplyFault::Unreadable(_), FaultKind::Unreadable) => Fault::Unreadable { cause: detail.clone() },
            (ReplyFault::Unreadable(_), _) => Fault::Protocol(ProtocolBreach::Broke(detail.clone())),
        };
        Self { fault, detail }
    }
}

/// The tool and the input that a judge is shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ShownInput<'a> {
    pub(crate) tool: &'a str,
    pub(crate) input: Option<&'a Object>,
}

/// The part of a subject that a judge is shown: never the message of the user.
pub(crate) fn facts<'a>(subject: &Subject<'a>) -> ShownInput<'a> {
    match subject.of_rules() {
        Some(RuleSubject::PreToolUse(gate)) => ShownInput { tool: &gate.call.tool, input: Some(&gate.call.arguments) },
        Some(RuleSubject::SubagentStart(start)) => {
            ShownInput { tool: start.call.as_ref().map_or("", |call| &call.tool), input: Some(&start.input) }
        }
        Some(RuleSubject::UserPromptSubmit(_)) | None => ShownInput::default(),
    }
}

/// The reply at `subject` that `answer` is.
///
/// # Errors
/// Its rewrite has no shape that is allowed there.
pub(crate) fn reply(subject: &Subject<'_>, answer: ReadAnswer) -> Result<Reply, ReplyFault> {
    let ReadAnswer { said, shape } = answer;
    let HandlerReply { decision, reason, context, updated_input, warnings, .. } = said;
    let reason = Reason::new(reason.as_deref().unwrap_or_default());
    match subject.of_rules() {
        Some(RuleSubject::PreToolUse(gate)) => {
            let current = CurrentInput::Input(&gate.call.arguments);
            let rewrite = match reply::rewrite(updated_input, current, shape)? {
                Some(Rewrite::Input(input)) => Some(Box::new(input)),
                Some(Rewrite::Prompt(_)) | None => None,
            };
            let verdict = match decision {
                Decision::Allow => Verdict::Continue,
                Decision::Ask => Verdict::Ask(reason),
                Decision::Block | Decision::Defer => Verdict::Deny(reason),
            };
            Ok(Reply::PreToolUse(HeardAt::<PreToolUse> { rewrite, context, warnings, ..verdict.into() }))
        }
        Some(RuleSubject::UserPromptSubmit(submitted)) => {
            let current = CurrentInput::Prompt(&submitted.prompt);
            let rewrite = match reply::rewrite(updated_input, current, shape)? {
                Some(Rewrite::Prompt(text)) => Some(Box::new(text)),
                Some(Rewrite::Input(_)) | None => None,
            };
            let verdict = lets_pass(decision, reason);
            Ok(Reply::UserPromptSubmit(HeardAt::<UserPromptSubmit> { rewrite, context, warnings, ..verdict.into() }))
        }
        Some(RuleSubject::SubagentStart(_)) => {
            let verdict = lets_pass(decision, reason);
            Ok(Reply::SubagentStart(HeardAt::<SubagentStart> { context, warnings, ..verdict.into() }))
        }
        None => Err(ReplyFault::Unreadable("rules are not asked here".into())),
    }
}

/// Where nobody can be asked, an ask is a block.
fn lets_pass<C>(decision: Decision, reason: Reason) -> Verdict<C>
where
    C: pintle_domain::checkpoint::Checkpoint<Deny = Reason>,
{
    match decision {
        Decision::Allow => Verdict::Continue,
        Decision::Block | Decision::Ask | Decision::Defer => Verdict::Deny(reason),
    }
}
