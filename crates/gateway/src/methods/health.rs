//! `health.get`: how everything stands that turns and hooks need, without asking any of it anew; and `doctor.run`, which
//! does ask.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use pintle_domain::breaker::{THRESHOLD, WINDOW_SECONDS};
use pintle_domain::execution::masked;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::{Value, json};
use pintle_domain::shown_url::shown_url;
use pintle_domain::skill::finding::Severity;
use pintle_domain::store::TenantScope;
use pintle_host::Host;
use pintle_host::config::ProviderConfig;
use pintle_rules::admin::ListFilter;

use super::overview::not_armed;
use crate::Shared;
use crate::error::ApiError;
use crate::guards::{self, holds_for};
use crate::params::Params;
use crate::principal::Principal;

/// How much of a line of somebody else's is shown, in characters.
const MAX_LINE_CHARS: usize = 500;

impl Shared {
    pub(super) async fn health_get(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        Params::of(params, &[])?;
        let caller = who.caller();
        // What a child of the host wrote may be about any tenant.
        let whole = caller.is_master();
        let guards = self.guard_lines(who, &TenantScope::from(&who.tenant)).await?;
        let rules = self.rule_admin.list(&caller, &ListFilter::default()).await?;
        let budget = self.rule_admin.budget(&caller).await?;
        let nodes = if whole { self.nodes_list(&Value::Null).await? } else { json!({ "nodes": [] }) };
        let store = self.store_health(whole).await;
        let host = self.host.read().await;
        Ok(json!({
            "guards": { "counts": guards::counts(&guards), "notArmed": not_armed(&guards, whole) },
            "providers": providers(&host, whole),
            "store": store,
            "nodes": nodes["nodes"],
            "processHooks": process_hooks(&host, whole),
            "mcpServers": servers(&host, whole),
            "skills": skills(&host, whole),
            "breakers": breakers(&who.tenant, &rules, &self.rule_admin.counted(&caller)),
            "budget": budget,
            "doctor": if whole { self.desk.doctor.last() } else { None },
        }))
    }

    pub(super) async fn doctor_run(&self, params: &Value) -> Result<Value, ApiError> {
        Params::of(params, &[])?;
        self.desk.doctor.examine().await
    }

    /// How the store answers now.
    async fn store_health(self: &Arc<Self>, whole: bool) -> Value {
        let url = shown_url(&self.host.read().await.loaded.config.store_url);
        let asked = Instant::now();
        let answer = self.blocking(|shared| Ok(shared.store.jobs_left()?)).await;
        let kind = url.split(':').next().unwrap_or_default().to_owned();
        json!({
            "kind": kind,
            "url": whole.then_some(url),
            "schemaLevel": pintle_store::schema_level(),
            "ok": answer.is_ok(),
            "error": answer.as_ref().err().map(|error| masked(&error.message).into_owned()),
            "answeredMs": u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX),
            "waitingJobs": answer.ok(),
        })
    }
}

/// The last line of `text` that says something, as people may see it.
fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(masked(line).chars().take(MAX_LINE_CHARS).collect())
}

fn providers(host: &Host, whole: bool) -> Vec<Value> {
    let shown = |(name, provider): (&String, &ProviderConfig)| {
        let missing = provider.api_key_env.as_ref().filter(|variable| host.env().text(variable).is_none());
        json!({
            "name": name,
            "url": host.provider_spec(name, provider).base_url.filter(|_| whole).map(|url| shown_url(&url)),
            "ok": missing.is_none(),
            "error": missing.map(|variable| format!("the variable {variable} is not set")),
        })
    };
    host.loaded.config.providers.iter().map(shown).collect()
}

fn process_hooks(host: &Host, whole: bool) -> Vec<Value> {
    let running = host.running().into_iter();
    let shown = running.map(|(name, process)| {
        let status = process.status();
        json!({
            "name": name,
            "state": if status.up { "up" } else if process.is_starting() { "starting" } else { "down" },
            "restarts": status.restarts,
            "answeredMsAgo": status.answered_ago.map(|ago| u64::try_from(ago.as_millis()).unwrap_or(u64::MAX)),
            "fault": status.fault.as_ref().map(|fault| fault.kind().word()),
            "why": status.fault.as_ref().filter(|_| whole).map(|fault| masked(&fault.explained().to_string()).into_owned()),
            "droppedEvents": status.dropped_events.values().sum::<u64>(),
            "strayLines": status.stray_lines,
            "lastStderr": Some(process.stderr_tail()).filter(|_| whole).and_then(|tail| last_line(&tail)),
        })
    });
    shown.collect()
}

