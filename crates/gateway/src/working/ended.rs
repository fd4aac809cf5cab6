//! What is known of a run before it goes on with a turn, and what came of it, from how its last turn ended.

use pintle_agent::driver::TurnEnding;
use pintle_agent::{Conversation, TurnReport};
use pintle_domain::execution::masked;
use pintle_domain::json::json;

use crate::error::{ApiError, ErrorCode};
use crate::outcome::RunOutcome;
use crate::run::Run;

/// `run` goes on with the turn that is open in its session. What the turn did before may not be done again: its calls
/// count as effects of the run.
pub(super) fn goes_on(run: &Run, conversation: &Conversation) {
    run.is_worked();
    let Some(open) = conversation.open_turn() else { return };
    conversation.asked_with().into_iter().for_each(|key| run.is_asked_with(key));
    let of_turn = open.turn.messages().get(open.turn.base()..).unwrap_or_default();
    if of_turn.iter().any(|message| !message.get().tool_calls.is_empty()) {
        run.had_effect();
    }
}

/// What came of a run whose last turn ended so.
pub(super) fn outcome(run: &Run, report: TurnReport, replies: Vec<String>) -> Result<RunOutcome, ApiError> {
    // Messages that came too late for its turn were worked in further ones: to clients all of that is one run.
    let id = run.begins(&report.turn_id).clone();
    match report.ending {
        TurnEnding::Completed => Ok(RunOutcome::Completed(run.answer(id, replies.join("\n\n")))),
        TurnEnding::Cancelled => Ok(RunOutcome::Cancelled),
        TurnEnding::Blocked(denied) => {
            let details = json!({ "kind": "hook_blocked", "hook": denied.by, "runId": id });
            Err(ApiError::precondition(masked(&denied.text())).with_details(details))
        }
        TurnEnding::StoppedByHook(aborted) => {
            let details = json!({ "kind": "hook_stopped", "hook": aborted.by, "runId": id });
            Err(ApiError::precondition(masked(&aborted.text_with_hook())).with_details(details))
        }
        TurnEnding::Failed { stage, text } => {
            let kind = if report.at_limit { "iteration_limit" } else { "failed" };
            let (class, wait) = run.failing_model().filter(|_| stage == "llm").unzip();
            let details = json!({
                "kind": kind, "stage": stage, "class": class, "runId": id, "effect": run.has_effect(),
            });
            let retry_after_ms = wait.flatten().map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
            Err(ApiError {
                retry_after_ms,
                ..ApiError::new(ErrorCode::Unavailable, masked(&text)).with_details(details)
            })
        }
        TurnEnding::Waiting(approval) => Ok(RunOutcome::Parked(vec![approval.id])),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pintle_domain::checkpoint::CheckpointKind;
    use pintle_domain::id::{TenantId, TurnId};
    use pintle_domain::ruling::{DenialGround, Denied};

    use super::*;
    use crate::run::{Asker, RunParts};
    use crate::session_name::{Channel, SessionName};

    #[test]
    fn further_turns_of_a_run_are_the_run_that_clients_know() {
        let [agent, user, conversation] = ["main", "anna", "trip"].map(str::to_owned);
        let run = Run::new(RunParts {
            name: SessionName { agent, channel: Channel::Socket, user, conversation },
            tenant: TenantId::from("t"),
            prompt: "go".into(),
            stream: false,
            asker: Asker::Nobody,
            key: None,
            is_heard: false,
            hub: Arc::default(),
        });
        run.begins(&TurnId::from("first"));
        let report = |ending| TurnReport {
            turn_id: TurnId::from("second"),
            reply: "b".into(),
            ending,
            denials: Vec::new(),
            at_limit: false,
        };
        let Ok(RunOutcome::Completed(answer)) = outcome(&run, report(TurnEnding::Completed), vec!["a".into()]) else {
            panic!("it completed");
        };
        assert_eq!(answer.run_id, TurnId::from("first"));
        let failed = TurnEnding::Failed { stage: "llm".into(), text: "no".into() };
        let error = outcome(&run, report(failed), Vec::new()).unwrap_err();
        assert_eq!(error.details.unwrap()["runId"], "first");
        // What hooks say is masked for people as where it is kept.
        let denied = Denied {
            by: "guard".into(),
            at: CheckpointKind::UserPromptSubmit,
            reason: "not with sk-abcdEFGH1234".into(),
            ground: DenialGround::Said,
        };
        let error = outcome(&run, report(TurnEnding::Blocked(denied)), Vec::new()).unwrap_err();
        assert_eq!(error.message, "hook blocked user_prompt_submit: guard: not with [REDACTED]");
    }
}
