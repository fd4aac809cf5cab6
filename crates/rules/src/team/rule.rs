//! One rule on its way from a gateway to the machines that it guards.
//!
//! What acts with the rights of its host, and what needs a secret of its gateway, stays there: the rule goes without its
//! config and says so, and what it was to guard stays shut where it arrives.

use pintle_domain::breaker::BreakerPolicy;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::{HookId, TenantId, agent_uuid};
use pintle_domain::json::{Object, Value, from_value, json, to_value};
use pintle_domain::rule::{AGENT_EVENTS, Fallback, HandlerType, HookScope, IN_FILE, Rule, Source};
use serde::{Deserialize, Serialize};

use crate::record;

/// The member of `metadata` that says which rule of the team a row is.
const TEAM: &str = "team";

/// How the origin of a rule begins that comes from a gateway.
const ORIGIN: &str = "team:";

/// Why a rule goes without its config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Withheld {
    /// It runs a command: no gateway runs programs on the machines of a team.
    Command,
    /// It needs a secret that does not leave the gateway.
    Secret,
}

/// Why a rule of a team cannot run where it arrived: what it guards stays shut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotRun {
    /// It runs a command.
    #[error("it runs a command, and rules of a team run none here; make it a script, or a rule of this machine")]
    Command,
    /// It needs a secret of the gateway.
    #[error("it needs a secret that does not leave the gateway; send its requests without one, or make it a script")]
    Secret,
}

/// What runs a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TeamHandler {
    /// The type of the handler.
    #[serde(rename = "type")]
    pub kind: HandlerType,
    /// Its settings, unless they are withheld.
    #[serde(default)]
    pub config: Object,
    /// Why they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Withheld>,
}

/// When a rule is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TeamTerms {
    /// Where.
    pub event: String,
    /// A pattern of tool names; empty for every event.
    pub matcher: String,
    /// A condition; empty for none.
    pub if_expr: String,
    /// Higher runs first.
    pub priority: i32,
}

/// What becomes of its answer, and without one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TeamOutcome {
    /// The time that one call may take.
    pub timeout_ms: u32,
    /// The fallback that counts when that time is over.
    pub on_timeout: Fallback,
    /// Whether it may change what it is asked about.
    pub may_rewrite: bool,
    /// The outcomes that its circuit breaker counts.
    pub breaker: BreakerPolicy,
    /// The fallback that counts while its circuit breaker is open.
    pub on_trip: Fallback,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TeamRule {
    /// Its id at the gateway.
    pub id: String,
    /// For people.
    pub name: String,
    /// Its version at the gateway.
    pub version: u32,
    /// When it was made; the older of two with one priority runs first.
    pub created_at: String,
    /// Who brought it.
    pub source: Source,
    /// The names of the agents that it is about; all if that is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// What runs it.
    pub handler: TeamHandler,
    /// When.
    pub when: TeamTerms,
    /// What becomes of it.
    pub outcome: TeamOutcome,
}

impl TeamRule {
    /// The rule of `row`. `agent` knows the names of agents by the ids that rows have.
    pub fn of(row: &Rule, agent: impl Fn(&str) -> Option<String>) -> Self {
        let withheld = match row.handler_type {
            HandlerType::Command => Some(Withheld::Command),
            HandlerType::Http | HandlerType::Prompt | HandlerType::Script => {
                (!record::secrets(row).is_empty()).then_some(Withheld::Secret)
            }
        };
        let agents = match row.scope {
            HookScope::Global | HookScope::Tenant => None,
            HookScope::Agent => Some(row.agent_ids.iter().filter_map(|id| agent(id)).collect()),
        };
        Self {
            id: row.id.to_string(),
            name: row.name.clone(),
            version: row.version,
            created_at: row.created_at.clone(),
            source: row.source,
            agents,
            handler: TeamHandler {
                kind: row.handler_type,
                config: if withheld.is_some() { Object::new() } else { row.config.clone() },
                withheld,
            },
            when: TeamTerms {
                event: row.event.name().to_owned(),
                matcher: row.matcher.clone(),
                if_expr: row.if_expr.clone(),
                priority: row.priority,
            },
            outcome: TeamOutcome {
                timeout_ms: row.timeout_ms,
                on_timeout: row.on_timeout,
                may_rewrite: row.may_rewrite,
                breaker: row.breaker,
                on_trip: row.on_trip,
            },
        }
    }

