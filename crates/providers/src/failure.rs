//! What went wrong, sorted by whether trying again helps.

use std::time::Duration;

use jiff::Timestamp;
use pintle_domain::checkpoint::runtime::RetryReason;
use pintle_domain::json::Value;
use reqwest::header::HeaderMap;

use crate::ProviderError;
use crate::secret::Secret;

/// Longest error message, in bytes: enough for a provider's own words, too little to flood a transcript.
const MAX_MESSAGE_BYTES: usize = 1000;

/// How providers say that a request is too long for the model, in lower case.
const TOO_LONG: [&str; 20] = [
    "context_length_exceeded",
    "context_length",
    "context length",
    "context window",
    "context size",
    "exceed_context_size",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input length",
    "too many tokens",
    "reduce the length of the messages",
    // Gemini.
    "exceeds the maximum number of tokens",
    // xAI.
    "maximum prompt length",
    // Text Generation Inference, in two wordings.
    "`inputs` must have less than",
    "`inputs` tokens + `max_new_tokens`",
    // Moonshot, Zhipu, GitHub.
    "exceeded model token limit",
    "exceeds max length",
    "prompt token count",
    OVER_A_MINUTE,
];

/// How OpenAI says, as a rate limit, that one request is more than all that a minute may bring.
const OVER_A_MINUTE: &str = "tokens must be reduced in order to run";

/// How providers say that nothing is left to be spent, in lower case. Waiting does not help.
const SPENT: [&str; 8] = [
    "insufficient_quota",
    "insufficient_balance",
    "insufficient balance",
    "insufficient credits",
    "credit balance is too low",
    "billing_hard_limit_reached",
    "billing_not_active",
    "exceeded_current_quota",
];

impl ProviderError {
    /// A failure that may pass.
    pub(crate) fn transient(reason: RetryReason, message: impl Into<String>) -> Self {
        Self::Transient { reason, message: message.into(), retry_after: None }
    }

    /// A failure that stays.
    pub(crate) fn fatal(message: impl Into<String>) -> Self {
        Self::Final { message: message.into() }
    }

    /// The stream ended in the middle of the answer.
    pub(crate) fn cut(missing: &str) -> Self {
        Self::transient(RetryReason::Network, format!("the answer was cut: the stream ended without {missing}"))
    }

    /// The message of the error, to change it.
    pub(crate) fn message_mut(&mut self) -> &mut String {
        match self {
            Self::Transient { message, .. } | Self::Final { message } => message,
        }
    }

    /// Says who failed, masks the key, and bounds the length; every error of a network provider leaves through here.
    pub(crate) fn tidy(mut self, who: &str, key: Option<&Secret>) -> Self {
        let message = self.message_mut();
        let mut text = format!("{who}: {message}");
        if let Some(key) = key {
            text = key.redact(&text);
        }
        *message = bounded(&text);
        self
    }
}

/// `text` on one line and of at most [`MAX_MESSAGE_BYTES`].
fn bounded(text: &str) -> String {
    let mut line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.len() > MAX_MESSAGE_BYTES {
        line.truncate(line.floor_char_boundary(MAX_MESSAGE_BYTES));
        line.push('…');
    }
    line
}

/// An HTTP answer other than success, to be read as an error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal<'a> {
    /// The HTTP status.
    pub(crate) status: u16,
    /// How long the provider asks to wait.
    pub(crate) retry_after: Option<Duration>,
    /// The body, perhaps only its beginning.
    pub(crate) body: &'a [u8],
    /// The model that was asked for.
    pub(crate) model: &'a str,
    /// The hint about what to do about a refused key.
    pub(crate) key_hint: &'a str,
}

impl Refusal<'_> {
    /// The error it becomes.
    pub(crate) fn into_error(self) -> ProviderError {
        let Self { status, model, key_hint, .. } = self;
        let said = words(self.body);
        let retry_after = self.retry_after.or_else(|| asked_in(self.body));
        let transient = |reason, message| ProviderError::Transient { reason, message, retry_after };
        match status {
            400..=499 if holds(&SPENT, &said) => {
                ProviderError::fatal(format!("nothing is left to be spent at the provider ({status}): {said}"))
            }
            429 if holds(&[OVER_A_MINUTE], &said) => {
                transient(RetryReason::ContextLimit, format!("too long for model `{model}` ({status}): {said}"))
            }
            401 | 403 => ProviderError::fatal(format!("the key was refused ({status}): {said}; {key_hint}")),
            404 => ProviderError::fatal(format!(
                "not found (404) for model `{model}`: {said}; check the name of the model and `base_url`"
            )),
            408 => transient(RetryReason::Timeout, format!("timed out at the provider (408): {said}")),
            429 => transient(RetryReason::RateLimit, format!("rate limit (429): {said}")),
            413 => transient(RetryReason::ContextLimit, format!("the request is too large (413): {said}")),
            400..=599 if holds(&TOO_LONG, &said) => {
                transient(RetryReason::ContextLimit, format!("too long for model `{model}` ({status}): {said}"))
            }
            500..=599 => transient(RetryReason::ServerError, format!("server error ({status}): {said}")),
            300..=399 => ProviderError::fatal(format!(
                "redirected ({status}), which is not followed; set `base_url` to the final address"
            )),
            _ => ProviderError::fatal(format!("refused the request ({status}): {said}")),
        }
    }
}

