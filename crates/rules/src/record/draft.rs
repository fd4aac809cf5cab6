//! A record whose members are known and of the right types, and that is not judged further yet.

use pintle_domain::json::{Object, Value};
use pintle_domain::rule::{HandlerType, Rule};

use super::config::members_of;
use super::typed::{Kind, Place, typed};
use super::{Lang, RecordError};

/// The members that a record may have. The last ones are the server's.
const MEMBERS: [(&str, Kind); 27] = [
    ("event", Kind::Text),
    ("handler_type", Kind::Text),
    ("scope", Kind::Text),
    ("name", Kind::Text),
    ("config", Kind::Object),
    ("matcher", Kind::Text),
    ("if_expr", Kind::Text),
    ("timeout_ms", Kind::Integer),
    ("on_timeout", Kind::Text),
    ("priority", Kind::Small),
    ("enabled", Kind::Flag),
    ("agent_ids", Kind::Uuids),
    ("agent_id", Kind::Uuid),
    ("may_rewrite", Kind::Flag),
    ("breaker", Kind::Text),
    ("on_trip", Kind::Text),
    ("metadata", Kind::Object),
    ("tenant_id", Kind::Uuid),
    (TENANT, Kind::Text),
    ("id", Kind::Ignored),
    ("version", Kind::Ignored),
    ("source", Kind::Ignored),
    ("tripped_at", Kind::Ignored),
    ("disabled_reason", Kind::Ignored),
    ("created_by", Kind::Ignored),
    ("created_at", Kind::Ignored),
    ("updated_at", Kind::Ignored),
];

/// The member that names the tenant that owns a record of a file.
pub(super) const TENANT: &str = "tenant";

/// The members that a record may have that comes by `lang`.
fn members(lang: Lang) -> Vec<(&'static str, Kind)> {
    let spelled = |(name, kind): (&'static str, Kind)| match (lang.takes_keys(), name) {
        (true, "agent_ids") => (name, Kind::Texts),
        (true, "agent_id") => (name, Kind::Text),
        _ => (name, kind),
    };
    MEMBERS.into_iter().filter(|(name, _)| lang == Lang::File || *name != TENANT).map(spelled).collect()
}

/// Changes of a record: known members of the right types, without the server's.
pub(super) fn updates(object: &Object, lang: Lang) -> Result<Object, RecordError> {
    typed(object, &members(lang), Place::Updates).map(one_agent)
}

/// A record, or a row, or both merged.
pub(super) struct Draft(Object);

impl Draft {
    /// A record as it came.
    pub(super) fn of_record(object: &Object, lang: Lang) -> Result<Self, RecordError> {
        Self::of(one_agent(typed(object, &members(lang), Place::Record)?))
    }

    /// A row as it is kept.
    pub(super) fn of_row(hook: &Rule) -> Result<Self, RecordError> {
        Self::of(row(hook))
    }

    /// Members of the right types, `config` among them, which is now looked into.
    pub(super) fn of(mut object: Object) -> Result<Self, RecordError> {
        let handler = object.get("handler_type").and_then(Value::as_str).and_then(HandlerType::named);
        if let (Some(handler), Some(Value::Object(config))) = (handler, object.get("config")) {
            let config = typed(config, members_of(handler), Place::Config)?;
            object.insert("config".to_owned(), Value::Object(config));
        }
        Ok(Self(object))
    }

    /// A text; empty if there is none.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A list of texts.
    pub(super) fn texts(&self, name: &str) -> Vec<&str> {
        self.0.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Yes or no, or what counts where there is neither.
    pub(super) fn flag(&self, name: &str, or: bool) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(or)
    }

    /// The digits of a whole number; `0` if there is none.
    pub(super) fn digits(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_number).map_or("0", |number| number.as_str())
    }

    /// An object; empty if there is none.
    pub(super) fn object(&self, name: &str) -> Object {
        self.0.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
    }
}

/// The members of a row that a writer may send, but for its tenant, which follows from its scope.
pub(super) fn row(hook: &Rule) -> Object {
    // A row always becomes an object; of another, nothing would be left to judge, so it would be refused.
    let Ok(Value::Object(mut all)) = pintle_domain::json::to_value(hook) else { return Object::new() };
    all.retain(|name, _| {
        name != "tenant_id" && MEMBERS.iter().any(|(known, kind)| known == name && *kind != Kind::Ignored)
    });
    all
}

/// `agent_id` is the only one of `agent_ids`, where that has none.
fn one_agent(mut object: Object) -> Object {
    let one = object.shift_remove("agent_id").filter(|id| id.as_str().is_some_and(is_some_agent));
    let others = object.get("agent_ids").and_then(Value::as_array).is_some_and(|ids| !ids.is_empty());
    if let Some(one) = one.filter(|_| !others) {
        object.insert("agent_ids".to_owned(), Value::Array(vec![one]));
    }
    object
}

/// Older clients send the nil UUID for no agent.
fn is_some_agent(id: &str) -> bool {
    !id.is_empty() && !uuid::Uuid::parse_str(id).is_ok_and(|uuid| uuid.is_nil())
}
