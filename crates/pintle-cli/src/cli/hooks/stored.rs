//! What the commands about rules share: the rule admin where these are managed, how people name one, and what a
//! refusal means here.

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::json::Value;
use pintle_domain::nearest::nearest;
use pintle_rules::admin::{AdminError, AdminErrorCode, Caller, ListFilter, RuleAdmin};

use super::super::{Global, terminal};
use crate::clean::{clean, prose};
use crate::error::{CliError, USAGE};
use pintle_host::blind::{self, BlindMatcher};
use pintle_host::config::commands::REPLACEABLE;
use pintle_host::config::{Config, Env, Loaded};
use pintle_host::host::{Host, load};
use pintle_host::host_rules::HostRules;

/// Most hooks that are shown when a name means several: as many as a person compares.
const MAX_CANDIDATES: usize = 5;

/// Most names that are listed where none is meant: more is what `hooks list` is for.
const MAX_NAMED: usize = 20;

/// Does `work` at the rule admin of the configuration that the command line asks for.
pub(super) fn with_admin<T>(
    global: &Global,
    work: impl AsyncFnOnce(&RuleAdmin, &Caller) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    with_admin_of(env, loaded, work)
}

/// The same for a configuration that is loaded already.
pub(super) fn with_admin_of<T>(
    env: Env,
    loaded: Loaded,
    work: impl AsyncFnOnce(&RuleAdmin, &Caller) -> Result<T, CliError>,
) -> Result<T, CliError> {
    with_rules_of(env, loaded, async |host_rules, by| work(host_rules.rule_admin(), by).await)
}

/// The same with all that is known of the rules of files.
pub(super) fn with_rules_of<T>(
    env: Env,
    mut loaded: Loaded,
    work: impl AsyncFnOnce(&HostRules, &Caller) -> Result<T, CliError>,
) -> Result<T, CliError> {
    // Hooks of the configuration have no part in this, so none of their processes is started.
    loaded.config.hooks.clear();
    terminal::runtime()?.block_on(async {
        let host = Host::open(env, loaded, Vec::new())?;
        // Without the hooks of the configuration nobody knows which tools they bring; who shows a rule says how it stands.
        let rules = host.host_rules.rule_cache().rules();
        let blind: Vec<String> = blind::of_rules(&host.loaded.config, &rules.hooks, host.host_rules.rule_cache())
            .map(|(_, line)| line)
            .collect();
        // What an agent could replace is said where rules act, and by whoever looks for mistakes.
        let is_said = |line: &&String| !blind.contains(line) && !line.contains(REPLACEABLE);
        for line in host.host_rules.diagnostics.iter().filter(is_said) {
            terminal::warn(&prose(line));
        }
        let done = work(&host.host_rules, &Caller::cli()).await;
        host.close().await;
        done
    })
}

/// All rules, as they are published.
pub(super) async fn all(rule_admin: &RuleAdmin, by: &Caller) -> Result<Vec<Value>, CliError> {
    rule_admin.list(by, &ListFilter::default()).await.map_err(refused)
}

/// The rule that people call `named`.
pub(super) async fn find(rule_admin: &RuleAdmin, by: &Caller, named: &str) -> Result<Value, CliError> {
    Ok(pick(&all(rule_admin, by).await?, named)?.clone())
}

/// The one of `hooks` whose id or whose name is `named`.
fn pick<'a>(hooks: &'a [Value], named: &str) -> Result<&'a Value, CliError> {
    lookup(hooks, named)?.ok_or_else(|| no_hook(hooks, named))
}

/// None of `hooks` is called `named`.
pub(super) fn no_hook(hooks: &[Value], named: &str) -> CliError {
    let hint = match named.starts_with("claude.") {
        true => {
            "hooks of a configuration are changed in its file; adopted ones: `pintle guard uninstall`, edit the agent's \
             settings, `pintle guard install --adopt` again"
        }
        false => "hooks of a configuration are changed in its file",
    };
    missing("rule", named, hooks.iter().map(label)).hint(hint)
}

