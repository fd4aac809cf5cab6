//! What of a host's tools is held on this machine, by which door, and what that rests on.

use std::borrow::Cow;

use crate::coverage::{GuardLevel, ToolCoverage};
use crate::host::GuardHost;
use crate::tools::ToolClass;

/// A way by which an agent's calls come to the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardDoor {
    /// The hooks that the agent runs.
    Hook,
    /// The model that it asks.
    Model,
    /// The MCP servers that it asks.
    Tool,
}

impl GuardDoor {
    /// The doors that are the same for every agent.
    pub const OF_ALL: [Self; 2] = [Self::Model, Self::Tool];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Model => "model",
            Self::Tool => "tool",
        }
    }
}

const BY_MODEL: &[&str] = &[
    "what the agent runs without its model, such as commands of a person and hooks of its own",
    "an agent that asks its vendor elsewhere",
];
const BY_SERVER: &[&str] = &["a server whose entry is not put behind the door"];
const NO_SERVER: &[&str] = &["only servers of MCP are behind this door"];

const fn row(class: ToolClass, level: GuardLevel, around: &'static [&'static str]) -> ToolCoverage {
    ToolCoverage { class, level, around }
}

/// What comes past the model door: every call that a model wants.
const MODEL_DOOR: &[ToolCoverage] = &[
    row(ToolClass::Shell, GuardLevel::Held, BY_MODEL),
    row(ToolClass::FileWrite, GuardLevel::Held, BY_MODEL),
    row(ToolClass::FileRead, GuardLevel::Held, BY_MODEL),
    row(ToolClass::Web, GuardLevel::Held, BY_MODEL),
    row(ToolClass::Mcp, GuardLevel::Held, BY_MODEL),
    row(ToolClass::Subagent, GuardLevel::Held, BY_MODEL),
    row(ToolClass::Other, GuardLevel::Held, BY_MODEL),
];

/// What comes past the tool door: the calls of the servers behind it.
const TOOL_DOOR: &[ToolCoverage] = &[
    row(ToolClass::Shell, GuardLevel::Open, NO_SERVER),
    row(ToolClass::FileWrite, GuardLevel::Open, NO_SERVER),
    row(ToolClass::FileRead, GuardLevel::Open, NO_SERVER),
    row(ToolClass::Web, GuardLevel::Open, NO_SERVER),
    row(ToolClass::Mcp, GuardLevel::Held, BY_SERVER),
    row(ToolClass::Subagent, GuardLevel::Open, NO_SERVER),
    row(ToolClass::Other, GuardLevel::Open, NO_SERVER),
];

/// What is known of the version of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionFact<'a> {
    /// Nobody can say it.
    Unknown,
    /// One that the adapter was tried with.
    Tried(&'a str),
    /// Another one.
    New(&'a str),
}

/// What is known on this machine of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoverageFacts<'a> {
    /// The door that its calls come by.
    pub door: GuardDoor,
    /// The version that runs.
    pub version: VersionFact<'a>,
    /// The version that a canary was refused with, if one was.
    pub proof: Option<&'a str>,
    /// Why its hooks do not run, if something was found that turns them off.
    pub off: Option<&'a str>,
}

/// What a level rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoverageBasis {
    /// A call of this class was refused on this machine, by this version.
    Proven,
    /// It comes by the event that was proven on this machine, with this version.
    SameEvent,
    /// What was observed of this or an earlier version elsewhere.
    Observed,
    /// What was found on this machine.
    Found,
}

impl CoverageBasis {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::SameEvent => "same event",
            Self::Observed => "observed",
            Self::Found => "found",
        }
    }
}

/// How far the tools of one class are under guard on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCoverage {
    /// The class.
    pub class: ToolClass,
    /// How far.
    pub level: GuardLevel,
    /// What that rests on.
    pub basis: CoverageBasis,
    /// Ways round that are known, each in a few words.
    pub around: Vec<Cow<'static, str>>,
}

/// The class of the call that a canary makes.
const CANARY: ToolClass = ToolClass::Shell;

