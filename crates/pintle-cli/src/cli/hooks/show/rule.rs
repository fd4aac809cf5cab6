//! `pintle hooks show` for a rule: its record, its breaker, who changed it, what it did last.

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use pintle_domain::health::Health;
use pintle_domain::hook::Family;
use pintle_domain::json::{Value, json};
use pintle_domain::shown_url::shown_url;
use pintle_rules::admin::{Caller, HistoryQuery, RuleAdmin};

use super::super::super::command_line::complete;
use super::super::super::session::word;
use super::super::history::line;
use super::super::list::add_health;
use super::super::list::rule::{Rules, fault};
use super::super::stored::{called, label, refused, text as said};
use crate::clean::{clean, prose};
use crate::error::CliError;
use crate::moment::moment_of;
use crate::text::{clip, family_said};
use pintle_host::config::Config;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default();

/// How many of the newest changes are shown: more are in the audit record.
const CHANGES: usize = 10;

/// How many of the newest executions are shown; `hooks history` has all of them.
const EXECUTIONS: usize = 5;

/// Everything about one rule.
pub(super) struct RuleDetailsView {
    hook: Value,
    changes: Vec<Value>,
    executions: Vec<Value>,
}

impl RuleDetailsView {
    /// Asks the rule admin about `hook`, a record that it published.
    pub(super) async fn of(rule_admin: &RuleAdmin, by: &Caller, hook: Value) -> Result<Self, CliError> {
        let id = said(&hook, "id");
        let changes = rule_admin.changes(by, id, CHANGES).await.map_err(refused)?;
        let query = HistoryQuery { hook: Some(id.to_owned()), limit: Some(EXECUTIONS), ..HistoryQuery::default() };
        let executions = rule_admin.history(by, &query).await.map_err(refused)?.executions;
        Ok(Self { changes: changes.iter().map(|change| json!(change)).collect(), executions, hook })
    }

    pub(super) fn json(&self, config: &Config) -> Value {
        let mut shown = json!({
            "hook": self.hook, "fault": fault(&self.hook), "changes": self.changes, "executions": self.executions,
        });
        add_health(&mut shown, Rules::new(vec![self.hook.clone()], config, &[]).health(&self.hook));
        shown
    }

    pub(super) fn plain(&self, config: &Config) -> String {
        let hook = &self.hook;
        let rules = Rules::new(vec![hook.clone()], config, &[]);
        let mut text = format!("{BOLD}{}{BOLD:#}\n", called(hook));
        let mut row = |name: &str, value: &str| text.push_str(&format!("{name:<16} {value}\n"));
        row("family", family_said(Family::Rule.word()));
        row("scope", &rules.scope(hook));
        row("breaker state", &breaker(hook));
        // That it is switched off stands among its settings.
        if let Some(health) = rules.health(hook).filter(|health| **health != Health::Disabled) {
            row("health", &format!("{BAD}{}{BAD:#}", clean(&health.words(Timestamp::now()))));
        }
        for (name, value) in hook.as_object().into_iter().flatten().filter(|(name, value)| is_shown(name, value)) {
            match value.as_str() {
                Some(word) => row(name, &clean(word)),
                None => row(name, &clean(&value.to_string())),
            }
        }
        for (name, value) in hook["config"].as_object().into_iter().flatten() {
            row(&format!("config.{name}"), &setting(&without_secrets(name, value)));
        }
        self.tail(&mut text);
        text
    }

    /// The change log and what the hook did, newest first.
    fn tail(&self, text: &mut String) {
        text.push_str(&format!("{BOLD}changes{BOLD:#}\n"));
        for change in &self.changes {
            text.push_str(&format!(
                "  {}  {} by {}, version {}{DIM}{}{DIM:#}\n",
                moment_of(said(change, "at")),
                clean(said(change, "action")),
                clean(said(change, "actor")),
                change["version"],
                diff(&change["diff"]),
            ));
        }
        text.push_str(&format!("{BOLD}executions{BOLD:#}\n"));
        if self.executions.is_empty() {
            text.push_str("  none\n");
        }
        for row in &self.executions {
            text.push_str(&format!("  {}", line(row)));
        }
        if self.executions.len() == EXECUTIONS {
            let more = complete(&format!("`pintle hooks history {}` shows more", word(&clean(label(&self.hook)))));
            text.push_str(&format!("  {DIM}{more}{DIM:#}\n"));
        }
    }
}

