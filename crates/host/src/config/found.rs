//! What a file may say that was merely found, in a folder or above it, and what only the user's own files may.
//!
//! A found file is read into [`FoundConfig`], which has no place for what switches something off or sends it elsewhere.
//! [`split`] takes every file apart without leaving a key out, so that a new key does not compile before somebody
//! decided about it; [`FOUND_KEYS`] says the decision of each key in words, for the page
//! `docs/reference/found-folders.md` and for the one line that names what does not count.

use std::collections::BTreeMap;

use pintle_dialects::process::config::raw::RawHooks;
use pintle_domain::json::Value;

use super::document::{NodeKind, TreeNode};
use super::raw::{
    RawAgent, RawAudit, RawConfig, RawDoors, RawExec, RawGateway, RawGuard, RawJudge, RawMcp, RawProvider, RawRules,
    RawSkills, RawStore, RawTelemetry, RawTools, RawWebFetch, cached_schema,
};

/// What any configuration file may say. Of a found file this is all there is, and it counts as it was accepted.
#[derive(Clone, Debug, Default)]
pub(super) struct FoundConfig {
    pub(super) providers: BTreeMap<String, RawProvider>,
    pub(super) agents: BTreeMap<String, RawAgent>,
    pub(super) hooks: RawHooks,
    pub(super) mcp: RawMcp,
    /// `tools.exec.inherit_env`.
    pub(super) exec_inherit_env: Vec<String>,
    /// `agent_hooks.command_env`.
    pub(super) command_env: Vec<String>,
    /// `agent_hooks.dir`.
    pub(super) rules_dir: Option<String>,
    /// `skills.dir`.
    pub(super) skills_dir: Option<String>,
    /// `store.url`: where conversations are kept. All else is in the user's own store.
    pub(super) conversations: Option<String>,
}

/// What only the user's own files may say: the one in the configuration folder, or the one named with `-c`.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnConfig {
    pub(super) audit: RawAudit,
    /// `store.url`, for everything that is kept.
    pub(super) store_url: Option<String>,
    /// `tools.exec.shell`.
    pub(super) exec_shell: Option<String>,
    /// `tools.exec.unconfined`.
    pub(super) exec_unconfined: Option<bool>,
    pub(super) web_fetch: RawWebFetch,
    /// `agent_hooks` without what stands in [`FoundConfig`].
    pub(super) rules: RawRules,
    pub(super) gateway: RawGateway,
    /// `skills.history_trust`.
    pub(super) history_trust: Option<String>,
    /// `skills.dirs`.
    pub(super) skills_dirs: Option<Vec<String>>,
    pub(super) background: RawJudge,
    pub(super) telemetry: RawTelemetry,
    pub(super) doors: RawDoors,
    pub(super) guard: RawGuard,
    /// `stream_unreviewed` of agents, by name.
    pub(super) unreviewed: BTreeMap<String, bool>,
}

/// Takes a file apart. Every struct is named with all its members: whoever adds one decides here whose it is.
pub(super) fn split(raw: RawConfig) -> (FoundConfig, OwnConfig) {
    let RawConfig {
        providers,
        agents,
        hooks,
        mcp,
        audit,
        store,
        tools,
        agent_hooks,
        gateway,
        skills,
        background,
        telemetry,
        doors,
        guard,
    } = raw;
    let RawStore { url } = store.unwrap_or_default();
    let RawTools { exec, web_fetch } = tools.unwrap_or_default();
    let RawExec { inherit_env, shell, unconfined } = exec.unwrap_or_default();
    let RawSkills { dir: skills_dir, dirs: skills_dirs, history_trust } = skills.unwrap_or_default();
    let mut rules = agent_hooks.unwrap_or_default();
    let (rules_dir, command_env) = (rules.dir.take(), rules.command_env.take());
    let mut agents = agents.unwrap_or_default();
    let unreviewed =
        agents.iter_mut().filter_map(|(name, agent)| Some((name.clone(), agent.stream_unreviewed.take()?)));
    let unreviewed = unreviewed.collect();
    let found = FoundConfig {
        providers: providers.unwrap_or_default(),
        agents,
        hooks: hooks.unwrap_or_default(),
        mcp: mcp.unwrap_or_default(),
        exec_inherit_env: inherit_env.unwrap_or_default(),
        command_env: command_env.unwrap_or_default(),
        rules_dir,
        skills_dir,
        conversations: url.clone(),
    };
    let own = OwnConfig {
        audit: audit.unwrap_or_default(),
        store_url: url,
        exec_shell: shell,
        exec_unconfined: unconfined,
        web_fetch: web_fetch.unwrap_or_default(),
        rules,
        gateway: gateway.unwrap_or_default(),
        history_trust,
        skills_dirs,
        background: background.unwrap_or_default(),
        telemetry: telemetry.unwrap_or_default(),
        doors: doors.unwrap_or_default(),
        guard: guard.unwrap_or_default(),
        unreviewed,
    };
    (found, own)
}

