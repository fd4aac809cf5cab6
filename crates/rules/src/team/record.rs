//! What a rule of a team did on a machine, on its way back to the gateway. It has what a row of the history has, and not
//! the detail of a fault, which stays where it is.

use jiff::Timestamp;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::execution::{Execution, redacted};
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::{Object, Value, from_value, to_value};
use pintle_domain::rule::{AGENT_EVENTS, Decision, HandlerType};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Most records of one batch: with texts of their usual length, some hundred kilobytes.
pub const MAX_RECORDS: usize = 200;

/// Longest name of a machine, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Names the space of the ids that records have at a gateway.
const RECORDS: Uuid = Uuid::from_u128(0x2b8e_61a4_94c7_5f0d_a3d1_7e55_0c0f_91b6);

/// How the keys of rows begin that machines told of. Those of rows of this store begin with the id of a rule.
const TOLD: &str = "guard:";

/// Longest text that names something, in bytes: the names of rules and tools have some dozens.
const MAX_TEXT_BYTES: usize = 4 << 10;

/// Most of everything else that is said of one, in bytes of JSON.
const MAX_METADATA_BYTES: usize = 64 << 10;

/// The largest number that a row has place for, whichever store keeps it.
const MAX_NUMBER: u64 = (1 << 31) - 1;

/// The members of `metadata` that say which machine told of it, by name and by id.
const MACHINE: [&str; 2] = ["machine", "machine_id"];

/// Which machine tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineName {
    /// A UUID that it made for itself.
    pub id: String,
    /// Its name, for people.
    pub name: String,
}

impl MachineName {
    /// The machine with this id, by a name of which only what people read is left.
    pub fn new(id: impl Into<String>, name: &str) -> Self {
        let plain = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name: String = name.chars().filter(plain).take(MAX_NAME_CHARS).collect();
        Self { id: id.into(), name: if name.is_empty() { "machine".to_owned() } else { name } }
    }

    /// The machine that `value` names.
    ///
    /// # Errors
    /// It names none.
    pub fn read(value: &Value) -> Result<Self, String> {
        if value.as_object().is_none() {
            return Err("expected an object with `id` and `name`".to_owned());
        }
        let read: Self = from_value(value.clone()).map_err(|error| error.to_string())?;
        if !Uuid::parse_str(&read.id).is_ok_and(|id| id.to_string() == read.id) {
            return Err(format!("its id {:?} is not a UUID", read.id));
        }
        Ok(Self::new(read.id, &read.name))
    }
}

/// Which rule it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordRule {
    /// Its id at the gateway.
    pub id: String,
    /// Its name then.
    pub name: String,
    /// Its version then.
    pub version: u32,
    /// The type of the handler that ran.
    pub handler: HandlerType,
}

