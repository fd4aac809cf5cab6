//! Matchers that say no to every tool there is: one finding for a start, a reload, `hooks lint` and listings.

use std::path::{Path, PathBuf};

use pintle_agent::ask::{self, AskGate};
use pintle_agent::tools::{BUILTIN, LOAD_SKILL};
use pintle_dialects::process::config::MemberPart;
use pintle_domain::checkpoint::{CheckpointKind, Duty, Facts};
use pintle_domain::health::{Health, Step};
use pintle_domain::hook::{Hook, HookState};
use pintle_domain::matcher::Matcher;
use pintle_domain::rule::{Rule, Source};
use pintle_rules::cache::RuleCache;

use crate::config::document::Document;
use crate::config::{self, AgentConfig, Config, Diagnostic, Env, HookKind, LoadedHook, Location, NamedRef};
use crate::mcp_names::names_mcp;
use crate::tool_names::{is_about, may_be_about_servers, may_bring_tools, meant, of_servers};

/// A matcher that is about no tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlindMatcher {
    pattern: String,
    /// The tool that it probably means.
    nearest: Option<&'static str>,
}

impl BlindMatcher {
    /// Of `hook`, whose matcher is written as `pattern`. A hook that is asked before model calls may bring tools of its
    /// own, and others may be about them; but what looks like a slip of the pen is one.
    fn of(config: &Config, hook: &Hook, pattern: &str) -> Option<Self> {
        if may_bring_tools(hook)
            || BUILTIN.iter().chain([&LOAD_SKILL]).any(|tool| is_about(hook, tool))
            || may_be_about_servers(config, hook)
        {
            return None;
        }
        let nearest = meant(pattern);
        (nearest.is_some() || !is_brought(config)).then(|| Self { pattern: pattern.to_owned(), nearest })
    }

    /// Of a hook of the configuration. The globs of `agents.NAME.ask` are looked at one by one, where they stand. Tools of
    /// MCP servers may come through a tool door or an agent under guard: what is about them may be about some.
    pub fn of_loaded(config: &Config, loaded: &LoadedHook) -> Option<Self> {
        let hook = &loaded.hook;
        match loaded.kind {
            HookKind::Process(_) | HookKind::Command(_) | HookKind::Builtin(_) if hook.state == HookState::Armed => {
                let pattern = hook.matcher.as_ref()?.pattern();
                if names_mcp(pattern) { None } else { Self::of(config, hook, pattern) }
            }
            HookKind::Process(_)
            | HookKind::Command(_)
            | HookKind::Builtin(_)
            | HookKind::Ask(_)
            | HookKind::Nothing => None,
        }
    }

    /// Of a rule about calls at `event`, whose matcher is written as `pattern`.
    pub fn of_rule(config: &Config, event: CheckpointKind, pattern: &str) -> Option<Self> {
        if pattern.is_empty() || !event.is_about_a_call() {
            return None;
        }
        Self::of_matcher(config, &Matcher::compile(pattern).ok()?)
    }

    fn of_matcher(config: &Config, matcher: &Matcher) -> Option<Self> {
        let pattern = matcher.pattern();
        let about = |name: &str| matcher.matches(&Facts::of_tool(name));
        if names_mcp(pattern)
            || BUILTIN.iter().chain([&LOAD_SKILL]).any(|tool| about(tool))
            || of_servers(config).iter().any(|tool| about(tool))
        {
            return None;
        }
        let nearest = meant(pattern);
        (nearest.is_some() || !is_brought(config)).then(|| Self { pattern: pattern.to_owned(), nearest })
    }

    /// What a person is told who stores a rule with it.
    pub fn sentence(&self) -> String {
        match self.nearest {
            Some(tool) => format!("matcher `{}` matches no tool; did you mean `{tool}`?", self.pattern),
            None => format!("matcher {}", self.message()),
        }
    }

    /// How a hook stands that has it, be it a process hook or a rule.
    pub fn health(&self) -> Health {
        Health::unproven(
            Step::Matcher,
            match self.nearest {
                Some(tool) => format!("matches no tool; did you mean {tool}?"),
                None => "matches no tool".to_owned(),
            },
        )
    }

    fn message(&self) -> String {
        match self.nearest {
            Some(_) => format!("`{}` matches no tool", self.pattern),
            None => format!("`{}` matches no tool; the tools are {}", self.pattern, BUILTIN.join(", ")),
        }
    }

    fn diagnostic(&self, place: Location, path: &[String], guard: bool) -> Diagnostic {
        let nearest = self.nearest.map(str::to_owned);
        Diagnostic { place, path: config::diagnostic::dotted(path), message: self.message(), nearest, guard }
    }
}