/// The error that an `error` object inside an answer means; `code` may be an HTTP status.
pub(crate) fn in_answer(error: &Value) -> ProviderError {
    let said = words_of(error);
    let status = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let kinds = [error.get("type"), error.get("code"), error.get("status")];
    let kind = kinds.into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(" ").to_lowercase();
    let is = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    if holds(&SPENT, &said) || holds(&SPENT, &kind) {
        return ProviderError::fatal(format!(
            "failed while answering: nothing is left to be spent at the provider: {said}"
        ));
    }
    let reason = if holds(&TOO_LONG, &said) || holds(&TOO_LONG, &kind) {
        RetryReason::ContextLimit
    } else if status == Some(429) || is(&["rate_limit", "too_many_requests", "resource_exhausted"]) {
        RetryReason::RateLimit
    } else if status == Some(408) || is(&["timeout"]) {
        RetryReason::Timeout
    } else if status.is_some_and(|s| (400..500).contains(&s))
        || is(&["authentication", "permission", "invalid_request", "not_found", "billing"])
    {
        return ProviderError::fatal(format!("failed while answering: {said}"));
    } else {
        // The provider had accepted the request, so an error of any other name is its own.
        RetryReason::ServerError
    };
    ProviderError::transient(reason, format!("failed while answering: {said}"))
}

/// A failure of the connection to `origin`, before an answer or within it.
pub(crate) fn of_transport(error: reqwest::Error, origin: &str) -> ProviderError {
    let chain = causes(&error);
    if error.is_timeout() {
        ProviderError::transient(RetryReason::Timeout, format!("timed out while connecting to {origin}: {chain}"))
    } else if error.is_connect() {
        let message = format!("cannot connect to {origin}: {}; check that it runs, and `base_url`", last_cause(&error));
        ProviderError::transient(RetryReason::Network, message)
    } else if error.is_body() || error.is_decode() {
        ProviderError::transient(RetryReason::Network, format!("the answer was cut: the connection broke: {chain}"))
    } else {
        ProviderError::transient(RetryReason::Network, format!("the connection broke before an answer came: {chain}"))
    }
}

/// The causes of `error`, outermost first. Its own text is left out: it only repeats the address, which may hold a
/// key.
fn causes(error: &reqwest::Error) -> String {
    let first = std::error::Error::source(error);
    let texts: Vec<String> = std::iter::successors(first, |cause| cause.source()).map(ToString::to_string).collect();
    if texts.is_empty() { "no reason given".into() } else { texts.join(": ") }
}

/// The innermost cause of `error`: what the layers above it add are their own names.
fn last_cause(error: &reqwest::Error) -> String {
    let first = std::error::Error::source(error);
    let last = std::iter::successors(first, |cause| cause.source()).last();
    last.map_or_else(|| "no reason given".into(), ToString::to_string)
}

/// Whether any of `phrases` is in `said`.
fn holds(phrases: &[&str], said: &str) -> bool {
    let said = said.to_lowercase();
    phrases.iter().any(|phrase| said.contains(phrase))
}

/// The provider's own words in an error body.
fn words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let said =
        pintle_domain::json::parse(text.trim()).map_or_else(|_| text.trim().to_owned(), |value| words_of(&value));
    if said.is_empty() { "no reason given".into() } else { said }
}

fn words_of(value: &Value) -> String {
    // Gemini answers with a list of one.
    let value = value.as_array().and_then(|all| all.first()).unwrap_or(value);
    let inner = value.get("error").unwrap_or(value);
    let message = ["message", "detail", "error", "msg"].iter().find_map(|key| inner.get(key)?.as_str());
    let code = ["code", "type"].iter().find_map(|key| inner.get(key)?.as_str());
    match (message.or_else(|| inner.as_str()), code) {
        (Some(message), Some(code)) if !message.contains(code) => format!("{message} ({code})"),
        (Some(message), _) => message.to_owned(),
        (None, _) => inner.to_string(),
    }
}