    /// As a statement has it.
    pub fn value(&self) -> Value {
        to_value(self).expect("texts, numbers and JSON are JSON")
    }

    /// The rule that `value` is.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(value: &Value) -> Result<Self, String> {
        let rule: Self = from_value(value.clone()).map_err(|error| error.to_string())?;
        let is_id = uuid::Uuid::parse_str(&rule.id).is_ok_and(|id| id.to_string() == rule.id);
        match (is_id, rule.event()) {
            (false, _) => Err(format!("its id {:?} is not a UUID", rule.id)),
            (true, None) => Err(format!("nothing is asked at {:?} here", rule.when.event)),
            (true, Some(_)) => Ok(rule),
        }
    }

    /// Where it acts.
    pub fn event(&self) -> Option<CheckpointKind> {
        AGENT_EVENTS.into_iter().find(|event| event.name() == self.when.event)
    }

    /// The label by which people know it.
    pub fn label(&self) -> &str {
        if self.name.is_empty() { &self.id } else { &self.name }
    }

    /// The ids of its agents here; nothing where it is about all.
    pub fn agent_ids(&self) -> Option<Vec<String>> {
        let id = |name: &String| agent_uuid(&TenantId::default_tenant(), name);
        self.agents.as_ref().map(|names| names.iter().map(id).collect())
    }

    /// The row that it is on a machine, where it comes from the gateway `from`. It is everybody's, or that of the agents
    /// of these names.
    ///
    /// # Errors
    /// It cannot run there.
    pub fn row(&self, from: &str) -> Result<Rule, CannotRun> {
        match (self.handler.withheld, self.handler.kind) {
            (Some(Withheld::Command), _) | (None, HandlerType::Command) => return Err(CannotRun::Command),
            (Some(Withheld::Secret), _) => return Err(CannotRun::Secret),
            (None, HandlerType::Http | HandlerType::Prompt | HandlerType::Script) => {}
        }
        let origin = format!("{ORIGIN}{from}");
        let team = json!({ IN_FILE: &origin, TEAM: { "rule": &self.id, "version": self.version } });
        let (scope, tenant_id, agent_ids) = match self.agent_ids() {
            None => (HookScope::Global, TenantId::sentinel(), Vec::new()),
            Some(ids) => (HookScope::Agent, TenantId::default_tenant(), ids),
        };
        Ok(Rule {
            id: local_id(&self.id),
            tenant_id,
            agent_ids,
            // Whoever read it looked.
            event: self.event().unwrap_or(CheckpointKind::PreToolUse),
            handler_type: self.handler.kind,
            scope,
            name: self.name.clone(),
            config: self.handler.config.clone(),
            matcher: self.when.matcher.clone(),
            if_expr: self.when.if_expr.clone(),
            timeout_ms: self.outcome.timeout_ms,
            on_timeout: self.outcome.on_timeout,
            priority: self.when.priority,
            enabled: true,
            version: self.version,
            source: self.source,
            may_rewrite: self.outcome.may_rewrite,
            breaker: self.outcome.breaker,
            on_trip: self.outcome.on_trip,
            tripped_at: None,
            disabled_reason: String::new(),
            metadata: team.as_object().cloned().unwrap_or_default(),
            created_by: Some(origin),
            created_at: self.created_at.clone(),
            updated_at: self.created_at.clone(),
        })
    }
}

/// The id of a rule of a team on a machine: another one than at the gateway, which may be the same store.
fn local_id(id: &str) -> HookId {
    HookId::of_name(&format!("team/{id}"))
}

