//! The two texts of a fault, as types that do not mix: nothing makes a phrase out of a cause.

use std::borrow::Cow;
use std::fmt;

use super::{Direction, Fault, ProtocolBreach};
use crate::execution::masked;

/// Longest cause that is shown, in characters: the last words of a program, and no log.
pub const MAX_CAUSE_CHARS: usize = 2000;

/// What everybody may read of a fault: words of this file, and numbers. Only a [`Fault`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phrase(Cow<'static, str>);

impl Phrase {
    pub(super) fn of(fault: &Fault) -> Self {
        Self(match fault {
            Fault::CannotStart { .. } => "could not start".into(),
            Fault::TimedOut { after } => format!("timed out after {} ms", after.as_millis()).into(),
            Fault::Killed { signal } => format!("was killed by signal {signal}").into(),
            Fault::BadExit { status } => format!("exited with status {status}").into(),
            Fault::Unreadable { .. } => "sent an unreadable reply".into(),
            Fault::TooLarge { way: Direction::Reply, limit } => format!("sent a reply above {limit} bytes").into(),
            Fault::TooLarge { way: Direction::Call, limit } => format!("cannot take a call above {limit} bytes").into(),
            Fault::Protocol(ProtocolBreach::Returned(_)) => "returned an error".into(),
            Fault::Protocol(ProtocolBreach::Broke(_) | ProtocolBreach::Respond(_)) => "broke the protocol".into(),
            Fault::Panicked => "panicked".into(),
            Fault::Cancelled => "was cancelled".into(),
            Fault::ConditionFailed { .. } => "could not evaluate its condition".into(),
            Fault::Unavailable { .. } => "is unavailable".into(),
        })
    }
}

impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What was said of a fault: the last line of a program, the error of a service, the place in a file. It can hold mail
/// addresses, keys and whatever else a program prints, so it has no `Display` and cannot be written as JSON: who shows
/// it to a person says so with [`shown`](Self::shown).
///
/// ```compile_fail
/// let cause = pintle_domain::fault::Cause::from("x");
/// let told_to_the_model = format!("{cause}");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Cause(String);

impl Cause {
    /// What a person reads: without what may be secret in it, at most [`MAX_CAUSE_CHARS`] long.
    pub fn shown(&self) -> String {
        let masked = masked(&self.0);
        match masked.char_indices().nth(MAX_CAUSE_CHARS) {
            Some((end, _)) => format!("{}…", &masked[..end]),
            None => masked.into_owned(),
        }
    }

    /// All of it. This is for the sealed column of an execution, and for the person who opens that.
    pub fn unredacted(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown())
    }
}

impl PartialEq<str> for Cause {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl From<String> for Cause {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Cause {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// A fault in all the words that a person may read, behind `hook "NAME" `.
#[derive(Clone, Copy, Debug)]
pub struct Explained<'a>(&'a Fault);

impl<'a> Explained<'a> {
    pub(super) fn of(fault: &'a Fault) -> Self {
        Self(fault)
    }
}

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.cause() {
            Some(cause) => write!(f, "{}: {}", self.0.phrase(), cause.shown()),
            None => write!(f, "{}", self.0.phrase()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "mail ada@example.org, Authorization: Bearer abcdefgh12345678";

    fn with(cause: &str) -> [Fault; 7] {
        [
            Fault::CannotStart { cause: cause.into() },
            Fault::Unreadable { cause: cause.into() },
            Fault::Protocol(ProtocolBreach::Returned(cause.into())),
            Fault::Protocol(ProtocolBreach::Broke(cause.into())),
            Fault::Protocol(ProtocolBreach::Respond(cause.into())),
            Fault::ConditionFailed { cause: cause.into() },
            Fault::Unavailable { cause: cause.into() },
        ]
    }

    #[test]
    fn a_phrase_is_the_same_whatever_was_said() {
        for (one, other) in with(SAID).iter().zip(&with("else")) {
            assert_eq!(one.phrase(), other.phrase());
            assert!(!one.phrase().to_string().contains(':'), "{one:?}");
        }
    }

    #[test]
    fn a_cause_is_shown_without_secrets_and_bounded_and_kept_whole() {
        for fault in with(SAID) {
            let shown = [fault.explained().to_string(), format!("{fault:?}")];
            assert!(shown.iter().all(|it| it.contains("[REDACTED]") && !it.contains("abcdefgh")), "{shown:?}");
            assert!(fault.explained().to_string().starts_with(&format!("{}: mail ", fault.phrase())));
            assert!(fault.whole().unredacted().ends_with(SAID), "the sealed column has all of it");
        }
        let long = Cause::from("ä".repeat(MAX_CAUSE_CHARS + 1));
        assert_eq!(long.shown().chars().count(), MAX_CAUSE_CHARS + 1, "and a sign that it was cut");
        assert_eq!(Cause::from("ä".repeat(MAX_CAUSE_CHARS)).shown().chars().count(), MAX_CAUSE_CHARS);
    }
}
