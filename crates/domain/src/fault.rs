//! Why a hook gave no verdict: the closed list. A fault is never an answer in itself.
//!
//! It has two texts. The [`Phrase`] is closed wording: models, events, journals, spans and logs get it. The [`Cause`] is
//! what was said of it by programs, files and services, and may hold anything: it is for people.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

mod cause;

pub use cause::{Cause, MAX_CAUSE_CHARS};

/// The cause where what is to be started is not what a person accepted.
pub const CHANGED: &str = "changed since it was trusted";

/// Why there is no verdict.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The handler never came up, or its entry is bad.
    CannotStart {
        /// What happened instead.
        cause: Cause,
    },
    /// No answer within the deadline.
    TimedOut {
        /// The deadline.
        after: Duration,
    },
    /// A signal ended the handler.
    Killed {
        /// The signal's number.
        signal: i32,
        /// The last lines that it wrote to its standard error, if any.
        cause: Option<Cause>,
    },
    /// The handler left without an answer.
    BadExit {
        /// Its exit status.
        status: i32,
        /// The last lines that it wrote to its standard error, if any.
        cause: Option<Cause>,
    },
    /// The answer is not JSON, or has a wrong type in a known member.
    Unreadable {
        /// What is wrong.
        cause: Cause,
    },
    /// A line above the limit.
    TooLarge {
        /// Which way it went.
        way: Direction,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A well-formed answer that is not allowed there.
    Protocol(ProtocolBreach),
    /// The handler's own code panicked.
    Panicked,
    /// The turn is ending.
    Cancelled,
    /// A condition could not be evaluated.
    ConditionFailed {
        /// What is wrong.
        cause: Cause,
    },
    /// A handler or store is missing.
    Unavailable {
        /// Which one.
        cause: Cause,
    },
}

/// Which way a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the host to the hook.
    Call,
    /// From the hook to the host.
    Reply,
}

/// The way in which an answer broke the protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum ProtocolBreach {
    /// The hook answered with an error of its own.
    Returned(Cause),
    /// The answer is not one of those allowed there.
    Broke(Cause),
    /// There is no answer: the script threw this.
    Threw(Cause),
    /// A `respond` without a good result or outside its grant: the call is denied whatever `on_failure` says,
    /// since the real tool must never run in a hook's place.
    Respond(Cause),
}

/// The word of a [`Fault`] in JSON and listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is the fault of the same name")]
pub enum FaultKind {
    CannotStart,
    TimedOut,
    Killed,
    BadExit,
    Unreadable,
    TooLarge,
    ProtocolError,
    Panicked,
    Cancelled,
    ConditionFailed,
    Unavailable,
}

impl Fault {
    /// A handler that left with `status`, and wrote nothing before.
    pub fn exited(status: i32) -> Self {
        Self::BadExit { status, cause: None }
    }

    /// A handler that `signal` ended, and that wrote nothing before.
    pub fn killed(signal: i32) -> Self {
        Self::Killed { signal, cause: None }
    }

    /// The same fault of a handler that wrote `words` to its standard error before its end.
    #[must_use]
    pub fn with_last_words(mut self, words: Option<Cause>) -> Self {
        if let Self::BadExit { cause, .. } | Self::Killed { cause, .. } = &mut self
            && cause.is_none()
        {
            *cause = words;
        }
        self
    }

    /// A fault for an answer that is not allowed.
    pub fn broke(cause: impl Into<Cause>) -> Self {
        Self::Protocol(ProtocolBreach::Broke(cause.into()))
    }

    /// The text that everybody may read, behind `hook "NAME" `.
    pub fn phrase(&self) -> Phrase {
        Phrase::of(self)
    }

    /// The same for whoever is refused by it: it says, too, where a person accepted another content than there is now.
    pub fn refusing(&self) -> Phrase {
        match self {
            Self::CannotStart { cause } if *cause == *CHANGED => Phrase(
                "could not start, because it or a file that it runs changed since a person accepted it; they have to \
                 accept it again"
                    .into(),
            ),
            Self::CannotStart { .. }
            | Self::TimedOut { .. }
            | Self::Killed { .. }
            | Self::BadExit { .. }
            | Self::Unreadable { .. }
            | Self::TooLarge { .. }
            | Self::Protocol(_)
            | Self::Panicked
            | Self::Cancelled
            | Self::ConditionFailed { .. }
            | Self::Unavailable { .. } => self.phrase(),
        }
    }

