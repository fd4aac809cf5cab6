//! Whether a plan needs tools: what a planning reply says of it, and the tags in which it says so.

use serde::{Deserialize, Serialize};

use crate::llm::LlmReply;

/// Longest tag, in bytes: the longest name with its marks and some blanks. What is longer is text.
const MAX_TAG_BYTES: usize = 32;

/// The prompt that ends the list of the planning call, unless the agent says otherwise.
pub const PLANNING_PROMPT: &str = "Before anything else, plan. Say in a few sentences what the user wants and what you \
will do. You cannot use any tool in this reply. If you will need tools, end your reply with <need_tool/>. If not, answer \
the user now and end your reply with <no_tool/>.";

/// The prompt that ends the list of the first call of the loop, unless the agent says otherwise.
pub const FIRST_STEP_PROMPT: &str =
    "Now carry your plan out, with the tools that are there. Begin with the first step.";

/// The prompt that ends the list of every later call of the loop, unless the agent says otherwise.
pub const AGENT_LOOP_PROMPT: &str = "Go on with your plan. Change it where the results call for it. When nothing is left \
to do, answer the user without using a tool.";

/// The prompts of the host's own in a planned turn. An empty one is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPrompts {
    /// Ends the list of the planning call.
    pub planning: String,
    /// Ends the list of the first call of the loop.
    pub first_step: String,
    /// Ends the list of every later call of the loop.
    pub agent_loop: String,
}

impl Default for StepPrompts {
    fn default() -> Self {
        Self {
            planning: PLANNING_PROMPT.into(),
            first_step: FIRST_STEP_PROMPT.into(),
            agent_loop: AGENT_LOOP_PROMPT.into(),
        }
    }
}

/// The need for tools that a planning reply tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolNeed {
    /// They are needed.
    Tools,
    /// They are not: the reply is the answer.
    Nothing,
    /// It does not say.
    Unsaid,
}

/// The need that a reply tells in tags, or by calling a tool that nobody offered.
pub fn need(reply: &LlmReply) -> ToolNeed {
    let mut stripper = TagStripper::default();
    stripper.push(&reply.content);
    match (reply.tool_calls.is_empty(), stripper.need_tool, stripper.no_tool) {
        (false, _, _) | (true, true, _) => ToolNeed::Tools,
        (true, false, true) => ToolNeed::Nothing,
        (true, false, false) => ToolNeed::Unsaid,
    }
}

/// `text` without tags.
pub fn stripped(text: &str) -> String {
    let mut stripper = TagStripper::default();
    let mut out = stripper.push(text);
    out.push_str(&stripper.finish());
    out
}

/// Takes tags out of a text that comes in pieces. What may still become a tag is held back.
#[derive(Clone, Debug, Default)]
pub struct TagStripper {
    held: String,
    need_tool: bool,
    no_tool: bool,
}

/// The kind of a text that begins with `<`.
enum Begins {
    Tag(Tag),
    /// It may become one.
    Perhaps,
    Text,
}

#[derive(Clone, Copy)]
enum Tag {
    NeedTool,
    NoTool,
}

impl TagStripper {
    /// The text that can be shown now that `piece` has come.
    pub fn push(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            if self.held.is_empty() && c != '<' {
                out.push(c);
                continue;
            }
            self.held.push(c);
            self.settle(&mut out);
        }
        out
    }

    /// The rest, which has become no tag.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    fn settle(&mut self, out: &mut String) {
        match begins(&self.held) {
            Begins::Perhaps => return,
            Begins::Tag(Tag::NeedTool) => self.need_tool = true,
            Begins::Tag(Tag::NoTool) => self.no_tool = true,
            Begins::Text => {
                // Only the newest character can begin another tag: no tag has two `<`.
                match self.held.rfind('<').filter(|at| *at > 0) {
                    Some(at) => {
                        out.extend(self.held.drain(..at));
                        return;
                    }
                    None => out.push_str(&self.held),
                }
            }
        }
        self.held.clear();
    }
}