/// Members that stand elsewhere, and such as say nothing.
fn is_shown(name: &str, value: &Value) -> bool {
    const ELSEWHERE: [&str; 7] = ["id", "name", "config", "scope", "agent_ids", "tripped_at", "trips"];
    let empty = value.is_null() || value == "" || value.as_object().is_some_and(pintle_domain::json::Object::is_empty);
    !ELSEWHERE.contains(&name) && !empty
}

/// Whether the circuit breaker is open, and for whom.
fn breaker(hook: &Value) -> String {
    if hook["tripped_at"].is_string() {
        let since = moment_of(said(hook, "tripped_at"));
        let closes = format!("`pintle hooks reset {}` closes it", word(&clean(label(hook))));
        return format!("{BAD}open since {since}; {}{BAD:#}", complete(&closes));
    }
    let trips: Vec<String> = hook["trips"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|trip| format!("tenant {} since {}", said(trip, "tenant_id"), moment_of(said(trip, "tripped_at"))))
        .collect();
    match trips.as_slice() {
        [] if said(hook, "breaker") == "off" => "none".to_owned(),
        [] => "closed".to_owned(),
        trips => format!("{BAD}open for {}{BAD:#}", trips.join(", ")),
    }
}

/// The value of the member `name` as a person is shown it: a URL may hold a password or a token.
fn without_secrets(name: &str, value: &Value) -> Value {
    match value.as_str() {
        Some(url) if name == "url" => shown_url(url).into(),
        Some(_) | None => value.clone(),
    }
}

/// A setting of the handler; what follows the first line of a long text stands further in.
fn setting(value: &Value) -> String {
    match value.as_str() {
        Some(long) => prose(long).trim_end().replace('\n', "\n    "),
        None => clean(&value.to_string()),
    }
}

/// The members that a change touched.
fn diff(patch: &Value) -> String {
    let steps = patch.as_array().into_iter().flatten();
    let one = |step: &Value| {
        let path = clean(said(step, "path").trim_start_matches('/'));
        match step.get("value") {
            Some(value) if !path.is_empty() => {
                let name = path.rsplit('/').next().unwrap_or_default();
                format!("{path} = {}", clean(&clip(&without_secrets(name, value).to_string())))
            }
            Some(_) | None => path,
        }
    };
    let steps: Vec<String> = steps.map(one).filter(|step| !step.is_empty()).collect();
    if steps.is_empty() { String::new() } else { format!(": {}", steps.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breaker_is_closed_open_or_open_for_some() {
        let check = |hook: Value, expected: &str| {
            assert_eq!(anstream::adapter::strip_str(&breaker(&hook)).to_string(), expected);
        };
        check(json!({"breaker": "all", "tripped_at": null}), "closed");
        check(json!({"breaker": "off"}), "none");
        check(
            json!({"name": "no rm", "tripped_at": "2026-11-22T06:44:00Z"}),
            "open since 2026-11-22 06:44 UTC; `pintle hooks reset 'no rm'` closes it",
        );
        check(
            json!({"trips": [{"tenant_id": "t", "tripped_at": "2026-11-22T06:44:00Z"}]}),
            "open for tenant t since 2026-11-22 06:44 UTC",
        );
    }

    #[test]
    fn a_change_says_what_it_touched() {
        let patch =
            json!([{"op": "replace", "path": "/priority", "value": 7}, {"op": "remove", "path": "/config/cwd"}]);
        assert_eq!(diff(&patch), ": priority = 7; config/cwd");
        assert_eq!(diff(&json!([])), "");
    }
}
