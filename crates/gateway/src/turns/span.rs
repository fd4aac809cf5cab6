//! A bar of a waterfall, and how it is shown.

use pintle_domain::json::{Object, Value, json};

/// What a bar is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// A round: a model call and the calls that it asked for.
    Round,
    /// A model call.
    Model,
    /// A call of a tool, from its first hook to its answer.
    Call,
    /// The run of a tool.
    Tool,
    /// A checkpoint, with its hooks.
    Checkpoint,
}

impl SpanKind {
    /// Every kind.
    pub(crate) const ALL: [Self; 5] = [Self::Round, Self::Model, Self::Call, Self::Tool, Self::Checkpoint];

    /// The word on the wire.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Round => "round",
            Self::Model => "model",
            Self::Call => "call",
            Self::Tool => "tool",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// A bar. Its times are moments in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) id: String,
    pub(super) parent: Option<String>,
    pub(super) kind: SpanKind,
    pub(super) name: String,
    pub(super) round: u32,
    pub(super) start: f64,
    /// None while it is under way.
    pub(super) end: Option<f64>,
    /// Its hooks, each with the moment at which it began, if it is known.
    pub(super) hooks: Vec<(Option<f64>, Object)>,
    /// What else there is to say.
    pub(super) rest: Object,
}

impl Span {
    pub(super) fn new(kind: SpanKind, id: String, name: impl Into<String>, round: u32, start: f64) -> Self {
        Self {
            id,
            parent: None,
            kind,
            name: name.into(),
            round,
            start,
            end: None,
            hooks: Vec::new(),
            rest: Object::new(),
        }
    }

    /// Adds a member, if there is a value.
    pub(super) fn put(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.rest.insert(name.to_owned(), value.into());
        }
    }

    /// As it is shown, in a turn that began at the moment `origin`.
    pub(super) fn shown(self, origin: f64) -> Value {
        let mut shown = json!({
            "id": self.id,
            "parentId": self.parent,
            "kind": self.kind.word(),
            "name": self.name,
            "round": self.round,
            "startMs": after(self.start, origin),
            "durationMs": self.end.map(|end| after(end, self.start)),
        });
        if let Value::Object(members) = &mut shown {
            members.extend(self.rest);
            if self.kind == SpanKind::Checkpoint {
                let hooks = self.hooks.into_iter().map(|(start, mut hook)| {
                    hook.insert("startMs".to_owned(), json!(start.map(|start| after(start, origin))));
                    Value::Object(hook)
                });
                members.insert("hooks".to_owned(), hooks.collect());
            }
        }
        shown
    }
}

/// The milliseconds from `origin` to `moment`, to the microsecond; clocks may go back.
pub(super) fn after(moment: f64, origin: f64) -> f64 {
    ((moment - origin).max(0.0) * 1000.0).round() / 1000.0
}