/// Where it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordPlace {
    /// At which checkpoint.
    pub event: String,
    /// Which occurrence: a UUID.
    pub event_id: String,
    /// The key of the session on the machine.
    pub session: Option<String>,
    /// The turn.
    pub turn: Option<String>,
    /// The tool, if any.
    pub tool: Option<String>,
    /// The call of the model, if any.
    pub call: Option<String>,
    /// The hash of what it was about.
    pub input_hash: Option<String>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordEnd {
    /// The decision.
    pub decision: Decision,
    /// Why, redacted and cut.
    pub reason: Option<String>,
    /// The fault, redacted and cut.
    pub error: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// How often it was tried again.
    pub retry: u32,
    /// Everything else.
    pub metadata: Object,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TeamRecord {
    /// Its id on the machine: a UUID.
    pub id: String,
    /// When.
    pub at: Timestamp,
    /// Which rule.
    pub rule: RecordRule,
    /// Where.
    pub place: RecordPlace,
    /// What came of it.
    pub end: RecordEnd,
}

impl TeamRecord {
    /// The record of `execution`, which was one of the rule `id` of the gateway.
    pub fn of(execution: &Execution, id: &str) -> Self {
        let it = execution.clone();
        Self {
            id: it.id,
            at: it.created_at,
            rule: RecordRule {
                id: id.to_owned(),
                name: it.hook_name,
                version: it.hook_version,
                handler: it.handler_type,
            },
            place: RecordPlace {
                event: it.event.name().to_owned(),
                event_id: it.event_id,
                session: it.session_id,
                turn: it.turn_id,
                tool: it.tool_name,
                call: it.tool_call_id,
                input_hash: it.input_hash,
            },
            end: RecordEnd {
                decision: it.decision,
                reason: it.reason,
                error: it.error,
                duration_ms: it.duration_ms,
                retry: it.retry,
                metadata: it.metadata,
            },
        }
    }

    /// As it goes over the network.
    pub fn value(&self) -> Value {
        to_value(self).expect("texts, numbers and JSON are JSON")
    }

    /// The record that `value` is.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(value: &Value) -> Result<Self, String> {
        let read: Self = from_value(value.clone()).map_err(|error| error.to_string())?;
        let ids = [("id", &read.id), ("rule.id", &read.rule.id), ("place.event_id", &read.place.event_id)];
        for (name, id) in ids {
            Uuid::parse_str(id).map_err(|_| format!("its {name} {id:?} is not a UUID"))?;
        }
        read.fits()?;
        match read.event() {
            Some(_) => Ok(read),
            None => Err(format!("nothing is asked at {:?}", read.place.event)),
        }
    }

    /// Whether a row has place for it: what a machine says is bounded as what happens here is.
    fn fits(&self) -> Result<(), String> {
        let RecordPlace { event: _, event_id: _, session, turn, tool, call, input_hash } = &self.place;
        let texts = [("session", session), ("turn", turn), ("tool", tool), ("call", call), ("input_hash", input_hash)];
        let said = texts.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
        for (name, text) in said.chain([("name", &self.rule.name)]) {
            if text.len() > MAX_TEXT_BYTES {
                return Err(format!("its {name} has {} bytes, expected at most {MAX_TEXT_BYTES}", text.len()));
            }
        }
        let (version, retry) = (u64::from(self.rule.version), u64::from(self.end.retry));
        for (name, number) in [("version", version), ("retry", retry), ("duration_ms", self.end.duration_ms)] {
            if number > MAX_NUMBER {
                return Err(format!("its {name} is {number}, expected at most {MAX_NUMBER}"));
            }
        }
        match Value::Object(self.end.metadata.clone()).to_string().len() {
            bytes if bytes > MAX_METADATA_BYTES => {
                Err(format!("its metadata has {bytes} bytes, expected at most {MAX_METADATA_BYTES}"))
            }
            _ => Ok(()),
        }
    }

    fn event(&self) -> Option<CheckpointKind> {
        AGENT_EVENTS.into_iter().find(|event| event.name() == self.place.event)
    }

    /// The row that the gateway keeps of it: of `tenant`, told by `machine`, at `now`. However often it is told, it is
    /// the same row. `is_known` says whether a rule is one of the tenant's.
    pub fn execution(
        self,
        tenant: &TenantId,
        machine: &MachineName,
        (now, is_known): (Timestamp, impl FnOnce(&HookId) -> bool),
    ) -> Execution {
        let id = Uuid::new_v5(&RECORDS, format!("{tenant}/{}/{}", machine.id, self.id).as_bytes()).to_string();
        let event = self.event().unwrap_or(CheckpointKind::PreToolUse);
        let rule = HookId::from(self.rule.id.as_str());
        let mut metadata = self.end.metadata;
        for (name, value) in MACHINE.into_iter().zip([&machine.name, &machine.id]) {
            metadata.insert(name.to_owned(), Value::from(value.as_str()));
        }
        Execution {
            hook_id: is_known(&rule).then_some(rule),
            hook_name: self.rule.name,
            hook_version: self.rule.version,
            handler_type: self.rule.handler,
            tenant_id: tenant.clone(),
            agent_id: None,
            session_id: Some(format!("guard:{}/{}", machine.name, self.place.session.unwrap_or_default())),
            turn_id: self.place.turn,
            event_id: self.place.event_id,
            trace_id: None,
            event,
            tool_name: self.place.tool,
            tool_call_id: self.place.call,
            input_hash: self.place.input_hash,
            decision: self.end.decision,
            reason: self.end.reason.map(|reason| redacted(&reason)),
            duration_ms: self.end.duration_ms,
            retry: self.end.retry,
            dedup_key: Some(format!("{TOLD}{id}")),
            error: self.end.error.map(|error| redacted(&error)),
            error_detail: None,
            output: None,
            metadata,
            // A clock that is ahead makes no history of tomorrow.
            created_at: self.at.min(now),
            id,
        }
    }
}

