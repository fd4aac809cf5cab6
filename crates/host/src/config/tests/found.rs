//! Each key of the configuration, tried in a file that was found: before it is accepted and after that.

use std::fs;

use super::layers::{FOUND, Place};
use super::trusting::trust;
use super::*;
use crate::config::found::{FOUND_KEYS, FoundCount, schema_keys};

/// A file in which `@` stands where the key is tried, and how it is written there.
struct Trial {
    key: &'static str,
    file: &'static str,
    written: &'static str,
}

const fn trial(key: &'static str, file: &'static str, written: &'static str) -> Trial {
    Trial { key, file, written }
}

const RULES: &str = "[agent_hooks]\n@\n";
const AGENT: &str = "[agents.main]\n@\n";
const BUILTIN: &str = "[hooks.builtins.redact]\nenabled = true\n@\n";
const PROCESS: &str = "[hooks.processes.h]\nenabled = true\ncommand = ['h']\nintercept = ['before_tool']\n@\n";
const LIMITS: &str = "hooks.defaults = { @ }\n[hooks.processes.h]\nenabled = true\ncommand = ['h']\nobserve = ['turn_end']\n\
                      intercept = ['before_tool', 'approve_tool']\n";
const DOOR: &str = "[doors.model.openai]\n@\n";
const TOOL_DOOR: &str = "[doors.tool.time]\n@\n";
const TEAM: &str = "[guard.rules_from]\nurl = 'https://a.example'\nkey_env = 'K'\n@\n";
const SERVER: &str = "[mcp.servers.s]\ncommand = ['./serve.sh']\n@\n";
const PROVIDER: &str = "[providers.p]\nkind = 'openai'\n@\n";

/// Keys that say only what holds anyway.
const WITHOUT_EFFECT: [&str; 1] = ["hooks.processes.*.transport"];