/// How far a key counts in a found file. None counts before somebody accepted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundCount {
    /// Once it was accepted with `pintle trust`, as it was accepted.
    WhenAccepted,
    /// Accepted or not, it does not.
    Never,
}

/// A key of the configuration, and how far it counts in a found file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundKey {
    /// The keys that lead to it, with dots; `*` stands for a name.
    pub path: &'static str,
    /// How far it counts.
    pub count: FoundCount,
    /// What is to be known beyond that; may be empty.
    pub note: &'static str,
}

const fn accepted(path: &'static str, note: &'static str) -> FoundKey {
    FoundKey { path, count: FoundCount::WhenAccepted, note }
}

const fn never(path: &'static str, note: &'static str) -> FoundKey {
    FoundKey { path, count: FoundCount::Never, note }
}

const ADDS: &str = "adds to yours; a name that you use stays yours";
const OVER: &str = "laid over an agent of yours of that name";
const KEPT_AS_YOURS: &str = "how long evidence is kept is yours to say";
const WHO_JUDGES: &str = "would put another model in the place of your judges";
const WHO_PAYS: &str = "what is spent, and from whose purse, is yours to say";
const WHO_ENTERS: &str = "how a server is reached, and by whom, is yours to say";
const WHOSE_RULES: &str = "whose rules hold here is yours to say";
const WHO_SEES: &str = "what passes a door is yours to say";
const WHO_ASKS: &str = "whose hooks your agents have, and who is asked, is yours to say";
const OPENS: &str = "would open addresses that are out of reach";

