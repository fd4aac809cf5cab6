//! A condition as it is evaluated: names resolved, macros seen as what they are, literal patterns compiled.

use super::kind::{Kind, StaticKind};
use super::number::Sum;
use super::pattern::{Pattern, Patterns};

/// A step, and what is known of its value.
pub(super) type Typed = (Node, StaticKind);

/// One step of an expression.
#[derive(Debug)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// The name of a type.
    Kind(Kind),
    /// A variable of the event.
    Var(Var),
    /// The variable of a macro, by how many stand around it.
    Local(usize),
    /// `a.b`
    Select(Box<Node>, String),
    /// `has(a.b)`
    Has(Box<Node>, String),
    /// `a[b]`
    Index(Box<[Node; 2]>),
    /// `a in b`
    In(Box<[Node; 2]>),
    /// `a == b`
    Same(Box<[Node; 2]>),
    /// `a != b`
    Differ(Box<[Node; 2]>),
    /// `a < b` and its like
    Order(Order, Box<[Node; 2]>),
    /// `a + b` and its like
    Sum(Sum, Box<[Node; 2]>),
    /// `!a`
    Not(Box<Node>),
    /// `-a`
    Minus(Box<Node>),
    /// `a && b && …`
    And(Vec<Node>),
    /// `a || b || …`
    Or(Vec<Node>),
    /// `a ? b : c`
    If(Box<[Node; 3]>),
    /// A conversion and its like.
    Of(Unary, Box<Node>),
    /// A question about two texts.
    Texts(Texts, Box<[Node; 2]>),
    /// `a.matches("…")`
    Matches(Box<Node>, Box<Pattern>),
    /// `a.matches(b)`
    MatchesMade(Box<[Node; 2]>, Patterns),
    /// `[a, b]`
    List(Vec<Node>),
    /// `{a: b}`
    Map(Vec<[Node; 2]>),
    /// A macro that walks a list or the keys of a map.
    Walk(Box<Walk>),
}

/// A variable of the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Var {
    ToolName,
    ToolInput,
    Depth,
    Event,
    AgentId,
    SessionId,
    RawInput,
    RawToolName,
    FirstPrompt,
    Shell,
}

impl Var {
    /// All of them, as expressions name them.
    pub(super) const ALL: [(&'static str, Self); 10] = [
        ("tool_name", Self::ToolName),
        ("tool_input", Self::ToolInput),
        ("depth", Self::Depth),
        ("event", Self::Event),
        ("agent_id", Self::AgentId),
        ("session_id", Self::SessionId),
        ("raw_input", Self::RawInput),
        ("raw_tool_name", Self::RawToolName),
        ("first_prompt", Self::FirstPrompt),
        ("shell", Self::Shell),
    ];
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Order {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::Less, Self::LessEqual, Self::Greater, Self::GreaterEqual];

    /// What CEL calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Less => "_<_",
            Self::LessEqual => "_<=_",
            Self::Greater => "_>_",
            Self::GreaterEqual => "_>=_",
        }
    }
}

/// A function of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Size,
    Type,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
}

impl Unary {
    /// All of them.
    pub(super) const ALL: [Self; 8] =
        [Self::Size, Self::Type, Self::Bool, Self::Int, Self::Uint, Self::Double, Self::String, Self::Bytes];

    /// What CEL calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Type => "type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
        }
    }

    /// Whether there is such a function of a value of this kind.
    pub(super) fn takes(self, kind: Kind) -> bool {
        match self {
            Self::Size => matches!(kind, Kind::String | Kind::Bytes | Kind::List | Kind::Map),
            Self::Type => true,
            Self::Bool => matches!(kind, Kind::Bool | Kind::String),
            Self::Int | Self::Uint | Self::Double => kind.is_number() || kind == Kind::String,
            Self::String => kind.is_number() || matches!(kind, Kind::Bool | Kind::String | Kind::Bytes),
            Self::Bytes => matches!(kind, Kind::String | Kind::Bytes),
        }
    }

    /// What it gives.
    pub(super) fn gives(self) -> Kind {
        match self {
            Self::Size | Self::Int => Kind::Int,
            Self::Type => Kind::Type,
            Self::Bool => Kind::Bool,
            Self::Uint => Kind::Uint,
            Self::Double => Kind::Double,
            Self::String => Kind::String,
            Self::Bytes => Kind::Bytes,
        }
    }
}

/// A question about two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Texts {
    Contains,
    StartsWith,
    EndsWith,
}

impl Texts {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Contains, Self::StartsWith, Self::EndsWith];

    /// What CEL calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Contains => "contains",
            Self::StartsWith => "startsWith",
            Self::EndsWith => "endsWith",
        }
    }
}

/// A macro that walks a list or the keys of a map.
#[derive(Debug)]
pub(super) struct Walk {
    /// What is walked.
    pub(super) range: Node,
    /// What is done with each item, which is the innermost [`Node::Local`].
    pub(super) with: MacroBody,
}

/// What a macro does with the items.
#[derive(Debug)]
pub(super) enum MacroBody {
    /// `all`
    All(Node),
    /// `exists`
    Exists(Node),
    /// `exists_one`
    One(Node),
    /// `map` and `filter`: which items, and what is made of each.
    Collect(Option<Node>, Node),
}