fn begins(text: &str) -> Begins {
    if text.len() > MAX_TAG_BYTES {
        return Begins::Text;
    }
    let rest = text.strip_prefix('<').unwrap_or(text).trim_start();
    let rest = rest.strip_prefix('/').unwrap_or(rest).trim_start();
    for (name, tag) in [("need_tool", Tag::NeedTool), ("no_tool", Tag::NoTool)] {
        if name.len() > rest.len() && name.as_bytes()[..rest.len()].eq_ignore_ascii_case(rest.as_bytes()) {
            return Begins::Perhaps;
        }
        let named = rest.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name));
        if !named {
            continue;
        }
        let end = rest[name.len()..].trim_start();
        let end = end.strip_prefix('/').unwrap_or(end).trim_start();
        return match end {
            "" => Begins::Perhaps,
            ">" => Begins::Tag(tag),
            _ => Begins::Text,
        };
    }
    Begins::Text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::message::CallPart;

    fn check(text: &str, shown: &str, said: ToolNeed) {
        assert_eq!((stripped(text).as_str(), need(&LlmReply::text(text))), (shown, said), "{text:?}");
    }

    #[test]
    fn tags_decide_and_are_taken_out() {
        check("plan <need_tool/>", "plan ", ToolNeed::Tools);
        check("<no_tool/>hello", "hello", ToolNeed::Nothing);
        check("<no_tool/> a <need_tool/>", " a ", ToolNeed::Tools);
        check("a<need_tool>b</need_tool>c", "abc", ToolNeed::Tools);
        check("a</no_tool>b", "ab", ToolNeed::Nothing);
        check("< NEED_TOOL / >x", "x", ToolNeed::Tools);
        check("hello", "hello", ToolNeed::Unsaid);
        check("", "", ToolNeed::Unsaid);
        check("<<need_tool/>", "<", ToolNeed::Tools);
        check("<need_tool<no_tool/>", "<need_tool", ToolNeed::Nothing);
        check(
            "<need_tools/> <no_toolbox> need_tool no_tool",
            "<need_tools/> <no_toolbox> need_tool no_tool",
            ToolNeed::Unsaid,
        );
        check("a < b and <need_too", "a < b and <need_too", ToolNeed::Unsaid);
        check("<n\u{f6}_tool/>", "<n\u{f6}_tool/>", ToolNeed::Unsaid);
        check(&format!("<{}need_tool/>", " ".repeat(40)), &format!("<{}need_tool/>", " ".repeat(40)), ToolNeed::Unsaid);
    }

    #[test]
    fn a_call_that_nobody_offered_is_a_yes() {
        let reply =
            LlmReply { content: "<no_tool/>".into(), ..LlmReply::calls(vec![CallPart::new("c1", "read_file", "{}")]) };
        assert_eq!(need(&reply), ToolNeed::Tools);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 5_000, rng_seed: RngSeed::Fixed(0), failure_persistence: None, ..ProptestConfig::default()
        })]

        #[test]
        fn however_a_text_is_cut_the_same_of_it_is_shown_and_no_tag_leaks(
            pieces in prop::collection::vec(
                prop::sample::select(vec!["<", "/", ">", "need_", "no_", "tool", " ", "a", "é", "<need_tool/>", "<no_tool>"]),
                0..12,
            ),
        ) {
            let whole = pieces.concat();
            let mut stripper = TagStripper::default();
            let mut shown = String::new();
            for piece in &pieces {
                shown.push_str(&stripper.push(piece));
                prop_assert!(stripper.held.len() <= MAX_TAG_BYTES);
            }
            shown.push_str(&stripper.finish());
            prop_assert_eq!(&shown, &stripped(&whole));
            let mut by_char = TagStripper::default();
            let mut slowly: String = whole.chars().map(|c| by_char.push(c.encode_utf8(&mut [0; 4]))).collect();
            slowly.push_str(&by_char.finish());
            prop_assert_eq!(&shown, &slowly);
            let said = need(&LlmReply::text(whole.as_str()));
            prop_assert_eq!(said == ToolNeed::Unsaid, shown == whole);
        }
    }
}