/// Every key of the configuration.
pub const FOUND_KEYS: &[FoundKey] = &[
    accepted("agent_hooks.command_env", ""),
    accepted("agent_hooks.dir", "the text of each file is part of what is accepted; such rules are in force only here"),
    never("agent_hooks.audit_retention_days", KEPT_AS_YOURS),
    never("agent_hooks.builtin_disable", "would switch rules off that are shipped"),
    never("agent_hooks.error_detail_days", KEPT_AS_YOURS),
    never("agent_hooks.http.allow", OPENS),
    never("agent_hooks.outbox", "would let observers lose what they were to be told"),
    never("agent_hooks.prompt.model", WHO_JUDGES),
    never("agent_hooks.prompt.provider", WHO_JUDGES),
    never("agent_hooks.queue", "would let observers lose what they were to be told"),
    never("agent_hooks.retention_days", KEPT_AS_YOURS),
    never("agent_hooks.workers", "would let observers lose what they were to be told"),
    accepted("agents.*.approvers", "counts where yours say nothing"),
    accepted("agents.*.ask", "adds to yours: a person is asked about more tools, never about fewer"),
    accepted("agents.*.context_tokens", OVER),
    accepted("agents.*.default", OVER),
    accepted("agents.*.description", OVER),
    accepted("agents.*.fallbacks", OVER),
    accepted("agents.*.flow", OVER),
    accepted("agents.*.lowering.removal", OVER),
    accepted("agents.*.max_iterations", OVER),
    accepted("agents.*.model", OVER),
    accepted("agents.*.options", OVER),
    accepted("agents.*.other_than_asker", "adds to yours: it never lets more people answer"),
    accepted("agents.*.planning.agent_loop_prompt", OVER),
    accepted("agents.*.planning.first_step_prompt", OVER),
    accepted("agents.*.planning.on_missing_tag", OVER),
    accepted("agents.*.planning.planning_prompt", OVER),
    accepted("agents.*.planning.record", OVER),
    accepted("agents.*.skills", "every file of a skill that lies in the found folder is accepted by itself"),
    never("agents.*.stream_unreviewed", "would show what your hooks have not seen yet"),
    accepted("agents.*.system", OVER),
    accepted("agents.*.tools", OVER),
    accepted("agents.*.workspace", "the folder that it really leads to is part of what is accepted"),
    accepted("agents.*.workspace_shared", OVER),
    never("audit.durability", "how durable evidence is is yours to say"),
    never("background.model", WHO_JUDGES),
    never("background.provider", WHO_JUDGES),
    never("doors.model.*.base_url", "would send keys and conversations elsewhere"),
    never("doors.model.*.budget.day_tokens", WHO_PAYS),
    never("doors.model.*.budget.day_usd", WHO_PAYS),
    never("doors.model.*.budget.session_tokens", WHO_PAYS),
    never("doors.model.*.budget.session_usd", WHO_PAYS),
    never("doors.model.*.deny", WHO_SEES),
    never("doors.model.*.hosted", WHO_SEES),
    never("doors.model.*.key_env", WHO_PAYS),
    never("doors.model.*.prices.*.cached_usd", WHO_PAYS),
    never("doors.model.*.prices.*.input_usd", WHO_PAYS),
    never("doors.model.*.prices.*.output_usd", WHO_PAYS),
    never("doors.model.*.tenant", WHO_ENTERS),
    never("doors.tool.*.ask", WHO_SEES),
    never("doors.tool.*.ask_timeout_ms", WHO_SEES),
    never("doors.tool.*.hide", WHO_SEES),
    never("doors.tool.*.on_change", WHO_SEES),
    never("doors.tool.*.tools", WHO_SEES),
    never("gateway.allowed_origins", "would let pages of others in"),
    never("gateway.approval_wait_s", WHO_ENTERS),
    never("gateway.drain_delay_s", WHO_ENTERS),
    never("gateway.drain_s", WHO_ENTERS),
    never("gateway.edition", "would switch rules off that run commands"),
    never("gateway.listen", WHO_ENTERS),
    never("gateway.max_body", WHO_ENTERS),
    never("gateway.media_quota_mb", WHO_ENTERS),
    never("gateway.metrics_listen", WHO_ENTERS),
    never("gateway.node", "which of your machines this is is yours to say"),
    never("gateway.owner_ids", WHO_ENTERS),
    never("gateway.public_url", WHO_ENTERS),
    never("gateway.requests_per_minute", WHO_ENTERS),
    never("gateway.tls.cert", WHO_ENTERS),
    never("gateway.tls.key", WHO_ENTERS),
    never("gateway.token_env", WHO_ENTERS),
    never("gateway.trusted_proxies", WHO_ENTERS),
    never("gateway.webhooks", "would tell others what happens here"),
    never("guard.hosts.*.agent", WHO_ASKS),
    never("guard.hosts.*.ask", WHO_ASKS),
    never("guard.hosts.*.deadline", WHO_ASKS),
    never("guard.hosts.*.headless_ask", WHO_ASKS),
    never("guard.hosts.*.on_daemon_away", "would let agents run without their guard"),
    never("guard.require", "which agents may work is yours to say"),
    never("guard.rules_from.key_env", WHOSE_RULES),
    never("guard.rules_from.key_file", WHOSE_RULES),
    never("guard.rules_from.signer", WHOSE_RULES),
    never("guard.rules_from.url", WHOSE_RULES),
    accepted("hooks.builtins.*.config", ADDS),
    accepted("hooks.builtins.*.enabled", ADDS),
    accepted("hooks.builtins.*.matcher", ADDS),
    accepted("hooks.builtins.*.on_failure", ADDS),
    accepted("hooks.builtins.*.priority", ADDS),
    accepted("hooks.builtins.*.respond", ADDS),
    accepted("hooks.builtins.*.timeout_ms", ADDS),
    accepted("hooks.claude.PostToolUse", "behind yours; the files that its commands name are part of what is accepted"),
    accepted(
        "hooks.claude.PostToolUseFailure",
        "behind yours; the files that its commands name are part of what is accepted",
    ),
    accepted("hooks.claude.PreToolUse", "behind yours; the files that its commands name are part of what is accepted"),
    accepted(
        "hooks.claude.SessionStart",
        "behind yours; the files that its commands name are part of what is accepted",
    ),
    accepted("hooks.claude.Stop", "behind yours; the files that its commands name are part of what is accepted"),
    accepted(
        "hooks.claude.SubagentStart",
        "behind yours; the files that its commands name are part of what is accepted",
    ),
    accepted(
        "hooks.claude.SubagentStop",
        "behind yours; the files that its commands name are part of what is accepted",
    ),
    accepted(
        "hooks.claude.UserPromptSubmit",
        "behind yours; the files that its commands name are part of what is accepted",
    ),
    accepted("hooks.claude.inherit_env", "for the commands of this file"),
    accepted("hooks.defaults.approval_timeout_ms", "for the hooks of this file"),
    accepted("hooks.defaults.interceptor_timeout_ms", "for the hooks of this file"),
    accepted("hooks.defaults.max_frame_bytes", "for the hooks of this file"),
    accepted("hooks.defaults.observer_timeout_ms", "for the hooks of this file"),
    accepted("hooks.enabled", "for the hooks of this file"),
    accepted("hooks.processes.*.command", "the program and the files that it names are part of what is accepted"),
    accepted("hooks.processes.*.dir", "the folder that it really leads to is part of what is accepted"),
    accepted("hooks.processes.*.enabled", ADDS),
    accepted("hooks.processes.*.env", ADDS),
    accepted("hooks.processes.*.events", ADDS),
    accepted("hooks.processes.*.inherit_env", ADDS),
    accepted("hooks.processes.*.intercept", ADDS),
    accepted("hooks.processes.*.matcher", ADDS),
    accepted("hooks.processes.*.observe", ADDS),
    accepted("hooks.processes.*.on_failure", ADDS),
    accepted("hooks.processes.*.pair", ADDS),
    accepted("hooks.processes.*.priority", ADDS),
    accepted("hooks.processes.*.respond", ADDS),
    accepted("hooks.processes.*.start_timeout_ms", ADDS),
    accepted("hooks.processes.*.strict", ADDS),
    accepted("hooks.processes.*.timeout_ms", ADDS),
    accepted("hooks.processes.*.transport", "there is one transport, so nothing follows from it"),
    accepted("hooks.strict_start", "`true` counts; `false` takes nothing back"),
    accepted("mcp.servers.*.command", "the program and the files that it names are part of what is accepted"),
    accepted("mcp.servers.*.dir", "the folder that it really leads to is part of what is accepted"),
    accepted("mcp.servers.*.enabled", ADDS),
    accepted("mcp.servers.*.env", ADDS),
    accepted("mcp.servers.*.inherit_env", ADDS),
    accepted("mcp.servers.*.start_timeout_ms", ADDS),
    accepted("mcp.servers.*.url", ADDS),
    accepted("providers.*.api_key_env", ADDS),
    accepted("providers.*.base_url", ADDS),
    accepted("providers.*.capabilities.alternation", ADDS),
    accepted("providers.*.capabilities.cache_breakpoints", ADDS),
    accepted("providers.*.capabilities.mid_system", ADDS),
    accepted("providers.*.capabilities.placement.after", ADDS),
    accepted("providers.*.capabilities.placement.before", ADDS),
    accepted("providers.*.capabilities.placement.consecutive", ADDS),
    accepted("providers.*.capabilities.prefix_bound_reasoning", ADDS),
    accepted("providers.*.capabilities.turn_scoped", ADDS),
    accepted("providers.*.capabilities.user_after_tool", ADDS),
    accepted("providers.*.capabilities.vision", ADDS),
    accepted("providers.*.kind", ADDS),
    accepted("providers.*.script", "the text of the file is part of what is accepted"),
    accepted("providers.*.tool_mode", ADDS),
    accepted("skills.dir", "for the agents of this file; a folder outside the found one is not looked into"),
    never("skills.dirs", "would look into folders of yours"),
    never("skills.history_trust", "would believe what you do not"),
    accepted("store.url", "for conversations; rules, executions, breakers, budgets and records stay in your store"),
    never("telemetry.otlp_endpoint", "would tell somebody else what hooks do"),
    accepted("tools.exec.inherit_env", ""),
    never("tools.exec.shell", "would have another program run and read the commands of your agents"),
    never("tools.exec.unconfined", "would let commands run where nothing keeps them from your data"),
    never("tools.web_fetch.allow", OPENS),
];

