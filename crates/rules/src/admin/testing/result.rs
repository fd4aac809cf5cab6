//! What came of a test, as it is published.

use std::time::Duration;

use crate::reply;
use pintle_domain::account::{Account, RewriteOutcome};
use pintle_domain::checkpoint::{Checkpoint, CheckpointKind, Reply};
use pintle_domain::execution::masked;
use pintle_domain::fault::{Cause, Fault};
use pintle_domain::json::{Value, json};
use pintle_domain::record::{HookOutcome, Record};
use pintle_domain::rule::Decision;
use pintle_domain::ruling::Ruling;
use pintle_domain::verdict::VerdictKind;
use serde::Serialize;

use crate::handler::TryResult;

/// The result of a test. Its JSON is the `result` of `hooks.test`; members that its handler does not have are absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestResult {
    /// The decision of the hook, or that it failed.
    pub decision: Decision,
    /// How long its handler took.
    pub duration_ms: u64,
    /// Why. In this and in what it wrote stands nothing that looks like a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The beginning of a command's output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// The beginning of what a command complained, or of what a script wrote to its console.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// The status of an endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u16>,
    /// `true` where the endpoint's answer is not JSON, which lets pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_json: Option<bool>,
    /// Likely mistakes in how it answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The fault, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The input that the hook wants in the place of the given one, whether it may or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Value>,
    /// Whether its matcher wants this event.
    pub matcher_matched: bool,
    /// Whether its condition does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel_result: Option<bool>,
    /// Why that cannot be said: at an event this would be a fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel_error: Option<String>,
    /// The decision that it would count for: `allow`, `block` or `ask`.
    pub effective: &'static str,
    /// The fate that `updatedInput` would have: `applied`, or `dropped: ` and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<String>,
    /// The context that it wants the model to read besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_context: Option<String>,
    /// Whether a judge saw an attempt to talk it into something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injection_detected: Option<bool>,
    /// The fault's word of the closed list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<&'static str>,
    /// The model that judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tokens that the model took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Of several hooks the one that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// What each of several hooks said, in the order in which they were asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<HookSaid>,
}

/// What one of several hooks said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HookSaid {
    /// The hook.
    pub hook: String,
    /// Its decision, or that it failed.
    pub decision: Decision,
    /// Why, or the fault in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl HookSaid {
    /// What the hook called `name` said in `result`.
    pub(super) fn of(name: &str, result: &TestResult) -> Self {
        let reason = result.error.clone().or_else(|| result.reason.clone());
        Self { hook: name.to_owned(), decision: result.decision, reason }
    }
}

impl Default for TestResult {
    /// Nobody was asked.
    fn default() -> Self {
        Self {
            decision: Decision::Allow,
            duration_ms: 0,
            reason: None,
            stdout: None,
            stderr: None,
            status_code: None,
            non_json: None,
            warnings: Vec::new(),
            error: None,
            updated_input: None,
            matcher_matched: true,
            cel_result: None,
            cel_error: None,
            effective: Decision::Allow.word(),
            rewrite: None,
            additional_context: None,
            injection_detected: None,
            fault: None,
            model: None,
            tokens: None,
            hook: None,
            chain: Vec::new(),
        }
    }
}

/// The input that a reply wants to put in the place of its subject, and the context that it wants the model to read.
pub(super) fn proposed(reply: &Reply) -> (Option<Value>, Option<String>) {
    let input = if let Reply::PreToolUse(heard) = reply {
        heard.rewrite.as_deref().cloned().map(Value::Object)
    } else if let Reply::UserPromptSubmit(heard) = reply {
        heard.rewrite.as_deref().map(|text| json!({ "rawInput": text }))
    } else {
        None
    };
    (input, reply.context().map(str::to_owned))
}