/// The blind matchers of `config`, which was read from `files`, each where it stands.
pub fn findings(env: &Env, config: &Config, files: &[PathBuf]) -> Vec<Diagnostic> {
    let of_hooks =
        config.hooks.iter().filter_map(|loaded| Some((&loaded.hook, BlindMatcher::of_loaded(config, loaded)?)));
    let of_hooks: Vec<_> = of_hooks.collect();
    let of_agents = config.agents.values().flat_map(|agent| blind_asks(config, agent));
    if of_hooks.is_empty() {
        return of_agents.collect();
    }
    let documents: Vec<Document> = files.iter().filter_map(|file| config::parsed(env, file).ok()).collect();
    let placed = of_hooks.into_iter().map(|(hook, blind)| {
        let path = ["hooks", "processes", hook.name.as_str(), "matcher"].map(str::to_owned);
        blind.diagnostic(place_in(&documents, &hook.origin, &path), &path, is_guard(hook))
    });
    placed.chain(of_agents).collect()
}

/// The blind matcher of `rule`, which is kept in `place`: a store has no lines, so it is named as a whole.
pub fn of_rule(config: &Config, rule: &Rule, place: &Path) -> Option<Diagnostic> {
    let blind = BlindMatcher::of_rule(config, rule.event, &rule.matcher).filter(|_| rule.enabled)?;
    let place = Location { file: place.to_owned(), line: 1, column: 1 };
    let path = [rule.label(), "matcher"].map(str::to_owned);
    Some(blind.diagnostic(place, &path, rule.event.duty() == Duty::Gate))
}

/// The rules of people among `rules` that are in force in `rule_cache` and about no tool, each with what is said of it at
/// a start.
pub fn of_rules<'a>(
    config: &'a Config,
    rules: &'a [Rule],
    rule_cache: &'a RuleCache,
) -> impl Iterator<Item = (&'a Rule, String)> {
    let own = rules.iter().filter(|rule| rule.enabled && rule.source == Source::User);
    own.filter_map(|rule| {
        let mounted = rule_cache.mounted(&rule.id);
        // To compile all patterns once more would be a third of a start with many rules.
        let blind = match mounted.as_ref().and_then(|hook| hook.matcher.as_ref()) {
            Some(matcher) if matcher.pattern() == rule.matcher && rule.event.is_about_a_call() => {
                BlindMatcher::of_matcher(config, matcher)
            }
            Some(_) | None => BlindMatcher::of_rule(config, rule.event, &rule.matcher),
        }?;
        Some((rule, format!("hook \"{}\": {}", rule.label(), blind.sentence())))
    })
}

/// Globs of `agents.NAME.ask` that say no to every tool there is: whoever wrote them will never be asked.
fn blind_asks<'a>(config: &'a Config, agent: &'a AgentConfig) -> impl Iterator<Item = Diagnostic> + 'a {
    let blind = move |glob: &NamedRef| {
        let matcher = ask::matcher(std::slice::from_ref(&glob.text)).ok()?;
        let hook = AskGate::new(&agent.name).hook(&agent.name, "", matcher);
        let blind = BlindMatcher::of(config, &hook, &glob.text)?;
        Some(blind.diagnostic(glob.place.clone()?, &glob.path, true))
    };
    agent.ask.iter().filter_map(blind)
}

/// Whether somebody may bring tools that nobody knows before: hooks, and agents of others.
fn is_brought(config: &Config) -> bool {
    serves_others(config) || config.hooks.iter().any(|loaded| may_bring_tools(&loaded.hook))
}

/// Whether `config` speaks of agents of others, whose tools nobody knows before: those under guard, whoever comes
/// through a door, and whoever has the rules of a team.
pub fn serves_others(config: &Config) -> bool {
    let is_guarding = !config.guard_hosts.is_empty() || !config.guard_require.is_empty() || config.rules_from.is_some();
    is_guarding || !config.model_doors.is_empty() || !config.tool_doors.is_empty()
}

/// Whether `hook` was to guard tools.
pub fn is_guard(hook: &Hook) -> bool {
    let guards = [CheckpointKind::BeforeTool, CheckpointKind::ApproveTool];
    guards.iter().any(|kind| hook.stages.get(*kind).is_some_and(|stage| !stage.paired))
}

/// The place of what `path` leads to in the file of `documents` that `origin` names.
pub fn place_in(documents: &[Document], origin: &str, path: &[String]) -> Location {
    let entry = place(origin);
    let document = documents.iter().find(|document| document.file == entry.file);
    document.map_or(entry, |document| document.place(path, MemberPart::Value))
}

/// The place that an origin names: `FILE:LINE:COLUMN`.
fn place(origin: &str) -> Location {
    let mut parts = origin.rsplitn(3, ':');
    let mut number = || parts.next().and_then(|part| part.parse().ok());
    let (column, line) = (number().unwrap_or(1), number().unwrap_or(1));
    Location { file: PathBuf::from(parts.next().unwrap_or(origin)), line, column }
}
