//! What is said of an event that cannot be read: the refusal, and whose session it is, as far as that can be told.

use pintle_domain::json::end_of_string;

use crate::event::Malformed;
use crate::hosts::panic_deny;

/// What a client says of the guard where nobody answers it.
const SILENT: &str = "did not answer";

/// The same where a session begins.
const SILENT_AT_FIRST: &str = "did not answer: until it does, every prompt and call is refused";

/// What stands before it at a call.
const BEFORE: &str = "Pintle's guard ";

/// What stands behind it at a call.
const BEHIND: [&str; 2] = [", so this call is refused.", ", so this is refused."];

/// All that [`words`] says. None of them begins another.
const WORDS: [&str; 9] = [
    "reads no event that is longer than 16 MiB",
    "reads no event that holds more than 200,000 JSON values",
    "reads no event that is nested deeper than 512 levels",
    "cannot read an event that is not UTF-8",
    "cannot read an event that is not one JSON object",
    "cannot read an event in which a name stands twice in one object",
    "cannot read an event that lacks a member or has one of another type",
    "was started for another event than the one that came",
    "does not know what this event is about",
];

/// The members in which hosts name their session.
const SESSIONS: [&[u8]; 3] = [b"session_id", b"sessionId", b"sessionID"];

/// Longest name of a session that is taken from what cannot be read, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// What the guard did, in words that are always the same: results of calls that stand in conversations are told from
/// others by them.
const fn words(why: &Malformed) -> &'static str {
    match why {
        Malformed::TooLong(_) => WORDS[0],
        Malformed::TooMany => WORDS[1],
        Malformed::TooDeep => WORDS[2],
        Malformed::NotText => WORDS[3],
        Malformed::NotJson(_) => WORDS[4],
        Malformed::Twice(_) => WORDS[5],
        Malformed::Member(_) => WORDS[6],
        Malformed::OtherEvent(_) => WORDS[7],
        Malformed::Unknown(_) => WORDS[8],
    }
}

/// What the client of `host` prints at `event` where no event can be read because of `why`. Empty where the event cannot
/// be denied.
pub fn unread_deny(host: &str, event: &str, why: &Malformed) -> String {
    let silent = panic_deny(host, event);
    let instead_of = if silent.contains(SILENT_AT_FIRST) { SILENT_AT_FIRST } else { SILENT };
    silent.replace(instead_of, words(why))
}

/// What stands in `text` behind the reason of a call that nobody answered, or that could not be read.
pub(crate) fn behind_unanswered(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(BEFORE)?;
    let mut known = std::iter::once(SILENT).chain(WORDS);
    let rest = known.find_map(|words| rest.strip_prefix(words))?;
    BEHIND.iter().find_map(|end| rest.strip_prefix(end))
}

/// The host's id of the session that `payload` is about, which need not be JSON: that of the outermost object, if it is
/// plain and only one is said.
pub fn session_said(payload: &[u8]) -> Option<String> {
    let (mut level, mut at, mut found) = (0_usize, 0, None::<&[u8]>);
    while let Some(&byte) = payload.get(at) {
        match byte {
            b'{' | b'[' => level += 1,
            b'}' | b']' => level = level.saturating_sub(1),
            b'"' => {
                let end = end_of_string(payload, at + 1);
                if end == payload.len() {
                    break;
                }
                if level == 1
                    && SESSIONS.contains(&&payload[at + 1..end])
                    && let Some(value) = value_behind(payload, end + 1)
                {
                    if found.is_some_and(|found| found != value) {
                        return None;
                    }
                    found = Some(value);
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    let name = found.filter(|name| !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.iter().all(is_plain))?;
    String::from_utf8(name.to_vec()).ok()
}

/// The text that is the value of the name which ends before `at`.
fn value_behind(payload: &[u8], at: usize) -> Option<&[u8]> {
    let rest = payload.get(at..)?.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let text = rest.strip_prefix(b"\"")?;
    let end = end_of_string(text, 0);
    (end < text.len()).then(|| &text[..end])
}

#[cfg(test)]
mod tests {
    use pintle_domain::json;

    use super::*;
    use crate::hosts::HOSTS;

    fn flaws() -> [Malformed; 9] {
        [
            Malformed::TooLong(1),
            Malformed::TooMany,
            Malformed::TooDeep,
            Malformed::NotText,
            Malformed::NotJson("\"".into()),
            Malformed::Twice("\"".into()),
            Malformed::Member("x"),
            Malformed::OtherEvent("x".into()),
            Malformed::Unknown("x".into()),
        ]
    }

    #[test]
    fn a_refusal_says_why_wherever_one_can_be_said() {
        for host in HOSTS {
            for row in host.events {
                for why in flaws() {
                    let said = unread_deny(host.id, row.name, &why);
                    assert_eq!(said.is_empty(), panic_deny(host.id, row.name).is_empty(), "{} {}", host.id, row.name);
                    assert!(said.is_empty() || said.contains(words(&why)), "{said}");
                    assert!(!said.contains(SILENT), "{said}");
                    assert!(said.is_empty() || json::parse(&said).is_ok(), "{said}");
                }
            }
        }
    }

    #[test]
    fn a_call_that_was_refused_so_is_told_from_one_that_ran() {
        for words in std::iter::once(SILENT).chain(flaws().iter().map(words)) {
            assert_eq!(behind_unanswered(&format!("Pintle's guard {words}, so this call is refused.x")), Some("x"));
            assert_eq!(behind_unanswered(&format!("out Pintle's guard {words}, so this call is refused.")), None);
        }
        assert_eq!(behind_unanswered("Pintle's guard is fine, so this call is refused."), None);
    }

    #[test]
    fn a_session_is_found_in_what_is_no_json() {
        let session = |payload: &str| session_said(payload.as_bytes());
        let own = Some("8f-1".to_owned());
        assert_eq!(session(r#"{"a":1,"a":2,"session_id" : "8f-1"}"#), own);
        assert_eq!(session(r#"{"sessionId":"8f-1","x":"\ud800","tail":"never ends"#), own);
        assert_eq!(session_said(b"{\"session_id\":\"8f-1\",\"x\":\"\xff\"}"), own);
        // What a model writes into a call is deeper, or within a string.
        assert_eq!(session(r#"{"session_id":"8f-1","in":{"session_id":"2"},"t":"\"session_id\":\"3\""}"#), own);
        for none in [
            "",
            r#"{"session_id":7}"#,
            r#"{"session_id":""}"#,
            r#"{"session_id":"a","session_id":"b"}"#,
            r#"{"session_id":"a b"}"#,
            r#"{"x":"session_id"}"#,
            r#"[{"session_id":"a"}]"#,
        ] {
            assert_eq!(session(none), None, "{none}");
        }
        assert_eq!(session(&format!(r#"{{"session_id":"{}"}}"#, "a".repeat(MAX_NAME_BYTES + 1))), None);
    }
}
