//! What came of a run, and how it is kept for whoever asks the same again. Pure.

use pintle_domain::id::TurnId;
use pintle_domain::json::{Value, from_value, json, parse};
use pintle_domain::llm::{OddEnd, Usage};
use serde::{Deserialize, Serialize};

use crate::error::{ApiError, ErrorCode};
use crate::heard::Heard;

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RunOutcome {
    Completed(RunAnswer),
    Failed(ApiError),
    Cancelled,
    /// The host goes away, and the turn waits for a person: it goes on at the next start.
    Parked(Vec<String>),
    /// Another node has the session: what was said went into the turn there, or nothing is to be done here.
    Elsewhere(Option<TurnId>),
}

/// What a run brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunAnswer {
    pub(crate) run_id: TurnId,
    pub(crate) content: String,
    pub(crate) usage: Usage,
    pub(crate) thinking: Option<String>,
    /// The files for the user, as references.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) media: Vec<String>,
    #[serde(default)]
    pub(crate) end: AnswerEnd,
}

/// How the model ended its last answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AnswerEnd {
    #[default]
    Whole,
    /// It came to a bound.
    Cut,
    /// The provider withheld the rest, or the model would not go on.
    Withheld,
}

impl AnswerEnd {
    /// The end of an answer that ended as `odd` says.
    pub(crate) fn of(odd: Option<OddEnd>) -> Self {
        match odd {
            Some(OddEnd::Length | OddEnd::ContextExceeded | OddEnd::PauseTurn) => Self::Cut,
            Some(OddEnd::ContentFilter | OddEnd::Refusal) => Self::Withheld,
            Some(OddEnd::Empty | OddEnd::ReasoningOnly) | None => Self::Whole,
        }
    }
}

/// What was heard of a run, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeptOutcome {
    pub(crate) heard: Vec<Heard>,
    pub(crate) outcome: RunOutcome,
}

impl KeptOutcome {
    /// A message that went into a run which was under way.
    pub(crate) fn injected(run: Option<&TurnId>) -> Self {
        let details = json!({ "kind": INJECTED, "runId": run });
        let outcome = RunOutcome::Failed(ApiError::precondition("it went into another run").with_details(details));
        Self { heard: Vec::new(), outcome }
    }

    /// The run that a message went into, if it did.
    pub(crate) fn injected_into(&self) -> Option<Value> {
        match &self.outcome {
            RunOutcome::Failed(error) if error.kind() == Some(INJECTED) => {
                error.details.as_ref()?.get("runId").cloned()
            }
            RunOutcome::Failed(_)
            | RunOutcome::Completed(_)
            | RunOutcome::Cancelled
            | RunOutcome::Parked(_)
            | RunOutcome::Elsewhere(_) => None,
        }
    }

    /// As it is kept.
    pub(crate) fn write(&self) -> String {
        let outcome = match &self.outcome {
            RunOutcome::Completed(answer) => json!({ "completed": answer }),
            RunOutcome::Failed(error) => json!({ "failed": {
                "code": error.code.word(), "message": error.message, "details": error.details,
            } }),
            RunOutcome::Cancelled => json!({ "cancelled": true }),
            RunOutcome::Parked(ids) => json!({ "parked": ids }),
            RunOutcome::Elsewhere(run) => return Self::injected(run.as_ref()).write(),
        };
        json!({ "heard": self.heard, "outcome": outcome }).to_string()
    }

    /// Reads what was kept; nothing where another version wrote what this one does not know.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let kept = parse(text).ok()?;
        let heard = from_value(kept.get("heard")?.clone()).ok()?;
        let (kind, what) = kept.get("outcome")?.as_object()?.iter().next()?;
        let outcome = match kind.as_str() {
            "completed" => RunOutcome::Completed(from_value(what.clone()).ok()?),
            "failed" => {
                let word = what.get("code")?.as_str()?;
                let code = *ErrorCode::ALL.iter().find(|code| code.word() == word)?;
                let error = ApiError::new(code, what.get("message")?.as_str()?);
                RunOutcome::Failed(ApiError {
                    details: what.get("details").cloned().filter(|it| !it.is_null()),
                    ..error
                })
            }
            "cancelled" => RunOutcome::Cancelled,
            "parked" => RunOutcome::Parked(from_value(what.clone()).ok()?),
            _ => return None,
        };
        Some(Self { heard, outcome })
    }
}

/// The kind of an outcome that is none of its own.
const INJECTED: &str = "injected";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back() {
        let heard = vec![
            Heard::Started { content: "hi".into(), sig: "s".into() },
            Heard::Text("a \u{2028} b".into()),
            Heard::Hook(json!({ "name": "tone" }).as_object().cloned().unwrap()),
        ];
        let answer = RunAnswer {
            run_id: TurnId::from("t"),
            content: "a".into(),
            usage: Usage { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
            thinking: None,
            media: vec!["media://0a".into()],
            end: AnswerEnd::Cut,
        };
        let error = ApiError::precondition("no").with_details(json!({ "kind": "hook_stopped" }));
        for outcome in [
            RunOutcome::Completed(answer),
            RunOutcome::Failed(error),
            RunOutcome::Failed(ApiError::new(ErrorCode::Unavailable, "gone")),
            RunOutcome::Cancelled,
            RunOutcome::Parked(vec!["a".into()]),
        ] {
            let kept = KeptOutcome { heard: heard.clone(), outcome };
            assert_eq!(KeptOutcome::read(&kept.write()), Some(kept));
        }
        let injected = KeptOutcome::injected(Some(&TurnId::from("t")));
        assert_eq!(KeptOutcome::read(&injected.write()).unwrap().injected_into(), Some(json!("t")));
        for other in ["", "{}", r#"{"heard":[],"outcome":{"else":1}}"#] {
            assert_eq!(KeptOutcome::read(other), None);
        }
    }
}
