//! What people are told of a fault: its class in words, where its text has addresses and advice for whoever runs the host.

use pintle_domain::checkpoint::runtime::RetryReason;
use pintle_domain::execution::masked;
use pintle_domain::json::{Value, json};

use crate::error::ApiError;
use crate::principal::Principal;

/// What stands before the name of a provider in every fault of one that is asked over the network.
const OF_PROVIDER: &str = "provider `";

/// The cause, in the details of a refusal, where an agent cannot be made ready.
pub(crate) const NOT_READY: &str = "agent_not_ready";

const TIMEOUT: &str = RetryReason::Timeout.word();
const NETWORK: &str = RetryReason::Network.word();
const RATE_LIMIT: &str = RetryReason::RateLimit.word();
const SERVER_ERROR: &str = RetryReason::ServerError.word();
const CONTEXT_LIMIT: &str = RetryReason::ContextLimit.word();

/// The class of what went wrong with a model, in words.
fn in_words(class: Option<&str>) -> &'static str {
    match class {
        Some(TIMEOUT) => "the model did not answer in time",
        Some(NETWORK) => "the model cannot be reached",
        Some(RATE_LIMIT) => "the model's provider limits how often it is asked",
        Some(SERVER_ERROR) => "the model's provider failed",
        Some(CONTEXT_LIMIT) => "the conversation is too long for the model",
        Some("unknown_model") => "the model is not known",
        Some(_) => "the model's provider refused the request or the credentials, or its answer cannot be read",
        None => "the model gave no answer",
    }
}

impl ApiError {
    /// The same as `who` is told it.
    #[must_use]
    pub(crate) fn told_to(self, who: &Principal) -> Self {
        if who.reads_faults() { self } else { self.in_class() }
    }

    /// The same without what is for whoever runs the host.
    #[must_use]
    pub(crate) fn in_class(self) -> Self {
        let text = |name: &str| self.details.as_ref()?.get(name)?.as_str();
        let class = text("class");
        let message = if self.kind() == Some("failed") && (class.is_some() || self.message.contains(OF_PROVIDER)) {
            let turn = text("runId").map(|turn| format!(" under turn {turn}")).unwrap_or_default();
            format!("{}; the server's log says why{turn}", in_words(class))
        } else if text("cause") == Some(NOT_READY) {
            "the agent is not ready to work; the server's log says why".to_owned()
        } else {
            return self;
        };
        Self { message, ..self }
    }
}

/// The error that a turn ended with, as `who` is told it.
pub(crate) fn ended_with(error: &str, who: &Principal) -> Value {
    match error.contains(OF_PROVIDER) && !who.reads_faults() {
        true => json!(in_words(None)),
        false => json!(masked(error)),
    }
}

#[cfg(test)]
mod tests {
    use pintle_rules::admin::CallerRole;

    use super::*;
    use crate::error::ErrorCode;
    use crate::principal::{Credential, somebody};

    #[test]
    fn the_words_of_a_fault_are_for_whoever_runs_the_host() {
        let why = "provider `local`: cannot connect to http://10.0.0.7:1; check that it runs, and `base_url`";
        let failed = |class: Option<&str>| {
            let details = json!({ "kind": "failed", "class": class, "runId": "t1", "effect": false });
            ApiError::new(ErrorCode::Unavailable, why).with_details(details)
        };
        let anna = Principal { credential: Credential::Key("k".into()), ..somebody("anna", CallerRole::Operator) };
        let admin = somebody("boss", CallerRole::Admin);
        let here = Principal { credential: Credential::Anonymous, ..anna.clone() };
        for (class, words) in [
            (Some("network"), "the model cannot be reached"),
            (
                Some("final"),
                "the model's provider refused the request or the credentials, or its answer cannot be read",
            ),
            (None, "the model gave no answer"),
        ] {
            let told = failed(class).told_to(&anna);
            assert_eq!(told.message, format!("{words}; the server's log says why under turn t1"));
            assert_eq!((told.code, &told.details), (ErrorCode::Unavailable, &failed(class).details));
            assert_eq!(failed(class).told_to(&admin), failed(class));
            assert_eq!(failed(class).told_to(&here), failed(class));
        }
        let limit = ApiError::new(ErrorCode::Unavailable, "iteration limit 3 reached")
            .with_details(json!({ "kind": "iteration_limit", "class": null }));
        assert_eq!(limit.clone().told_to(&anna), limit);
        let unready =
            ApiError::new(ErrorCode::Unavailable, "set `api_key_env`").with_details(json!({ "cause": NOT_READY }));
        assert_eq!(unready.told_to(&anna).message, "the agent is not ready to work; the server's log says why");
        assert_eq!((ended_with(why, &anna), ended_with(why, &admin)), (json!("the model gave no answer"), json!(why)));
    }
}