    /// Phrase and cause, for a person.
    pub fn explained(&self) -> Explained<'_> {
        Explained::of(self)
    }

    /// The text for people who do not run the host: phrase and cause, but for what a program wrote to its standard error.
    pub fn told(&self) -> String {
        if self.kind().may_quote_a_program() { self.phrase().to_string() } else { self.explained().to_string() }
    }

    /// What was said of it, where something was.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::CannotStart { cause }
            | Self::Unreadable { cause }
            | Self::ConditionFailed { cause }
            | Self::Unavailable { cause }
            | Self::Protocol(
                ProtocolBreach::Returned(cause)
                | ProtocolBreach::Broke(cause)
                | ProtocolBreach::Threw(cause)
                | ProtocolBreach::Respond(cause),
            ) => Some(cause),
            Self::Killed { cause, .. } | Self::BadExit { cause, .. } => cause.as_ref(),
            Self::TimedOut { .. } | Self::TooLarge { .. } | Self::Panicked | Self::Cancelled => None,
        }
    }

    /// Phrase and cause, nothing left out: for the sealed column of an execution.
    pub(crate) fn whole(&self) -> Cause {
        match self.cause() {
            Some(cause) => format!("{}: {}", self.phrase(), cause.unredacted()).into(),
            None => self.phrase().to_string().into(),
        }
    }

    /// Its word.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::CannotStart { .. } => FaultKind::CannotStart,
            Self::TimedOut { .. } => FaultKind::TimedOut,
            Self::Killed { .. } => FaultKind::Killed,
            Self::BadExit { .. } => FaultKind::BadExit,
            Self::Unreadable { .. } => FaultKind::Unreadable,
            Self::TooLarge { .. } => FaultKind::TooLarge,
            Self::Protocol(_) => FaultKind::ProtocolError,
            Self::Panicked => FaultKind::Panicked,
            Self::Cancelled => FaultKind::Cancelled,
            Self::ConditionFailed { .. } => FaultKind::ConditionFailed,
            Self::Unavailable { .. } => FaultKind::Unavailable,
        }
    }
}

impl FaultKind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::CannotStart,
        Self::TimedOut,
        Self::Killed,
        Self::BadExit,
        Self::Unreadable,
        Self::TooLarge,
        Self::ProtocolError,
        Self::Panicked,
        Self::Cancelled,
        Self::ConditionFailed,
        Self::Unavailable,
    ];

    /// Whether this word is that of a program which ended by itself or was ended: its cause is the last lines that it
    /// wrote.
    pub fn is_of_an_end(word: &str) -> bool {
        [Self::Killed, Self::BadExit].iter().any(|kind| kind.word() == word)
    }

    /// Whether its cause may hold what a program wrote to its standard error, which only those read who run the host.
    pub fn may_quote_a_program(self) -> bool {
        match self {
            Self::CannotStart | Self::Killed | Self::BadExit => true,
            Self::TimedOut
            | Self::Unreadable
            | Self::TooLarge
            | Self::ProtocolError
            | Self::Panicked
            | Self::Cancelled
            | Self::ConditionFailed
            | Self::Unavailable => false,
        }
    }

    /// The kind that `word` names.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// The text of [`Fault::told`] for a fault of which its word, its phrase and its cause are kept.
    pub fn told_of(word: &str, phrase: &str, cause: Option<&str>) -> String {
        match cause.filter(|_| Self::named(word).is_some_and(|kind| !kind.may_quote_a_program())) {
            Some(cause) => format!("{phrase}: {cause}"),
            None => phrase.to_owned(),
        }
    }

    /// What of `cause` stands on the line of the fault: of the last words of a program the last line, which says what the
    /// lines above it lead to.
    pub fn brief(self, cause: &str) -> &str {
        match self {
            Self::Killed | Self::BadExit => cause.trim_end().lines().next_back().unwrap_or_default().trim_start(),
            Self::CannotStart
            | Self::TimedOut
            | Self::Unreadable
            | Self::TooLarge
            | Self::ProtocolError
            | Self::Panicked
            | Self::Cancelled
            | Self::ConditionFailed
            | Self::Unavailable => cause,
        }
    }

    /// The word as it stands in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::CannotStart => "cannot_start",
            Self::TimedOut => "timed_out",
            Self::Killed => "killed",
            Self::BadExit => "bad_exit",
            Self::Unreadable => "unreadable",
            Self::TooLarge => "too_large",
            Self::ProtocolError => "protocol_error",
            Self::Panicked => "panicked",
            Self::Cancelled => "cancelled",
            Self::ConditionFailed => "condition_failed",
            Self::Unavailable => "unavailable",
        }
    }
}