/// Every key of the configuration, as its schema has them, with `*` for names.
pub fn schema_keys() -> Vec<String> {
    let schema = cached_schema();
    let mut keys = Vec::new();
    walk(schema, schema, &mut Vec::new(), &mut keys);
    keys.sort();
    keys
}

/// Adds the keys below `path`, where values are as `at` says.
fn walk(schema: &Value, at: &Value, path: &mut Vec<String>, keys: &mut Vec<String>) {
    let mut branches = Vec::new();
    targets(schema, at, &mut branches);
    let is_table = |branch: &&Value| branch.get("type").is_some_and(|kind| said(kind, "object"));
    // A value that may be something else than a table is one key, whatever the table holds.
    let table = branches.first().copied().filter(|_| branches.len() == 1).filter(is_table);
    let members = table.and_then(|table| table.get("properties")).and_then(Value::as_object);
    let each = table.and_then(|table| table.get("additionalProperties")).filter(|each| each.is_object());
    let each = each.filter(|each| {
        let mut inner = Vec::new();
        targets(schema, each, &mut inner);
        inner.iter().all(is_table)
    });
    match (members, each) {
        (Some(members), _) => {
            for (key, member) in members {
                path.push(key.clone());
                walk(schema, member, path, keys);
                path.pop();
            }
        }
        (None, Some(each)) => {
            path.push("*".to_owned());
            walk(schema, each, path, keys);
            path.pop();
        }
        (None, None) => keys.push(path.join(".")),
    }
}

