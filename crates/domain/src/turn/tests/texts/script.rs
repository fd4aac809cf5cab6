//! Random requests: hooks, and what the model, the tools and the user do.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::skill::{SkillHook, Skills, Timing, Voice};
use crate::turn::ToolUse;

/// Names of tools, canonical or as a model may write them.
const TOOLS: [&str; 4] = ["read_file", "Read", "web_fetch", "exec"];

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) skills: Skills,
    pub(super) planned: bool,
    pub(super) tools: ToolUse,
    /// What the plan says; it may be empty.
    pub(super) plan: &'static str,
    pub(super) need_tool: bool,
    /// What the model asks for, round by round; then it answers.
    pub(super) rounds: Vec<Asked>,
    pub(super) limit: u32,
    /// After which fact the process is killed.
    pub(super) killed_after: usize,
}

/// What happens in one round.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) calls: Vec<Wanted>,
    /// The user says something once so many calls have their answer.
    pub(super) steered_after: Option<usize>,
    /// A sub-agent brings something while the model thinks.
    pub(super) brought: bool,
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) raw: &'static str,
    pub(super) canonical: &'static str,
    pub(super) handled: bool,
}

fn hook() -> impl Strategy<Value = SkillHook> {
    let filter = subsequence(TOOLS.to_vec(), 0..=2);
    // Few texts, so that many are equal: whoever told messages by their content would be found out.
    let who = (select(vec!["alpha", "beta"]), 0..4_u8, select(vec!["same", "other"]));
    (who, select(Timing::ALL.to_vec()), any::<(bool, bool)>(), filter).prop_map(
        |((skill, name, content), timing, (user, persistent), filter)| SkillHook {
            skill: skill.into(),
            name: format!("h{name}"),
            content: content.into(),
            timing,
            role: if user { Voice::User } else { Voice::System },
            persistent,
            tool_filter: filter.into_iter().map(str::to_owned).collect(),
        },
    )
}

fn skills() -> impl Strategy<Value = Skills> {
    (prop::collection::vec(hook(), 0..9), prop::bool::weighted(0.2)).prop_map(|(hooks, narrow)| {
        let skills = Skills::new(hooks);
        if narrow { skills.narrowed(&["beta".into()]) } else { skills }
    })
}

fn asked() -> impl Strategy<Value = Asked> {
    let call = (select(TOOLS.to_vec()), select(TOOLS.to_vec()), any::<bool>());
    let call = call.prop_map(|(raw, canonical, handled)| Wanted { raw, canonical, handled });
    let steered = prop::option::weighted(0.4, 0..4_usize);
    (prop::collection::vec(call, 1..4), steered, prop::bool::weighted(0.2))
        .prop_map(|(calls, steered_after, brought)| Asked { calls, steered_after, brought })
}

pub(super) fn script() -> impl Strategy<Value = Script> {
    let tools = prop_oneof![6 => Just(ToolUse::Own), 1 => Just(ToolUse::None), 1 => Just(ToolUse::Off)];
    let plan = (select(vec!["", "P0"]), prop::bool::weighted(0.9));
    let rounds = prop::collection::vec(asked(), 0..5);
    (skills(), any::<bool>(), tools, plan, rounds, 1..6_u32, 0..60_usize).prop_map(
        |(skills, planned, tools, (plan, need_tool), rounds, limit, killed_after)| Script {
            skills,
            planned,
            tools,
            plan,
            need_tool,
            rounds,
            limit,
            killed_after,
        },
    )
}