/// Whether a machine told of `execution`: it says what happened there, and proves nothing here.
pub fn is_told(execution: &Execution) -> bool {
    execution.dedup_key.as_ref().is_some_and(|key| key.starts_with(TOLD))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_domain::json::json;

    fn record() -> TeamRecord {
        TeamRecord {
            id: "0193a5b0-7000-7000-8000-0000000000aa".into(),
            at: "2026-01-31T12:00:00Z".parse().unwrap(),
            rule: RecordRule {
                id: "0193a5b0-7000-7000-8000-0000000000bb".into(),
                name: "guard".into(),
                version: 2,
                handler: HandlerType::Script,
            },
            place: RecordPlace {
                event: "pre_tool_use".into(),
                event_id: "0193a5b0-7000-7000-8000-0000000000cc".into(),
                session: Some("claude:s".into()),
                turn: None,
                tool: Some("exec".into()),
                call: Some("toolu_1".into()),
                input_hash: None,
            },
            end: RecordEnd {
                decision: Decision::Block,
                reason: Some("no".into()),
                error: None,
                duration_ms: 3,
                retry: 0,
                metadata: json!({ "machine": "somebody else", "fault": "x" }).as_object().cloned().unwrap(),
            },
        }
    }

    #[test]
    fn what_names_no_machine_is_told_in_words_of_json() {
        for (value, why) in [
            (Value::Null, "expected an object with `id` and `name`"),
            (json!("laptop"), "expected an object with `id` and `name`"),
            (json!({ "id": "a", "name": "b" }), "its id \"a\" is not a UUID"),
        ] {
            assert_eq!(MachineName::read(&value), Err(why.to_owned()));
        }
    }

    #[test]
    fn a_record_is_the_same_row_however_often_it_is_told() {
        let (tenant, now) = (TenantId::default_tenant(), "2026-02-01T00:00:00Z".parse().unwrap());
        let machine = |id: &str| MachineName::new(id, "lap top\n/1");
        let kept = |record: TeamRecord, machine: &MachineName| record.execution(&tenant, machine, (now, |_| true));
        let first = kept(record(), &machine("a"));
        assert_eq!(first, kept(TeamRecord::read(&record().value()).unwrap(), &machine("a")));
        assert_eq!(first.session_id.as_deref(), Some("guard:laptop1/claude:s"));
        assert_eq!(
            Value::Object(first.metadata.clone()),
            json!({ "machine": "laptop1", "fault": "x", "machine_id": "a" })
        );
        assert_eq!(first.dedup_key, Some(format!("guard:{}", first.id)));
        assert!(is_told(&first));
        let own = Execution { dedup_key: Some(format!("{}:e", first.id)), ..first.clone() };
        assert!(!is_told(&own) && !is_told(&Execution { dedup_key: None, ..own.clone() }));
        let other = kept(record(), &machine("b"));
        assert!(other.id != first.id && other.dedup_key != first.dedup_key);
        let ahead = TeamRecord { at: "2030-01-01T00:00:00Z".parse().unwrap(), ..record() };
        assert_eq!(kept(ahead, &machine("a")).created_at, now);
        let unknown = record().execution(&tenant, &machine("a"), (now, |_| false));
        assert_eq!(unknown, Execution { hook_id: None, ..first });
    }

    #[test]
    fn what_is_no_record_is_refused_with_its_reason() {
        for (path, value) in [
            (["id", ""], json!("x")),
            (["rule", "id"], json!("x")),
            (["place", "event_id"], json!("x")),
            (["place", "event"], json!("pre_coffee")),
            (["end", "decision"], json!("maybe")),
        ] {
            let mut told = record().value();
            match path {
                [member, ""] => told[member] = value,
                [outer, inner] => told[outer][inner] = value,
            }
            assert!(TeamRecord::read(&told).is_err(), "{path:?}");
        }
    }

    #[test]
    fn what_no_row_has_place_for_is_refused() {
        let told = |outer: &str, inner: &str, value: Value| {
            let mut told = record().value();
            told[outer][inner] = value;
            TeamRecord::read(&told)
        };
        let long = |bytes: usize| json!("x".repeat(bytes));
        for (outer, inner) in [("rule", "name"), ("place", "session"), ("place", "tool"), ("place", "call")] {
            assert!(told(outer, inner, long(MAX_TEXT_BYTES)).is_ok(), "{inner}");
            let why = told(outer, inner, long(MAX_TEXT_BYTES + 1)).unwrap_err();
            assert!(why.contains(inner) && why.contains("at most"), "{why}");
        }
        for (outer, inner) in [("rule", "version"), ("end", "retry"), ("end", "duration_ms")] {
            assert!(told(outer, inner, json!(MAX_NUMBER)).is_ok(), "{inner}");
            assert!(told(outer, inner, json!(MAX_NUMBER + 1)).is_err(), "{inner}");
        }
        assert!(told("end", "metadata", json!({ "a": "x".repeat(MAX_METADATA_BYTES) })).is_err());
    }
}