/// How long an error body asks to wait: Gemini says so in a detail, and in no header.
fn asked_in(body: &[u8]) -> Option<Duration> {
    let value = pintle_domain::json::parse(std::str::from_utf8(body).ok()?.trim()).ok()?;
    let value = value.as_array().and_then(|all| all.first()).unwrap_or(&value);
    let details = value.get("error")?.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

/// How long the headers ask to wait: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date (RFC 9110 10.2.3).
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|ms| ms.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let value = text("retry-after")?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> String {
        let refusal = Refusal {
            status,
            retry_after: None,
            body: body.as_bytes(),
            model: "m",
            key_hint: "check the variable `K` that `api_key_env` names",
        };
        match refusal.into_error() {
            ProviderError::Transient { reason, message, .. } => format!("{reason:?}: {message}"),
            ProviderError::Final { message } => format!("Final: {message}"),
        }
    }

    /// Refusals as vendors write them.
    const REFUSALS: &[(u16, &str)] = &[
        (400, r#"{"error":{"message":"bad temperature","type":"invalid_request_error"}}"#),
        (400, r#"{"error":{"message":"too big","code":"context_length_exceeded"}}"#),
        (
            400,
            r#"{"error":{"type":"exceed_context_size_error","message":"the request exceeds the available context size"}}"#,
        ),
        (400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 2 > 1"}}"#),
        (401, r#"{"error":"nope"}"#),
        (403, ""),
        (404, r#"{"detail":"no such model"}"#),
        (408, ""),
        (413, "request_too_large"),
        (422, r#"{"detail":[{"loc":["x"]}]}"#),
        (429, r#"{"message":"slow down"}"#),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
        ),
        (402, r#"{"error":{"message":"Insufficient Balance","type":"unknown_error"}}"#),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
        ),
        (
            429,
            r#"{"error":{"message":"Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 34000. The input or output tokens must be reduced in order to run successfully.","code":"rate_limit_exceeded"}}"#,
        ),
        (
            429,
            r#"{"error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 20,000 input tokens per minute; please reduce the prompt length"}}"#,
        ),
        (
            400,
            r#"[{"error":{"code":400,"message":"The input token count (1594712) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
        ),
        (
            400,
            r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
        ),
        (
            422,
            r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 20 `max_new_tokens`","error_type":"validation"}"#,
        ),
        (
            422,
            r#"{"error":"Input validation error: `inputs` must have less than 1024 tokens. Given: 2000","error_type":"validation"}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144","type":"invalid_request_error"}}"#,
        ),
        (302, ""),
        (500, "<html>oops</html>"),
        (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
    ];

    #[test]
    fn each_status_says_whether_to_try_again() {
        let lines: Vec<String> =
            REFUSALS.iter().map(|(status, body)| format!("{status} {}", refused(*status, body))).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        400 Final: refused the request (400): bad temperature (invalid_request_error)
        400 ContextLimit: too long for model `m` (400): too big (context_length_exceeded)
        400 ContextLimit: too long for model `m` (400): the request exceeds the available context size (exceed_context_size_error)
        400 ContextLimit: too long for model `m` (400): prompt is too long: 2 > 1 (invalid_request_error)
        401 Final: the key was refused (401): nope; check the variable `K` that `api_key_env` names
        403 Final: the key was refused (403): no reason given; check the variable `K` that `api_key_env` names
        404 Final: not found (404) for model `m`: no such model; check the name of the model and `base_url`
        408 Timeout: timed out at the provider (408): no reason given
        413 ContextLimit: the request is too large (413): request_too_large
        422 Final: refused the request (422): {"detail":[{"loc":["x"]}]}
        429 RateLimit: rate limit (429): slow down
        429 Final: nothing is left to be spent at the provider (429): You exceeded your current quota (insufficient_quota)
        402 Final: nothing is left to be spent at the provider (402): Insufficient Balance (unknown_error)
        400 Final: nothing is left to be spent at the provider (400): Your credit balance is too low to access the Anthropic API. (invalid_request_error)
        429 ContextLimit: too long for model `m` (429): Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 34000. The input or output tokens must be reduced in order to run successfully. (rate_limit_exceeded)
        429 RateLimit: rate limit (429): This request would exceed your organization's rate limit of 20,000 input tokens per minute; please reduce the prompt length (rate_limit_error)
        400 ContextLimit: too long for model `m` (400): The input token count (1594712) exceeds the maximum number of tokens allowed (1048576).
        400 ContextLimit: too long for model `m` (400): This model's maximum prompt length is 131072 but the request contains 537812 tokens.
        422 ContextLimit: too long for model `m` (422): Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 20 `max_new_tokens`
        422 ContextLimit: too long for model `m` (422): Input validation error: `inputs` must have less than 1024 tokens. Given: 2000
        400 ContextLimit: too long for model `m` (400): Invalid request: Your request exceeded model token limit: 262144 (invalid_request_error)
        302 Final: redirected (302), which is not followed; set `base_url` to the final address
        500 ServerError: server error (500): <html>oops</html>
        529 ServerError: server error (529): Overloaded (overloaded_error)
        "#);
    }

    #[test]
    fn an_error_inside_an_answer_is_sorted_by_its_name() {
        let table = [
            r#"{"type":"overloaded_error","message":"Overloaded"}"#,
            r#"{"type":"rate_limit_error","message":"slow"}"#,
            r#"{"code":429,"message":"slow"}"#,
            r#"{"code":502,"message":"bad gateway"}"#,
            r#"{"code":400,"message":"bad"}"#,
            r#"{"type":"invalid_request_error","message":"bad"}"#,
            r#"{"code":"context_length_exceeded","message":"big"}"#,
            r#"{"type":"timeout_error","message":"late"}"#,
            r#""just words""#,
        ];
        let lines: Vec<String> =
            table.iter().map(|t| format!("{:?}", in_answer(&pintle_domain::json::parse(t).unwrap()))).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        Transient { reason: ServerError, message: "failed while answering: Overloaded (overloaded_error)", retry_after: None }
        Transient { reason: RateLimit, message: "failed while answering: slow (rate_limit_error)", retry_after: None }
        Transient { reason: RateLimit, message: "failed while answering: slow", retry_after: None }
        Transient { reason: ServerError, message: "failed while answering: bad gateway", retry_after: None }
        Final { message: "failed while answering: bad" }
        Final { message: "failed while answering: bad (invalid_request_error)" }
        Transient { reason: ContextLimit, message: "failed while answering: big (context_length_exceeded)", retry_after: None }
        Transient { reason: Timeout, message: "failed while answering: late (timeout_error)", retry_after: None }
        Transient { reason: ServerError, message: "failed while answering: just words", retry_after: None }
        "#);
    }

    #[test]
    fn a_wait_is_read_in_each_of_its_spellings() {
        let now: Timestamp = "1994-11-06T08:49:00Z".parse().unwrap();
        let wait = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            retry_after(&headers, now)
        };
        assert_eq!(wait("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(wait("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(wait("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(37)));
        assert_eq!(wait("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        for nonsense in ["soon", "-3", "NaN", "1e400", ""] {
            assert_eq!(wait("retry-after", nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_wait_may_stand_in_the_body() {
        let wait = |body: &str, retry_after| {
            let refusal = Refusal { status: 429, retry_after, body: body.as_bytes(), model: "m", key_hint: "" };
            match refusal.into_error() {
                ProviderError::Transient { retry_after, .. } => retry_after,
                ProviderError::Final { .. } => None,
            }
        };
        let gemini = r#"[{"error":{"code":429,"message":"m","details":[{"@type":"x"},{"retryDelay":"32.5s"}]}}]"#;
        assert_eq!(wait(gemini, None), Some(Duration::from_millis(32_500)));
        assert_eq!(wait(gemini, Some(Duration::from_secs(1))), Some(Duration::from_secs(1)), "a header counts first");
        for other in ["", "[]", "{}", r#"{"error":{"details":[{"retryDelay":"soon"}]}}"#] {
            assert_eq!(wait(other, None), None, "{other}");
        }
    }

    #[test]
    fn a_message_is_bounded_and_names_no_key() {
        let key = Secret::new("sk-secret");
        let error = ProviderError::fatal(format!("{}\nsk-secret{}", "é".repeat(490), "x".repeat(2000)));
        let ProviderError::Final { message } = error.tidy("provider `p`", Some(&key)) else { panic!() };
        assert!(message.starts_with("provider `p`: éé"));
        assert!(message.ends_with('…') && message.len() <= MAX_MESSAGE_BYTES + '…'.len_utf8());
        assert!(!message.contains("sk-") && !message.contains('\n'));
    }
}