/// The gateway that a row comes from, and the id of its rule there: whoever mirrors one says so, and the id proves it.
pub fn is_of_team(row: &Rule) -> Option<(&str, &str)> {
    let from = row.created_by.as_deref()?.strip_prefix(ORIGIN)?;
    let rule = row.metadata.get(TEAM)?.get("rule")?.as_str()?;
    (row.id == local_id(rule)).then_some((from, rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(handler: HandlerType, config: Value) -> Rule {
        let rule = TeamRule {
            id: "0193a5b0-7000-7000-8000-0000000000bb".into(),
            name: "guard".into(),
            version: 3,
            created_at: "2026-01-31T12:00:00Z".into(),
            source: Source::User,
            agents: None,
            handler: TeamHandler { kind: HandlerType::Script, config: Object::new(), withheld: None },
            when: TeamTerms {
                event: "pre_tool_use".into(),
                matcher: "^exec$".into(),
                if_expr: String::new(),
                priority: 7,
            },
            outcome: TeamOutcome {
                timeout_ms: 5000,
                on_timeout: Fallback::Block,
                may_rewrite: true,
                breaker: BreakerPolicy::Faults,
                on_trip: Fallback::Block,
            },
        };
        let row = rule.row("https://p.example").unwrap();
        let config = config.as_object().cloned().unwrap_or_default();
        Rule { id: HookId::from(rule.id.as_str()), handler_type: handler, config, ..row }
    }

    #[test]
    fn what_needs_the_gateway_stays_there() {
        let url = "https://a.example/";
        for (handler, config, expected) in [
            (HandlerType::Script, json!({ "source": "function handle() {}" }), None),
            (HandlerType::Prompt, json!({ "prompt_template": "?" }), None),
            (HandlerType::Http, json!({ "url": url, "headers": { "X-Team": "a" } }), None),
            (
                HandlerType::Http,
                json!({ "url": url, "headers": { "Authorization": "aes-gcm:x" } }),
                Some(CannotRun::Secret),
            ),
            (HandlerType::Http, json!({ "url": url, "signing_secret": "aes-gcm:x" }), Some(CannotRun::Secret)),
            (HandlerType::Command, json!({ "command": "rm -rf /" }), Some(CannotRun::Command)),
        ] {
            let sent = TeamRule::of(&row(handler, config.clone()), |_| None);
            let read = TeamRule::read(&sent.value()).unwrap();
            assert_eq!(read, sent);
            match (read.row("https://p.example"), expected) {
                (Ok(row), None) => assert_eq!(Value::Object(row.config), config),
                (Err(why), Some(expected)) => {
                    assert_eq!(why, expected);
                    assert!(sent.handler.config.is_empty(), "{sent:?}");
                }
                (found, expected) => panic!("{found:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn a_command_that_somebody_sends_all_the_same_does_not_run() {
        let mut sent = TeamRule::of(&row(HandlerType::Script, json!({ "source": "x" })), |_| None);
        sent.handler = TeamHandler { kind: HandlerType::Command, config: Object::new(), withheld: None };
        assert_eq!(sent.row("https://p.example"), Err(CannotRun::Command));
    }

    #[test]
    fn agents_are_known_by_their_names() {
        let of = |scope, ids: &[&str]| {
            let ids = ids.iter().map(|id| (*id).to_owned()).collect();
            let row = Rule { scope, agent_ids: ids, ..row(HandlerType::Script, json!({ "source": "x" })) };
            let sent = TeamRule::of(&row, |id| (id == "a").then(|| "main".to_owned()));
            let row = sent.row("https://p.example").unwrap();
            (row.scope, row.agent_ids)
        };
        assert_eq!(of(HookScope::Tenant, &[]), (HookScope::Global, vec![]));
        assert_eq!(of(HookScope::Global, &[]), (HookScope::Global, vec![]));
        let main = agent_uuid(&TenantId::default_tenant(), "main");
        assert_eq!(of(HookScope::Agent, &["a", "gone"]), (HookScope::Agent, vec![main]));
        assert_eq!(of(HookScope::Agent, &["gone"]), (HookScope::Agent, vec![]), "it becomes nobody's, not everybody's");
    }

    #[test]
    fn a_row_says_where_it_comes_from_and_its_id_proves_it() {
        let sent = TeamRule::of(&row(HandlerType::Script, json!({ "source": "x" })), |_| None);
        let row = sent.row("https://p.example").unwrap();
        assert_eq!(is_of_team(&row), Some(("https://p.example", sent.id.as_str())));
        assert_eq!(is_of_team(&Rule { id: HookId::fresh(), ..row.clone() }), None);
        assert!(row.file().is_some_and(|file| file == "team:https://p.example"));
        for (member, value) in [("id", json!("x")), ("when", json!({ "event": "pre_coffee" }))] {
            let mut value_of = sent.value();
            match value.as_object() {
                Some(_) => value_of["when"]["event"] = json!("pre_coffee"),
                None => value_of[member] = value,
            }
            assert!(TeamRule::read(&value_of).is_err(), "{member}");
        }
    }
}
