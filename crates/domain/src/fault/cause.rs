//! What was said of a fault, as a type that no text for models takes.

use std::fmt;

use crate::execution::masked;

/// Longest cause that is shown, in characters: the last words of a program, and no log.
pub const MAX_CAUSE_CHARS: usize = 2000;

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