/// How far each class of tools of `host` is under guard, as far as `facts` go: one row a class. What turns hooks off opens
/// all of them, and so does a version that nobody has tried and that was not proven here.
pub fn coverage(host: &GuardHost, facts: &CoverageFacts<'_>) -> Vec<ClassCoverage> {
    let opened = opened(facts);
    let of = |row: &ToolCoverage| {
        let ToolCoverage { class, level, around } = *row;
        match (&opened, level) {
            (Some(why), GuardLevel::Held | GuardLevel::Seen) => {
                let around = vec![Cow::Owned(why.clone())];
                ClassCoverage { class, level: GuardLevel::Open, basis: CoverageBasis::Found, around }
            }
            (Some(_) | None, _) => {
                let around = around.iter().map(|why| Cow::Borrowed(*why)).collect();
                ClassCoverage { class, level, basis: basis(row, facts), around }
            }
        }
    };
    table(host.coverage, facts.door).iter().map(of).collect()
}

/// How far each class of tools is under guard that comes by `door`, which is the same for every agent; nothing of hooks.
pub fn door_coverage(door: GuardDoor) -> Vec<ClassCoverage> {
    let of = |row: &ToolCoverage| {
        let around = row.around.iter().map(|why| Cow::Borrowed(*why)).collect();
        ClassCoverage { class: row.class, level: row.level, basis: CoverageBasis::Observed, around }
    };
    table(&[], door).iter().map(of).collect()
}