impl TestResult {
    /// The result of one question to a gate.
    pub(super) fn of_record<C: Checkpoint>(
        record: Record,
        ruling: &Ruling<C>,
        (updated_input, additional_context): (Option<Value>, Option<String>),
    ) -> Self {
        let account = record.account.map(|account| *account).unwrap_or_default();
        let base = match record.outcome {
            HookOutcome::Said { word, reason, took } => {
                Self { decision: decision(word), reason, duration_ms: millis(took), ..Self::default() }
            }
            HookOutcome::Failed { fault, took, .. } => {
                let words = account.detail.as_ref().map_or_else(|| fault.explained().to_string(), Cause::shown);
                Self::of_fault(&fault, words, took)
            }
            HookOutcome::Told | HookOutcome::NotRun(_) => Self::default(),
        };
        let effective = match ruling {
            Ruling::Proceed | Ruling::Respond { .. } => Decision::Allow,
            Ruling::Ask { .. } => Decision::Ask,
            Ruling::Deny(_) | Ruling::Abort(_) => Decision::Block,
        };
        let rewrite = updated_input.as_ref().map(|_| match (&account.rewrite, effective) {
            (_, Decision::Block) => "dropped: a block changes nothing".to_owned(),
            (Some(RewriteOutcome::Dropped(why)), _) => format!("dropped: {why}"),
            (Some(RewriteOutcome::Applied) | None, _) => "applied".to_owned(),
        });
        let base = Self {
            effective: effective.word(),
            updated_input,
            rewrite,
            additional_context,
            warnings: record.warnings,
            ..base
        };
        base.with(account)
    }

    /// The result of what an observer said.
    pub(super) fn of_tried(tried: TryResult, kind: CheckpointKind, took: Duration) -> Self {
        let base = match tried.said {
            Ok(said) => {
                let decision = match said.decision {
                    reply::Decision::Allow => Decision::Allow,
                    reply::Decision::Ask => Decision::Ask,
                    reply::Decision::Block | reply::Decision::Defer => Decision::Block,
                };
                let nothing = || format!("dropped: nothing is rewritten at {}", kind.name());
                Self {
                    decision,
                    duration_ms: millis(took),
                    reason: said.reason,
                    rewrite: said.updated_input.is_some().then(nothing),
                    updated_input: said.updated_input.map(Value::Object),
                    additional_context: said.context,
                    warnings: said.warnings,
                    ..Self::default()
                }
            }
            Err((fault, words)) => Self::of_fault(&fault, words.shown(), took),
        };
        base.with(tried.account)
    }

    /// A fault, in words. What it counts for is for others to say.
    pub(super) fn of_fault(fault: &Fault, words: String, took: Duration) -> Self {
        let is_late = matches!(fault, Fault::TimedOut { .. });
        let decision = if is_late { Decision::Timeout } else { Decision::Error };
        let (error, fault) = (Some(words), Some(fault.kind().word()));
        Self { decision, duration_ms: millis(took), error, fault, ..Self::default() }
    }

    fn with(self, account: Account) -> Self {
        let judged = account.model.is_some() || account.cached;
        Self {
            reason: self.reason.map(without_secrets),
            stdout: account.stdout.map(without_secrets),
            stderr: account.stderr.map(without_secrets),
            status_code: account.http_status,
            non_json: account.non_json.then_some(true),
            injection_detected: judged.then_some(account.injection_detected),
            model: account.model,
            tokens: account.tokens,
            ..self
        }
    }
}

/// A text of the hook's own, as the history would have it: whoever may try a hook need not know what it knows.
fn without_secrets(text: String) -> String {
    masked(&text).into_owned()
}

fn decision(word: VerdictKind) -> Decision {
    match word {
        VerdictKind::Inject | VerdictKind::Continue | VerdictKind::Modify | VerdictKind::Respond => Decision::Allow,
        VerdictKind::Ask => Decision::Ask,
        VerdictKind::Deny | VerdictKind::AbortTurn | VerdictKind::HardAbort => Decision::Block,
    }
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}