/// The one of `hooks` whose id or whose name is `named`, if there is one.
///
/// # Errors
/// More than one has that name.
pub(super) fn lookup<'a>(hooks: &'a [Value], named: &str) -> Result<Option<&'a Value>, CliError> {
    if let Ok(id) = uuid::Uuid::parse_str(named) {
        let id = id.to_string();
        if let Some(exact) = hooks.iter().find(|hook| text(hook, "id") == id) {
            return Ok(Some(exact));
        }
    }
    let found: Vec<&Value> = hooks.iter().filter(|hook| text(hook, "name") == named && !named.is_empty()).collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => {
            let error = CliError::usage(format!("{} rules are called \"{named}\"", several.len()))
                .hint("say which, by its id:");
            let shown = several.iter().take(MAX_CANDIDATES);
            Err(shown.fold(error, |error, hook| error.hint(candidate(hook))))
        }
    }
}

/// There is no `what` that is called `named`, but there are those of `names`.
pub(super) fn missing<'a>(what: &str, named: &str, names: impl Iterator<Item = &'a str>) -> CliError {
    let mut names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    names.dedup();
    let said = format!("there is no {what} \"{named}\"");
    match (nearest(named, names.iter().copied()), names.as_slice()) {
        (Some(near), _) => CliError::usage(format!("{said}; did you mean \"{near}\"?")),
        (None, []) => CliError::usage(format!("{said}, and no other"))
            .hint("`pintle hooks add FILE` adds a first one, `--starter` the starter guards"),
        (None, names) => {
            let more = if names.len() > MAX_NAMED { ", …" } else { "" };
            let names = names.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
            CliError::usage(said).hint(format!("the {what}s are {}{more}", clean(&names)))
        }
    }
}

/// A hook as one of several that may be meant.
fn candidate(hook: &Value) -> String {
    format!(
        "{}  {} {}, scope {}, priority {}",
        text(hook, "id"),
        text(hook, "handler_type"),
        text(hook, "event"),
        text(hook, "scope"),
        hook["priority"],
    )
}

/// The text that a record has as `name`; an absent one is empty.
pub(super) fn text<'a>(record: &'a Value, name: &str) -> &'a str {
    record[name].as_str().unwrap_or_default()
}

/// What people call a hook: its name, or its id if it has none.
pub(super) fn label(record: &Value) -> &str {
    match text(record, "name") {
        "" => text(record, "id"),
        name => name,
    }
}

/// A hook in a sentence: its name and its id.
pub(super) fn called(record: &Value) -> String {
    match text(record, "name") {
        "" => text(record, "id").to_owned(),
        name => format!("{} ({})", clean(name), text(record, "id")),
    }
}

/// What became of a hook that was switched, which was `hook` before.
pub(super) fn switched(hook: &Value, enabled: bool) -> String {
    let is_open = hook["tripped_at"].is_string() || hook["trips"].as_array().is_some_and(|trips| !trips.is_empty());
    let was = if is_open { "; its circuit breaker is closed" } else { "" };
    format!("{} is {}{was}", called(hook), if enabled { "on" } else { "off" })
}

/// Parts of messages, and what to do about them.
const HINTS: [(&str, &str); 10] = [
    ("comes from the file", "Pintle reads that file whenever it starts"),
    ("command_disabled_standard", "use an http, prompt or script hook: edition standard runs no commands"),
    ("ssrf", "`[[agent_hooks.http.allow]]` in the configuration lets hooks reach an internal endpoint"),
    ("encryption key not configured", "set PINTLE_ENCRYPTION_KEY, such as to what `openssl rand -hex 32` prints"),
    (
        "must be sent anew",
        "a secret is kept only where nothing about its endpoint changes: say it again, such as config.headers.Authorization=…",
    ),
    ("read-only except for the enabled toggle", "`pintle hooks enable HOOK` and `pintle hooks disable HOOK` work"),
    ("version conflict", "somebody changed it meanwhile: look at it with `pintle hooks show HOOK`, then try again"),
    ("already and differs", "`--update` writes the record over it; another name makes another hook"),
    ("agent not found", "`agent_ids` takes the names of configured agents, or their ids"),
    ("runaway-cost guard", "add a matcher such as \"^exec$\", or an if_expr"),
];

