//! The kinds of values, and what is known of a value before it is there.

use std::fmt;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A whole number of 64 bits.
    Int,
    /// A whole number of 64 bits without a sign.
    Uint,
    /// A floating-point number of 64 bits; all numbers of JSON.
    Double,
    /// A text.
    String,
    /// Bytes.
    Bytes,
    /// A list.
    List,
    /// A map.
    Map,
    /// The type of a value.
    Type,
}

impl Kind {
    /// The kinds that an expression can name, such as in `type(x) == list`.
    pub(super) const NAMED: [Self; 10] = [
        Self::Null,
        Self::Bool,
        Self::Int,
        Self::Uint,
        Self::Double,
        Self::String,
        Self::Bytes,
        Self::List,
        Self::Map,
        Self::Type,
    ];

    /// What CEL calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::List => "list",
            Self::Map => "map",
            Self::Type => "type",
        }
    }

    /// Whether it is a number.
    pub(super) fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }

    /// Whether a map can have a key of this kind, or be asked for one; doubles that are whole find the whole number.
    pub(super) fn is_key(self) -> bool {
        self.is_number() || matches!(self, Self::Bool | Self::String)
    }

    /// Whether `<` is known for two values of it.
    pub(super) fn is_ordered(self) -> bool {
        self.is_number() || matches!(self, Self::Bool | Self::String | Self::Bytes)
    }
}

/// What the text of an expression alone says about a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StaticKind {
    /// Nothing: it is seen when it is there.
    Dyn,
    /// Its kind; neither a list nor a map.
    Plain(Kind),
    /// A list of these.
    List(Box<StaticKind>),
    /// A map of these keys to these values.
    Map(Box<StaticKind>, Box<StaticKind>),
}

impl StaticKind {
    pub(super) const NULL: Self = Self::Plain(Kind::Null);
    pub(super) const BOOL: Self = Self::Plain(Kind::Bool);
    pub(super) const INT: Self = Self::Plain(Kind::Int);
    pub(super) const UINT: Self = Self::Plain(Kind::Uint);
    pub(super) const DOUBLE: Self = Self::Plain(Kind::Double);
    pub(super) const STRING: Self = Self::Plain(Kind::String);
    pub(super) const BYTES: Self = Self::Plain(Kind::Bytes);
    pub(super) const TYPE: Self = Self::Plain(Kind::Type);

    /// A map with texts as keys and anything as values, as JSON has them.
    pub(super) fn object() -> Self {
        Self::Map(Box::new(Self::STRING), Box::new(Self::Dyn))
    }

    /// The kind, where it is known.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self {
            Self::Dyn => None,
            Self::Plain(kind) => Some(*kind),
            Self::List(_) => Some(Kind::List),
            Self::Map(..) => Some(Kind::Map),
        }
    }

    /// Whether a value of it may be of this kind.
    pub(super) fn may_be(&self, test: impl Fn(Kind) -> bool) -> bool {
        self.kind().is_none_or(test)
    }

    /// Whether values of the two can be equal; numbers of every kind can.
    pub(super) fn may_equal(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn, _) | (_, Self::Dyn) => true,
            (Self::Plain(a), Self::Plain(b)) => a == b || (a.is_number() && b.is_number()),
            (Self::List(a), Self::List(b)) => a.may_equal(b),
            (Self::Map(a, x), Self::Map(b, y)) => a.may_equal(b) && x.may_equal(y),
            (Self::Plain(_) | Self::List(_) | Self::Map(..), _) => false,
        }
    }

    /// What is known of a value that is either of the two.
    pub(super) fn or(self, other: Self) -> Self {
        if self == other { self } else { Self::Dyn }
    }

    /// What is known of a value that is one of many; nothing where there is none.
    pub(super) fn any(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().reduce(Self::or).unwrap_or(Self::Dyn)
    }
}

impl fmt::Display for StaticKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Plain(kind) => f.write_str(kind.name()),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(key, of) => write!(f, "map({key}, {of})"),
        }
    }
}