/// The phrase of a script that threw something.
pub const THREW: &str = "threw an error";

/// What everybody may read of a fault: words of this file, and numbers. Only a [`Fault`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phrase(Cow<'static, str>);

impl Phrase {
    fn of(fault: &Fault) -> Self {
        Self(match fault {
            Fault::CannotStart { .. } => "could not start".into(),
            Fault::TimedOut { after } => format!("timed out after {} ms", after.as_millis()).into(),
            Fault::Killed { signal, .. } => format!("was killed by signal {signal}").into(),
            // What a shell says of a program, whoever wrote it.
            Fault::BadExit { status: 127, .. } => "exited with status 127 (a program or script is not there)".into(),
            Fault::BadExit { status: 126, .. } => "exited with status 126 (a program or script may not be run)".into(),
            Fault::BadExit { status, .. } => format!("exited with status {status}").into(),
            Fault::Unreadable { .. } => "sent an unreadable reply".into(),
            Fault::TooLarge { way: Direction::Reply, limit } => format!("sent a reply above {limit} bytes").into(),
            Fault::TooLarge { way: Direction::Call, limit } => format!("cannot take a call above {limit} bytes").into(),
            Fault::Protocol(ProtocolBreach::Returned(_)) => "returned an error".into(),
            Fault::Protocol(ProtocolBreach::Threw(_)) => THREW.into(),
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

/// A fault in all the words that a person may read, behind `hook "NAME" `.
#[derive(Clone, Copy, Debug)]
pub struct Explained<'a>(&'a Fault);

impl<'a> Explained<'a> {
    fn of(fault: &'a Fault) -> Self {
        Self(fault)
    }
}

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.cause() {
            Some(cause) => write!(f, "{}: {}", self.0.phrase(), self.0.kind().brief(&cause.shown())),
            None => write!(f, "{}", self.0.phrase()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "mail ada@example.org, Authorization: Bearer abcdefgh12345678";

    fn with(cause: &str) -> [Fault; 8] {
        [
            Fault::CannotStart { cause: cause.into() },
            Fault::Unreadable { cause: cause.into() },
            Fault::Protocol(ProtocolBreach::Returned(cause.into())),
            Fault::Protocol(ProtocolBreach::Broke(cause.into())),
            Fault::Protocol(ProtocolBreach::Threw(cause.into())),
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
    fn what_a_program_wrote_is_told_to_nobody_else() {
        let cause = || Cause::from("a.py:1\nKeyError: 'x'");
        for (fault, told) in [
            (Fault::exited(1).with_last_words(Some(cause())), "exited with status 1"),
            (Fault::killed(9).with_last_words(Some(cause())), "was killed by signal 9"),
            (Fault::CannotStart { cause: cause() }, "could not start"),
            (Fault::Panicked, "panicked"),
            (Fault::broke("no member \"verdict\""), "broke the protocol: no member \"verdict\""),
            (Fault::Unavailable { cause: "the store is gone".into() }, "is unavailable: the store is gone"),
        ] {
            assert_eq!(fault.told(), told);
            // Who reads it later from what is kept is told the same.
            let kept = fault.cause().map(Cause::shown);
            let kept = FaultKind::told_of(fault.kind().word(), &fault.phrase().to_string(), kept.as_deref());
            assert_eq!(kept, told);
        }
    }

    #[test]
    fn of_last_words_the_last_line_stands_beside_the_fault() {
        let words = || Some(Cause::from("Traceback:\n  File \"g.py\"\nKeyError: 'x'\n"));
        let crashed = Fault::exited(1).with_last_words(words());
        assert_eq!(crashed.explained().to_string(), "exited with status 1: KeyError: 'x'");
        assert_eq!(crashed.phrase(), Fault::exited(1).phrase());
        assert!(crashed.cause().unwrap().shown().starts_with("Traceback"));
        assert_eq!(Fault::killed(9).with_last_words(None).explained().to_string(), "was killed by signal 9");
        assert_eq!(Fault::Panicked.with_last_words(words()), Fault::Panicked);
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