const TRIALS: &[Trial] = &[
    trial("agent_hooks.audit_retention_days", RULES, "audit_retention_days = 7"),
    trial("agent_hooks.builtin_disable", RULES, "builtin_disable = ['pii-redactor']"),
    trial("agent_hooks.command_env", RULES, "command_env = ['A_TOKEN']"),
    trial("agent_hooks.dir", RULES, "dir = 'rules'"),
    trial("agent_hooks.error_detail_days", RULES, "error_detail_days = 7"),
    trial("agent_hooks.http.allow", RULES, "http.allow = [{ host = 'wiki.internal' }]"),
    trial("agent_hooks.outbox", RULES, "outbox = 'durable'"),
    trial("agent_hooks.prompt.model", RULES, "prompt.model = 'm'"),
    trial("agent_hooks.prompt.provider", RULES, "prompt.provider = 'p'"),
    trial("agent_hooks.queue", RULES, "queue = 2"),
    trial("agent_hooks.retention_days", RULES, "retention_days = 7"),
    trial("agent_hooks.workers", RULES, "workers = 1"),
    trial("agents.*.approvers", AGENT, "approvers = ['anna']"),
    trial("agents.*.ask", AGENT, "ask = ['exec']"),
    trial("agents.*.context_tokens", AGENT, "context_tokens = 9000"),
    trial("agents.*.default", AGENT, "default = true"),
    trial("agents.*.description", AGENT, "description = 'x'"),
    trial("agents.*.fallbacks", AGENT, "fallbacks = ['p/m']"),
    trial("agents.*.flow", AGENT, "flow = 'planned'"),
    trial("agents.*.lowering.removal", AGENT, "lowering.removal = 'strip_reasoning'"),
    trial("agents.*.max_iterations", AGENT, "max_iterations = 3"),
    trial("agents.*.model", AGENT, "model = 'p/m'"),
    trial("agents.*.options", AGENT, "options = { temperature = 1 }"),
    trial("agents.*.other_than_asker", AGENT, "other_than_asker = true"),
    trial("agents.*.planning.agent_loop_prompt", AGENT, "planning.agent_loop_prompt = 'x'"),
    trial("agents.*.planning.first_step_prompt", AGENT, "planning.first_step_prompt = 'x'"),
    trial("agents.*.planning.on_missing_tag", AGENT, "planning.on_missing_tag = 'loop'"),
    trial("agents.*.planning.planning_prompt", AGENT, "planning.planning_prompt = 'x'"),
    trial("agents.*.planning.record", AGENT, "planning.record = false"),
    trial("agents.*.skills", AGENT, "skills = ['alpha']"),
    trial("agents.*.stream_unreviewed", AGENT, "stream_unreviewed = true"),
    trial("agents.*.system", AGENT, "system = 'x'"),
    trial("agents.*.tools", AGENT, "tools = ['exec']"),
    trial("agents.*.workspace", AGENT, "workspace = 'rules'"),
    trial("agents.*.workspace_shared", AGENT, "workspace_shared = true"),
    trial("audit.durability", "[audit]\n@\n", "durability = 'before_effect'"),
    trial("background.model", "[background]\n@\n", "model = 'm'"),
    trial("background.provider", "[background]\n@\n", "provider = 'p'"),
    trial("doors.model.*.base_url", DOOR, "base_url = 'http://127.0.0.1:1'"),
    trial("doors.model.*.budget.day_tokens", DOOR, "budget.day_tokens = 1"),
    trial("doors.model.*.budget.day_usd", DOOR, "budget.day_usd = 1.0"),
    trial("doors.model.*.budget.session_tokens", DOOR, "budget.session_tokens = 1"),
    trial("doors.model.*.budget.session_usd", DOOR, "budget.session_usd = 1.0"),
    trial("doors.model.*.deny", DOOR, "deny = 'text'"),
    trial("doors.model.*.hosted", DOOR, "hosted = ['web_search']"),
    trial("doors.model.*.key_env", DOOR, "key_env = 'K'"),
    trial(
        "doors.model.*.prices.*.cached_usd",
        DOOR,
        "prices.m = { input_usd = 1.0, output_usd = 1.0, cached_usd = 1.0 }",
    ),
    trial("doors.model.*.prices.*.input_usd", DOOR, "prices.m = { input_usd = 1.0, output_usd = 1.0 }"),
    trial("doors.model.*.prices.*.output_usd", DOOR, "prices.m = { output_usd = 1.0, input_usd = 1.0 }"),
    trial("doors.model.*.tenant", DOOR, "tenant = 'default'"),
    trial("doors.tool.*.ask", TOOL_DOOR, "ask = 'client'"),
    trial("doors.tool.*.ask_timeout_ms", TOOL_DOOR, "ask_timeout_ms = 1"),
    trial("doors.tool.*.hide", TOOL_DOOR, "hide = ['x']"),
    trial("doors.tool.*.on_change", TOOL_DOOR, "on_change = 'allow'"),
    trial("doors.tool.*.tools", TOOL_DOOR, "tools = ['x']"),
    trial("gateway.allowed_origins", "[gateway]\n@\n", "allowed_origins = ['https://a.example']"),
    trial("gateway.approval_wait_s", "[gateway]\n@\n", "approval_wait_s = 1"),
    trial("gateway.drain_delay_s", "[gateway]\n@\n", "drain_delay_s = 1"),
    trial("gateway.drain_s", "[gateway]\n@\n", "drain_s = 1"),
    trial("gateway.listen", "[gateway]\n@\n", "listen = ['127.0.0.1:1']"),
    trial("gateway.max_body", "[gateway]\n@\n", "max_body = 1024"),
    trial("gateway.media_quota_mb", "[gateway]\n@\n", "media_quota_mb = 1"),
    trial("gateway.metrics_listen", "[gateway]\n@\n", "metrics_listen = '127.0.0.1:1'"),
    trial("gateway.node", "[gateway]\n@\n", "node = 'here'"),
    trial("gateway.owner_ids", "[gateway]\n@\n", "owner_ids = ['anna']"),
    trial("gateway.public_url", "[gateway]\n@\n", "public_url = 'https://a.example'"),
    trial("gateway.requests_per_minute", "[gateway]\n@\n", "requests_per_minute = 1"),
    trial("gateway.tls.cert", "[gateway.tls]\nkey = 'k.pem'\n@\n", "cert = 'c.pem'"),
    trial("gateway.tls.key", "[gateway.tls]\ncert = 'c.pem'\n@\n", "key = 'k.pem'"),
    trial("gateway.token_env", "[gateway]\n@\n", "token_env = 'T'"),
    trial("gateway.trusted_proxies", "[gateway]\n@\n", "trusted_proxies = ['10.0.0.1']"),
    trial(
        "gateway.webhooks",
        "[gateway]\n@\n",
        "webhooks = [{ url = 'https://a.example', events = ['turn.failed'], secret_env = 'S' }]",
    ),
    trial("gateway.edition", "[gateway]\n@\n", "edition = 'standard'"),
    trial("guard.hosts.*.agent", "[guard.hosts.claude]\n@\n", "agent = 'strict'"),
    trial("guard.hosts.*.ask", "[guard.hosts.claude]\n@\n", "ask = 'deny'"),
    trial("guard.hosts.*.deadline", "[guard.hosts.claude]\n@\n", "deadline = '8s'"),
    trial("guard.hosts.*.headless_ask", "[guard.hosts.claude]\n@\n", "headless_ask = 'deny'"),
    trial("guard.hosts.*.on_daemon_away", "[guard.hosts.claude]\n@\n", "on_daemon_away = 'allow'"),
    trial("guard.require", "[guard]\n@\n", "require = ['shell']"),
    trial("guard.rules_from.key_env", "[guard.rules_from]\nurl = 'https://a.example'\n@\n", "key_env = 'K'"),
    trial("guard.rules_from.key_file", "[guard.rules_from]\nurl = 'https://a.example'\n@\n", "key_file = 'key'"),
    trial("guard.rules_from.signer", TEAM, "signer = 'ed25519:139e3940:O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik='"),
    trial("guard.rules_from.url", "[guard.rules_from]\nkey_env = 'K'\n@\n", "url = 'https://a.example'"),
    trial("hooks.builtins.*.config", BUILTIN, "config = { words = ['x'] }"),
    trial("hooks.builtins.*.enabled", "[hooks.builtins.redact]\n@\n", "enabled = true"),
    trial("hooks.builtins.*.matcher", BUILTIN, "matcher = 'x'"),
    trial("hooks.builtins.*.on_failure", BUILTIN, "on_failure = 'continue'"),
    trial("hooks.builtins.*.priority", BUILTIN, "priority = 3"),
    trial("hooks.builtins.*.respond", BUILTIN, "respond = ['x']"),
    trial("hooks.builtins.*.timeout_ms", BUILTIN, "timeout_ms = 77"),
    trial("hooks.claude.PostToolUse", "[hooks.claude]\n@\n", "PostToolUse = [{ hooks = [{ command = 'true' }] }]"),
    trial(
        "hooks.claude.PostToolUseFailure",
        "[hooks.claude]\n@\n",
        "PostToolUseFailure = [{ hooks = [{ command = 'true' }] }]",
    ),
    trial("hooks.claude.PreToolUse", "[hooks.claude]\n@\n", "PreToolUse = [{ hooks = [{ command = 'true' }] }]"),
    trial("hooks.claude.SessionStart", "[hooks.claude]\n@\n", "SessionStart = [{ hooks = [{ command = 'true' }] }]"),
    trial("hooks.claude.Stop", "[hooks.claude]\n@\n", "Stop = [{ hooks = [{ command = 'true' }] }]"),
    trial("hooks.claude.SubagentStart", "[hooks.claude]\n@\n", "SubagentStart = [{ hooks = [{ command = 'true' }] }]"),
    trial("hooks.claude.SubagentStop", "[hooks.claude]\n@\n", "SubagentStop = [{ hooks = [{ command = 'true' }] }]"),
    trial(
        "hooks.claude.UserPromptSubmit",
        "[hooks.claude]\n@\n",
        "UserPromptSubmit = [{ hooks = [{ command = 'true' }] }]",
    ),
    trial(
        "hooks.claude.inherit_env",
        "[hooks.claude]\nStop = [{ hooks = [{ command = 'true' }] }]\n@\n",
        "inherit_env = ['A_TOKEN']",
    ),
    trial("hooks.defaults.approval_timeout_ms", LIMITS, "approval_timeout_ms = 77"),
    trial("hooks.defaults.interceptor_timeout_ms", LIMITS, "interceptor_timeout_ms = 77"),
    trial("hooks.defaults.max_frame_bytes", LIMITS, "max_frame_bytes = 2097152"),
    trial("hooks.defaults.observer_timeout_ms", LIMITS, "observer_timeout_ms = 77"),
    trial("hooks.enabled", "@\n[hooks.builtins.redact]\nenabled = true\n", "hooks.enabled = false"),
    trial(
        "hooks.processes.*.command",
        "[hooks.processes.h]\nenabled = true\nintercept = ['before_tool']\n@\n",
        "command = ['h']",
    ),
    trial("hooks.processes.*.dir", PROCESS, "dir = 'deep'"),
    trial(
        "hooks.processes.*.enabled",
        "[hooks.processes.h]\ncommand = ['h']\nintercept = ['before_tool']\n@\n",
        "enabled = true",
    ),
    trial("hooks.processes.*.env", PROCESS, "env = { A = 'b' }"),
    trial("hooks.processes.*.events", PROCESS, "events = 'runtime'"),
    trial("hooks.processes.*.inherit_env", PROCESS, "inherit_env = ['A_TOKEN']"),
    trial(
        "hooks.processes.*.intercept",
        "[hooks.processes.h]\nenabled = true\ncommand = ['h']\nobserve = ['turn_end']\n@\n",
        "intercept = ['before_tool']",
    ),
    trial("hooks.processes.*.matcher", PROCESS, "matcher = 'x'"),
    trial("hooks.processes.*.observe", PROCESS, "observe = ['turn_end']"),
    trial("hooks.processes.*.on_failure", PROCESS, "on_failure = 'continue'"),
    trial("hooks.processes.*.pair", PROCESS, "pair = false"),
    trial("hooks.processes.*.priority", PROCESS, "priority = 3"),
    trial("hooks.processes.*.respond", PROCESS, "respond = ['x']"),
    trial("hooks.processes.*.start_timeout_ms", PROCESS, "start_timeout_ms = 77"),
    trial("hooks.processes.*.strict", PROCESS, "strict = true"),
    trial("hooks.processes.*.timeout_ms", PROCESS, "timeout_ms = 77"),
    trial("hooks.processes.*.transport", PROCESS, "transport = 'stdio'"),
    trial("hooks.strict_start", "[hooks]\n@\n", "strict_start = true"),
    trial("mcp.servers.*.command", "[mcp.servers.s]\n@\n", "command = ['./serve.sh']"),
    trial("mcp.servers.*.dir", SERVER, "dir = 'deep'"),
    trial("mcp.servers.*.enabled", SERVER, "enabled = false"),
    trial("mcp.servers.*.env", SERVER, "env = { A = 'b' }"),
    trial("mcp.servers.*.inherit_env", SERVER, "inherit_env = ['A_TOKEN']"),
    trial("mcp.servers.*.start_timeout_ms", SERVER, "start_timeout_ms = 77"),
    trial("mcp.servers.*.url", "[mcp.servers.s]\n@\n", "url = 'https://example.com/mcp'"),
    trial("providers.*.api_key_env", PROVIDER, "api_key_env = 'A_TOKEN'"),
    trial("providers.*.base_url", PROVIDER, "base_url = 'http://127.0.0.1:1/v1'"),
    trial("providers.*.capabilities.alternation", PROVIDER, "capabilities.alternation = true"),
    trial("providers.*.capabilities.cache_breakpoints", PROVIDER, "capabilities.cache_breakpoints = 2"),
    trial("providers.*.capabilities.mid_system", PROVIDER, "capabilities.mid_system = 'none'"),
    trial(
        "providers.*.capabilities.placement.after",
        "[providers.p]\nkind = 'openai'\ncapabilities = { mid_system = 'placed', placement = { before = ['end'] @ } }\n",
        ", after = ['user']",
    ),
    trial(
        "providers.*.capabilities.placement.before",
        "[providers.p]\nkind = 'openai'\ncapabilities = { mid_system = 'placed', placement = { after = ['user'] @ } }\n",
        ", before = ['end']",
    ),
    trial(
        "providers.*.capabilities.placement.consecutive",
        "[providers.p]\nkind = 'openai'\n[providers.p.capabilities]\nmid_system = 'placed'\n\
         placement = { after = ['user'], before = ['end'] @ }\n",
        ", consecutive = true",
    ),
    trial("providers.*.capabilities.prefix_bound_reasoning", PROVIDER, "capabilities.prefix_bound_reasoning = true"),
    trial(
        "providers.*.capabilities.turn_scoped",
        "[providers.p]\nkind = 'openai'\ncapabilities = { prefix_bound_reasoning = true @ }\n",
        ", turn_scoped = 'fades'",
    ),
    trial("providers.*.capabilities.user_after_tool", PROVIDER, "capabilities.user_after_tool = false"),
    trial("providers.*.capabilities.vision", PROVIDER, "capabilities.vision = false"),
    trial("providers.*.kind", "[providers.p]\n@\n", "kind = 'openai'"),
    trial("providers.*.script", "[providers.p]\nkind = 'scripted'\n@\n", "script = 'replies.json'"),
    trial("providers.*.tool_mode", PROVIDER, "tool_mode = 'json_schema'"),
    trial("skills.dir", "[agents.main]\nskills = ['alpha']\n[skills]\n@\n", "dir = 'more'"),
    trial("skills.dirs", "[skills]\n@\n", "dirs = ['~/more']"),
    trial("skills.history_trust", "[skills]\n@\n", "history_trust = 'verify'"),
    trial("store.url", "[store]\n@\n", "url = 'sqlite://other.db'"),
    trial("telemetry.otlp_endpoint", "[telemetry]\n@\n", "otlp_endpoint = 'http://localhost:4318'"),
    trial("tools.exec.inherit_env", "[tools.exec]\n@\n", "inherit_env = ['A_TOKEN']"),
    trial("tools.exec.unconfined", "[tools.exec]\n@\n", "unconfined = true"),
    trial("tools.exec.shell", "[tools.exec]\n@\n", "shell = '/bin/bash'"),
    trial("tools.web_fetch.allow", "[tools.web_fetch]\n@\n", "allow = [{ host = 'wiki.internal' }]"),
];

