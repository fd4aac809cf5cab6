//! Why a condition cannot be said to hold or not to hold.

use std::fmt;

use super::kind::Kind;
use super::text::Text;

/// Longest piece of a key or of a text that a fault repeats, in characters: enough to recognise it.
const SHOWN_CHARS: usize = 80;

/// What went wrong in an evaluation.
///
/// Nothing is written out before somebody reads it: `&&` and `||` drop most faults unread.
#[derive(Clone, Debug)]
pub(super) enum Fault<'a> {
    /// A bound is reached. No operator absorbs it.
    Bound(Bound),
    /// The map has no such key.
    NoKey(Text<'a>),
    /// The list is shorter.
    Index(String),
    /// No such operation on values of these kinds.
    Overload {
        /// The operation, as CEL calls it.
        what: &'static str,
        /// The kinds of the first values that it was given.
        kinds: [Option<Kind>; 2],
    },
    /// Something else, in words.
    Words(&'static str),
    /// Something else, in words that name a value.
    Told(String),
}

/// Which bound was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// The cost, with the most that it may be.
    Cost(u64),
    /// The time, with the most that it may be, in ms.
    Time(u128),
}

impl<'a> Fault<'a> {
    /// No such operation on one value of this kind.
    pub(super) fn unary(what: &'static str, kind: Kind) -> Self {
        Self::Overload { what, kinds: [Some(kind), None] }
    }

    /// No such operation on two values of these kinds.
    pub(super) fn binary(what: &'static str, a: Kind, b: Kind) -> Self {
        Self::Overload { what, kinds: [Some(a), Some(b)] }
    }

    /// Whether `&&` and `||` may drop it.
    pub(super) fn absorbable(&self) -> bool {
        match self {
            Self::Bound(_) => false,
            Self::NoKey(_) | Self::Index(_) | Self::Overload { .. } | Self::Words(_) | Self::Told(_) => true,
        }
    }
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bound(Bound::Cost(most)) => {
                write!(f, "the condition costs more than {most}; look at fewer or smaller values")
            }
            Self::Bound(Bound::Time(most)) => {
                write!(f, "the condition took longer than {most} ms; look at fewer or smaller values")
            }
            Self::NoKey(key) => {
                write!(f, "no such key: {}; test it with has() first", shown(key.as_str()))
            }
            Self::Index(index) => write!(f, "index out of bounds: {index}"),
            Self::Overload { what, kinds } => no_overload(f, what, kinds),
            Self::Words(words) => f.write_str(words),
            Self::Told(words) => f.write_str(words),
        }
    }
}

/// The operations that are known for numbers of one kind only.
const SUMS: [&str; 5] = ["_+_", "_-_", "_*_", "_/_", "_%_"];

/// Words for an operation that there is not, and what to do where numbers of two kinds met.
fn no_overload(f: &mut fmt::Formatter<'_>, what: &str, kinds: &[Option<Kind>; 2]) -> fmt::Result {
    let names: Vec<&str> = kinds.iter().flatten().map(|kind| kind.name()).collect();
    write!(f, "found no matching overload for '{what}' applied to '({})'", names.join(", "))?;
    let mixed = matches!(
        kinds,
        [Some(Kind::Double), Some(Kind::Int | Kind::Uint)] | [Some(Kind::Int | Kind::Uint), Some(Kind::Double)]
    );
    if mixed && SUMS.contains(&what) {
        f.write_str("; numbers of a tool's input are doubles: write 1.0, or convert with int()")?;
    }
    Ok(())
}

/// A text on one line, cut to what a message can carry.
pub(super) fn shown(text: &str) -> String {
    let mut shown = String::new();
    for letter in text.chars().take(SHOWN_CHARS) {
        if letter == '\'' {
            shown.push(letter);
        } else {
            shown.extend(letter.escape_debug());
        }
    }
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}