fn said(kind: &Value, word: &str) -> bool {
    kind == word || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == word))
}

/// The schemas of which a value fits one, references followed and `null` left out.
fn targets<'a>(schema: &'a Value, at: &'a Value, found: &mut Vec<&'a Value>) {
    let target = at.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#'));
    if let Some(target) = target.and_then(|pointer| schema.pointer(pointer)) {
        return targets(schema, target, found);
    }
    match at.get("anyOf").and_then(Value::as_array) {
        Some(branches) => branches.iter().for_each(|branch| targets(schema, branch, found)),
        None if at.get("type").is_some_and(|kind| kind == "null") => {}
        None => found.push(at),
    }
}

/// The keys of `root` that never count in a found file, each as it is written there.
pub(super) fn never_counting(root: &TreeNode) -> Vec<String> {
    let never = FOUND_KEYS.iter().filter(|key| key.count == FoundCount::Never);
    never.flat_map(|key| written(root, &key.path.split('.').collect::<Vec<_>>(), &mut Vec::new())).collect()
}

/// The places in `node` that the pattern `keys` means, below `path`.
fn written(node: &TreeNode, keys: &[&str], path: &mut Vec<String>) -> Vec<String> {
    let Some((first, rest)) = keys.split_first() else {
        let is_there = !matches!(node.kind, NodeKind::Null);
        return is_there.then(|| super::diagnostic::dotted(path)).into_iter().collect();
    };
    let meant = node.members().iter().filter(|member| *first == "*" || *first == member.key);
    let mut found = Vec::new();
    for member in meant {
        path.push(member.key.clone());
        found.extend(written(&member.node, rest, path));
        path.pop();
    }
    found
}

/// Whether something in the section `name` can be accepted.
pub(super) fn can_count(name: &str) -> bool {
    let of_it = |key: &&FoundKey| key.path.split('.').next() == Some(name);
    FOUND_KEYS.iter().filter(of_it).any(|key| key.count == FoundCount::WhenAccepted)
}