/// A place with everything that a found file may name.
fn place() -> Place {
    let place = Place::new();
    for folder in ["work/rules", "work/skills/alpha", "work/more/alpha"] {
        fs::create_dir_all(place.path(folder)).unwrap();
    }
    for skill in ["skills", "more"] {
        place.write(&format!("work/{skill}/alpha/SKILL.md"), "---\ndescription: Says something.\n---\n");
    }
    place.write("work/serve.sh", "#!/bin/sh\n");
    place.write("work/replies.json", "{\"replies\": []}");
    place
}

/// Everything that is in force: hooks that nobody asks and what is checked before a start are left out.
fn in_force(config: &Config) -> String {
    let mut config = config.clone();
    config.hooks.retain(|loaded| !matches!(loaded.hook.state, HookState::Untrusted | HookState::Disabled));
    config.hooks.iter_mut().for_each(|loaded| (loaded.seal, loaded.content) = (None, None));
    config.mcp.values_mut().for_each(|server| server.seal = None);
    config.agent_hooks.untrusted_dirs.clear();
    config.found_folders.clear();
    format!("{config:#?}")
}

/// What a file with `text` is good for, on whose word it may count.
fn tried(text: &str, how: &str) -> (String, Vec<String>) {
    let place = place();
    place.write(FOUND, text);
    let named = place.path(FOUND);
    let options = LoadOptions {
        config: (how == "own").then_some(named.as_path()),
        builtins: &["redact"],
        ..LoadOptions::default()
    };
    if how == "accepted" {
        trust(&place);
    }
    if how == "absent" {
        fs::remove_file(place.path(FOUND)).unwrap();
    }
    let loaded = load(&place.env(), &options).unwrap();
    let root = place.root.path().display().to_string();
    (in_force(&loaded.config).replace(&root, ""), loaded.left_out)
}