fn table(of_host: &'static [ToolCoverage], door: GuardDoor) -> &'static [ToolCoverage] {
    match door {
        GuardDoor::Hook => of_host,
        GuardDoor::Model => MODEL_DOOR,
        GuardDoor::Tool => TOOL_DOOR,
    }
}

/// What opens everything that could be held else.
fn opened(facts: &CoverageFacts<'_>) -> Option<String> {
    if facts.door != GuardDoor::Hook {
        return None;
    }
    match (facts.off, facts.version) {
        (Some(off), _) => Some(off.to_owned()),
        (None, VersionFact::New(version)) if facts.proof != Some(version) => Some(unproven(version)),
        (None, VersionFact::New(_) | VersionFact::Tried(_) | VersionFact::Unknown) => None,
    }
}

/// What is said of a version that nobody has tried and that was not proven here.
pub fn unproven(version: &str) -> String {
    format!("unproven since {version}")
}

fn basis(row: &ToolCoverage, facts: &CoverageFacts<'_>) -> CoverageBasis {
    let version = match facts.version {
        VersionFact::Tried(version) | VersionFact::New(version) => Some(version),
        VersionFact::Unknown => None,
    };
    let is_proven = facts.door == GuardDoor::Hook && version.is_some() && facts.proof == version;
    match (is_proven, row.level) {
        (true, GuardLevel::Held) if row.class == CANARY => CoverageBasis::Proven,
        (true, GuardLevel::Held) => CoverageBasis::SameEvent,
        (true | false, _) => CoverageBasis::Observed,
    }
}

/// Why a session may do nothing where calls of the classes `required` have to be held; none where `host` lets them be. Of
/// a version that nobody knows yet it is unknown what it lets be held by its hooks.
pub fn lacks(host: &GuardHost, facts: &CoverageFacts<'_>, required: &[ToolClass]) -> Option<String> {
    let is_lacking = |row: &ClassCoverage| match row.level {
        GuardLevel::Held | GuardLevel::Absent => false,
        GuardLevel::Seen | GuardLevel::Open => required.contains(&row.class),
    };
    let rows = coverage(host, facts);
    let Some(row) = rows.iter().find(|row| is_lacking(row)) else {
        let is_unknown = facts.door == GuardDoor::Hook && facts.version == VersionFact::Unknown;
        let is_claimed = |row: &&ClassCoverage| row.level == GuardLevel::Held && required.contains(&row.class);
        return rows.iter().find(is_claimed).filter(|_| is_unknown).map(|row| unknown(host, row.class));
    };
    let why = row.around.first().map(|why| format!(": {why}")).unwrap_or_default();
    Some(format!(
        "calls of the class `{}` have to be held here (`guard.require`), and {} leaves them {}{why}",
        row.class.word(),
        host.name,
        row.level.word()
    ))
}

/// What is said of a version that nobody knows, where calls of `class` have to be held.
fn unknown(host: &GuardHost, class: ToolClass) -> String {
    format!(
        "calls of the class `{}` have to be held here (`guard.require`), and nobody knows yet in which version {} runs; \
         the guard looks for that at each prompt: try again in a moment, and see `pintle guard status --host {}`",
        class.word(),
        host.name,
        host.id
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host;

    const TRIED: VersionFact<'_> = VersionFact::Tried("1");
    const NEW: VersionFact<'_> = VersionFact::New("2");

    fn facts<'a>(version: VersionFact<'a>, proof: Option<&'a str>, off: Option<&'a str>) -> CoverageFacts<'a> {
        CoverageFacts { door: GuardDoor::Hook, version, proof, off }
    }

    /// What is said of the shell and of another class that the table calls held.
    fn check(facts: &CoverageFacts<'_>, shell: (GuardLevel, CoverageBasis), web: (GuardLevel, CoverageBasis)) {
        let rows = coverage(host("claude").unwrap(), facts);
        let of = |class: ToolClass| rows.iter().find(|row| row.class == class).map(|row| (row.level, row.basis));
        assert_eq!((of(ToolClass::Shell), of(ToolClass::Web)), (Some(shell), Some(web)), "{facts:?}");
    }

    #[test]
    fn coverage_is_what_was_observed_unless_more_is_known_here() {
        use CoverageBasis::{Found, Observed, Proven, SameEvent};
        use GuardLevel::{Held, Open};
        let observed = (Held, Observed);
        let opened = (Open, Found);
        check(&facts(TRIED, None, None), observed, observed);
        check(&facts(VersionFact::Unknown, Some("1"), None), observed, observed);
        check(&facts(TRIED, Some("1"), None), (Held, Proven), (Held, SameEvent));
        check(&facts(TRIED, Some("0"), None), observed, observed);
        check(&facts(NEW, None, None), opened, opened);
        check(&facts(NEW, Some("1"), None), opened, opened);
        check(&facts(NEW, Some("2"), None), (Held, Proven), (Held, SameEvent));
        check(&facts(NEW, Some("2"), Some("off")), opened, opened);
        check(&CoverageFacts { door: GuardDoor::Model, ..facts(NEW, None, Some("off")) }, observed, observed);
        let tool = CoverageFacts { door: GuardDoor::Tool, ..facts(TRIED, Some("1"), None) };
        check(&tool, (Open, Observed), (Open, Observed));
    }

    #[test]
    fn what_is_required_and_not_held_is_lacking() {
        let says = |id: &str, facts: &CoverageFacts<'_>| lacks(host(id).unwrap(), facts, &[ToolClass::Shell]);
        assert_eq!(says("claude", &facts(TRIED, None, None)), None);
        let off = says("claude", &facts(TRIED, Some("1"), Some("it is off"))).unwrap();
        assert!(off.ends_with("leaves them open: it is off"), "{off}");
        let new = says("claude", &facts(NEW, None, None)).unwrap();
        assert!(new.ends_with("leaves them open: unproven since 2"), "{new}");
        let unknown = says("claude", &facts(VersionFact::Unknown, Some("1"), None)).unwrap();
        assert!(
            unknown.contains("`guard.require`") && unknown.contains("in which version Claude Code runs"),
            "{unknown}"
        );
        assert_eq!(lacks(host("claude").unwrap(), &facts(VersionFact::Unknown, None, None), &[]), None);
        let model = CoverageFacts { door: GuardDoor::Model, ..facts(VersionFact::Unknown, None, None) };
        assert_eq!(says("claude", &model), None, "which version asks its model is no matter");
        let codex = says("codex", &facts(TRIED, None, None)).unwrap();
        assert!(codex.contains("`write_stdin`"), "{codex}");
        let none = lacks(host("pi").unwrap(), &facts(TRIED, None, None), &ToolClass::ALL);
        assert_eq!(none, None, "what there is none of need not be held");
    }

    #[test]
    fn every_door_has_one_row_a_class() {
        for table in [MODEL_DOOR, TOOL_DOOR].into_iter().chain(crate::HOSTS.iter().map(|host| host.coverage)) {
            let classes: Vec<ToolClass> = table.iter().map(|row| row.class).collect();
            assert_eq!(classes, ToolClass::ALL);
        }
    }
}