/// What a refusal of the rule admin is on the command line: what was asked is wrong, or could not be done.
pub(super) fn refused(refused: AdminError) -> CliError {
    let error = match refused.code {
        AdminErrorCode::InvalidRequest | AdminErrorCode::NotFound => CliError::usage(refused.message),
        AdminErrorCode::Unauthorized
        | AdminErrorCode::FailedPrecondition
        | AdminErrorCode::ResourceExhausted
        | AdminErrorCode::Unavailable
        | AdminErrorCode::Internal => CliError::failed(refused.message),
    };
    let hint = HINTS.iter().find(|(part, _)| error.message.contains(part));
    match hint {
        Some((_, hint)) => error.hint(*hint),
        None => error,
    }
}

/// Whether what somebody wrote is wrong, and not what was done with it.
pub(super) fn is_usage(error: &CliError) -> bool {
    error.code == USAGE
}

/// `value` as it is printed with `--json`.
pub(super) fn json(value: &Value) -> Result<String, CliError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| CliError::failed(error.to_string()))?;
    Ok(format!("{text}\n"))
}

/// The matcher of the rule `hook`, if it is about no tool.
pub(super) fn blind(config: &Config, hook: &Value) -> Option<BlindMatcher> {
    BlindMatcher::of_rule(config, CheckpointKind::named(text(hook, "event"))?, text(hook, "matcher"))
}

/// Says that the rule `hook`, which is to act, is about no tool.
pub(super) fn warn_blind(config: &Config, hook: &Value) {
    warn(&blind(config, hook).map(|blind| blind.sentence()).into_iter().collect::<Vec<_>>());
}

/// Says what is allowed in a record and probably not meant.
pub(super) fn warn(warnings: &[String]) {
    for warning in warnings {
        terminal::warn(&clean(warning));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_domain::json::json;

    const A: &str = "0193a5b0-7000-7000-8000-0000000000aa";

    fn hooks() -> Vec<Value> {
        let hook = |id: &str, name: &str, event: &str| json!({"id": id, "name": name, "event": event, "scope": "tenant", "priority": 7, "handler_type": "script"});
        vec![
            hook(A, "guard", "pre_tool_use"),
            hook("0193a5b0-7000-7000-8000-0000000000bb", "twin", "pre_tool_use"),
            hook("0193a5b0-7000-7000-8000-0000000000cc", "twin", "stop"),
            hook("0193a5b0-7000-7000-8000-0000000000dd", "", "stop"),
        ]
    }

    #[test]
    fn a_hook_is_its_id_or_its_name_if_that_is_its_own() {
        let hooks = hooks();
        for named in [A, &A.to_uppercase(), "guard"] {
            assert_eq!(pick(&hooks, named).unwrap()["id"], A, "{named}");
        }
        assert_eq!(label(&hooks[3]), "0193a5b0-7000-7000-8000-0000000000dd");
        let check = |named: &str| pick(&hooks, named).unwrap_err();
        assert_eq!(check("gaurd").message, "there is no rule \"gaurd\"; did you mean \"guard\"?");
        assert_eq!(check("zzzzzz").hints[..1], ["the rules are guard, twin, 0193a5b0-7000-7000-8000-0000000000dd"]);
        let twins = check("twin");
        assert_eq!((twins.code, twins.message.as_str()), (USAGE, "2 rules are called \"twin\""));
        assert_eq!(twins.hints[2], "0193a5b0-7000-7000-8000-0000000000cc  script stop, scope tenant, priority 7");
        assert!(pick(&[], "x").unwrap_err().hints[0].contains("hooks add"));
    }
}
