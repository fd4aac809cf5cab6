//! The built-in gate of `agents.NAME.ask`: every call of certain tools waits for a person.

use globset::Glob;
use pintle_domain::checkpoint::{CheckpointKind, PreToolUse};
use pintle_domain::hook::{Family, Hook, HookState, Scope, Stages};
use pintle_domain::id::{AgentId, HookName};
use pintle_domain::matcher::{Matcher, RespondTools};
use pintle_domain::verdict::{Reason, Verdict};
use pintle_engine::{HookCx, NativeAnswer, NativeHook, async_trait};

use crate::tools::canonical_builtin;

/// How the regular expression of a glob begins: it reads bytes, and tools are matched by characters.
const OF_BYTES: &str = "(?-u)";

/// Wants a person to say, whatever it is asked about. Its hook's matcher picks the tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskGate {
    agent: AgentId,
}

/// The fault of a glob.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct GlobError {
    /// Its place among the globs.
    pub place: usize,
    /// Why, on one line.
    pub reason: String,
}

impl AskGate {
    /// The gate of the agent called `agent`.
    pub fn new(agent: &str) -> Self {
        Self { agent: AgentId::from(agent) }
    }

    /// The hook called `name`, defined at `origin`, that this gate answers for. It is about the tools that `matcher`
    /// matches, in the turns of its agent and of every agent that works for it.
    pub fn hook(&self, name: &str, origin: &str, matcher: Matcher) -> Hook {
        let mut stages = Stages::default();
        stages.set(CheckpointKind::PreToolUse, pintle_domain::hook::Stage::default_at(CheckpointKind::PreToolUse));
        Hook {
            name: HookName::from(name),
            family: Family::Native,
            origin: origin.to_owned(),
            priority: 0,
            state: HookState::Armed,
            scope: Scope::Agents([self.agent.clone()].into()),
            matcher: Some(matcher),
            respond: RespondTools::Any,
            events: None,
            media_dir: None,
            stages,
            stored: None,
        }
    }
}

#[async_trait]
impl NativeHook for AskGate {
    fn stages(&self) -> Vec<CheckpointKind> {
        vec![CheckpointKind::PreToolUse]
    }

    async fn pre_tool_use(&self, _cx: &HookCx<'_>, at: &PreToolUse) -> NativeAnswer<PreToolUse> {
        let why = format!("every call of `{}` by the agent `{}` waits for a person", at.call.tool, self.agent);
        Ok(Verdict::Ask(Reason::new(&why)))
    }
}

/// The tools that `globs` name, each by its whole name. A name that models use elsewhere for a built-in tool
/// (`bash`) stands for that tool, too.
///
/// # Errors
/// The first glob that is none.
pub fn matcher(globs: &[String]) -> Result<Matcher, GlobError> {
    let mut patterns = Vec::new();
    for (place, glob) in globs.iter().enumerate() {
        let bad = |reason: String| GlobError { place, reason };
        if glob.is_empty() {
            return Err(bad("it is empty, and names no tool".into()));
        }
        if !glob.is_ascii() {
            return Err(bad("a glob of tools has only ASCII characters".into()));
        }
        let compiled = Glob::new(glob).map_err(|error| bad(error.kind().to_string()))?;
        let regex = compiled.regex();
        patterns.push(regex.strip_prefix(OF_BYTES).unwrap_or(regex).to_owned());
        let known = canonical_builtin(glob).filter(|known| known != glob);
        patterns.extend(known.map(|known| format!("^{known}$")));
    }
    Matcher::compile(&format!("(?s){}", patterns.join("|")))
        .map_err(|reason| GlobError { place: globs.len().saturating_sub(1), reason })
}

/// Every tool: for a host that cannot tell which ones are meant.
pub fn everything() -> Matcher {
    Matcher::compile("").expect("nothing is a pattern")
}

#[cfg(test)]
mod tests {
    use pintle_domain::checkpoint::Facts;

    use super::*;

    fn check(globs: &[&str], tool: &str, expected: bool) {
        let globs: Vec<String> = globs.iter().map(|glob| (*glob).to_owned()).collect();
        let matcher = matcher(&globs).unwrap();
        assert_eq!(matcher.matches(&Facts::of_tool(tool)), expected, "{globs:?} {tool}");
    }

    #[test]
    fn globs_name_whole_tools() {
        check(&["exec"], "exec", true);
        check(&["exec"], "exec2", false);
        check(&["exec"], "my_exec", false);
        check(&["write_*", "edit_?ile"], "write_file", true);
        check(&["write_*", "edit_?ile"], "edit_file", true);
        check(&["write_*", "edit_?ile"], "read_file", false);
        check(&["*"], "größe\n x", true);
        check(&["*"], "", true);
        check(&["{web_fetch,mcp_*}"], "mcp_files/read", true);
        check(&["a.c"], "abc", false);
        check(&["bash"], "exec", true);
        check(&["Read"], "read_file", true);
        check(&["[!e]*"], "exec", false);
    }

    #[test]
    fn a_bad_glob_says_which_and_why() {
        let check = |globs: &[&str]| {
            let globs: Vec<String> = globs.iter().map(|glob| (*glob).to_owned()).collect();
            let bad = matcher(&globs).unwrap_err();
            (bad.place, bad.reason)
        };
        assert_eq!(check(&["exec", ""]), (1, "it is empty, and names no tool".into()));
        assert_eq!(check(&["größe"]), (0, "a glob of tools has only ASCII characters".into()));
        assert_eq!(check(&["a", "b", "[x"]), (2, "unclosed character class; missing ']'".into()));
    }
}