#[test]
fn every_key_was_decided_about() {
    let decided: Vec<String> = FOUND_KEYS.iter().map(|key| key.path.to_owned()).collect();
    let mut sorted = decided.clone();
    sorted.sort();
    assert_eq!(sorted, schema_keys(), "a key of the schema without a decision, or the other way round");
    let mut trials: Vec<&str> = TRIALS.iter().map(|trial| trial.key).collect();
    trials.sort_unstable();
    assert_eq!(trials, sorted, "each key is tried");
}

#[test]
fn every_key_counts_in_a_found_file_as_far_as_was_decided() {
    let absent = tried("", "absent").0;
    let mut wrong = Vec::new();
    let mut bare: BTreeMap<(&str, &str), String> = BTreeMap::new();
    for Trial { key, file, written } in TRIALS {
        let (with, without) = (file.replace('@', written), file.replace('@', ""));
        let mut baseline = |how| bare.entry((file, how)).or_insert_with(|| tried(&without, how).0).clone();
        let (bare_own, bare_accepted) = (baseline("own"), baseline("accepted"));
        let (accepted, named) = tried(&with, "accepted");
        let decided = FOUND_KEYS.iter().find(|found| found.path == *key).unwrap().count;
        let expected = decided == FoundCount::WhenAccepted && !WITHOUT_EFFECT.contains(key);
        if (tried(&with, "own").0 != bare_own) == WITHOUT_EFFECT.contains(key) {
            wrong.push(format!("{key}: the trial shows no effect where everything counts"));
        }
        if (accepted != bare_accepted) != expected {
            wrong.push(format!("{key}: decided {decided:?}, and once accepted it counts: {}", !expected));
        }
        let (stranger, lines) = tried(&with, "unaccepted");
        if stranger != absent || lines.len() > 1 {
            wrong.push(format!("{key}: of a file that nobody accepted there is more than one line: {lines:?}"));
        }
        let told = named.iter().any(|line| line.contains("never counts in a found file: "));
        if told != (decided == FoundCount::Never) {
            wrong.push(format!("{key}: what never counts is named: {named:?}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
