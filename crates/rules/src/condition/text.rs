//! The texts of an evaluation: lent where they were seen, shared where they were made.

use std::rc::Rc;

/// A text.
#[derive(Clone, Debug)]
pub(super) enum Text<'a> {
    Seen(&'a str),
    Made(Rc<str>),
}

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Seen(text) => text,
            Self::Made(text) => text,
        }
    }
}