fn servers(host: &Host, whole: bool) -> Vec<Value> {
    let tools = host.servers.catalogue().counts();
    let running = host.servers.statuses().into_iter();
    let shown = running.map(|(name, status)| {
        json!({
            "name": name,
            "state": if status.up { "up" } else { "down" },
            "restarts": status.restarts,
            "tools": tools.get(&name).copied().unwrap_or_default(),
            "why": status.cause.filter(|_| whole).map(|why| masked(&why).into_owned()),
            "lastStderr": Some(host.servers.stderr_tail(&name)).filter(|_| whole).and_then(|tail| last_line(&tail)),
        })
    });
    shown.collect()
}

/// What keeps texts of skills out of conversations, each thing once, however many agents have the skill.
fn skills(host: &Host, whole: bool) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    for agent in host.loaded.config.agents.keys() {
        let scan = host.skills.of(agent);
        for finding in scan.findings.iter().filter(|finding| finding.severity == Severity::Error) {
            let why = whole.then(|| masked(&finding.message).into_owned());
            let shown = json!({ "name": finding.skill, "code": finding.code, "why": why });
            if !found.contains(&shown) {
                found.push(shown);
            }
        }
    }
    found
}

/// The circuit breakers in `tenant` that are open or fill, the open ones first, then the fullest.
fn breakers(tenant: &TenantId, rules: &[Value], counted: &BTreeMap<HookId, usize>) -> Vec<Value> {
    let count = |rule: &Value| rule["id"].as_str().and_then(|id| counted.get(&HookId::from(id))).copied();
    let here = rules.iter().filter(|rule| holds_for(tenant, rule));
    let mut found: Vec<Value> = here.filter_map(|rule| breaker(rule, count(rule).unwrap_or_default())).collect();
    found.sort_by_key(|it| (it["trippedAt"].is_null(), std::cmp::Reverse(it["counted"].as_u64())));
    found
}

/// The circuit breaker of the rule `hook`, where it is open, for the caller's tenant or, to owners, for any; or where
/// outcomes count towards it.
fn breaker(hook: &Value, counted: usize) -> Option<Value> {
    let trips = hook["trips"].as_array().map(Vec::len).unwrap_or_default();
    let since = hook["tripped_at"].as_str();
    (since.is_some() || trips > 0 || counted > 0).then(|| {
        json!({
            "hookId": hook["id"],
            "name": hook["name"],
            "event": hook["event"],
            "onTrip": hook["on_trip"],
            "trippedAt": since,
            "tenants": trips,
            "counted": counted,
            "threshold": THRESHOLD,
            "windowSeconds": WINDOW_SECONDS,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breakers_that_are_open_or_fill_are_shown() {
        for (hook, counted, is_shown) in [
            (json!({"id": "1", "tripped_at": null}), 0, false),
            (json!({"id": "1", "tripped_at": null, "trips": []}), 0, false),
            (json!({"id": "1", "tripped_at": null}), 3, true),
            (json!({"id": "1", "tripped_at": "2026-11-22T06:44:00Z"}), 0, true),
            (json!({"id": "1", "tripped_at": null, "trips": [{}]}), 0, true),
        ] {
            assert_eq!(breaker(&hook, counted).is_some(), is_shown, "{hook}");
        }
    }

    #[test]
    fn open_breakers_come_first_then_the_fullest_and_none_of_another_tenant() {
        let rule = |id: &str, tenant: &str, tripped: Value| json!({"id": id, "scope": "tenant", "tenant_id": tenant, "tripped_at": tripped});
        let rules = [
            rule("1", "a", Value::Null),
            rule("2", "a", Value::Null),
            rule("3", "a", json!("2026-11-22T06:44:00Z")),
            rule("4", "b", Value::Null),
        ];
        let counted = [("1", 1), ("2", 4), ("4", 2)].map(|(id, count)| (HookId::from(id), count)).into();
        let ids: Vec<Value> =
            breakers(&TenantId::from("a"), &rules, &counted).into_iter().map(|it| it["hookId"].clone()).collect();
        assert_eq!(ids, [json!("3"), json!("2"), json!("1")]);
    }

    #[test]
    fn the_last_line_has_no_secrets_and_an_end() {
        assert_eq!(last_line("a\nb  \n\n"), Some("b".to_owned()));
        assert_eq!(last_line(" \n"), None);
        assert!(!last_line("password=hunter2-hunter2").unwrap().contains("hunter2"));
        assert_eq!(last_line(&"x ".repeat(5000)).unwrap().chars().count(), MAX_LINE_CHARS);
    }
}
