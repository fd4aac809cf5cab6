//! Which hooks' matchers name which tools, remembered.
//!
//! A matcher sees nothing but the names of a tool, an agent calls the same few tools over and over, and there may be
//! dozens of matchers: what they said of a tool holds as long as the roster does.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::checkpoint::{CHECKPOINT_COUNT, CheckpointKind, Facts};

/// The number of names that are remembered at one checkpoint: more than an agent has tools. Models may call tools that
/// do not exist, by any name; those beyond are compared each time.
const MAX_NAMES: usize = 256;

/// From so many hooks on it is quicker to look a name up than to compare it.
const WORTH_IT: usize = 4;

/// The answers that the matchers of one row gave for each name.
type Said = HashMap<Box<str>, Arc<[bool]>>;

/// For each name of a tool, in the order of the row, whether the hooks there are about it.
#[derive(Debug, Default)]
pub(super) struct Names([RwLock<Said>; CHECKPOINT_COUNT]);

impl Names {
    /// The answer that `compare` gives of each of the `hooks` hooks at `kind`, by place. Nothing where that depends on
    /// more than one name, or is not worth it.
    pub(super) fn of(
        &self,
        kind: CheckpointKind,
        (facts, hooks): (&Facts<'_>, usize),
        compare: impl Fn(usize) -> bool,
    ) -> Option<Arc<[bool]>> {
        let (tool, raw) = facts.tool?;
        if facts.depth.is_some() || tool != raw || hooks < WORTH_IT {
            return None;
        }
        let known = &self.0[kind as usize];
        // A change under this lock is one insertion, complete before anything could panic.
        if let Some(said) = known.read().unwrap_or_else(PoisonError::into_inner).get(tool) {
            return Some(said.clone());
        }
        let said: Arc<[bool]> = (0..hooks).map(compare).collect();
        let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_NAMES {
            known.insert(tool.into(), said.clone());
        }
        Some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const AT: CheckpointKind = CheckpointKind::PreToolUse;

    /// The answers about `facts` of hooks the second and last of which are about it, and how many were compared for
    /// it.
    fn look(names: &Names, facts: &Facts<'_>, hooks: usize) -> (Option<Vec<bool>>, usize) {
        let compared = Cell::new(0);
        let said = names.of(AT, (facts, hooks), |place| {
            compared.set(compared.get() + 1);
            place == 1 || place == hooks - 1
        });
        (said.map(|said| said.to_vec()), compared.get())
    }

    #[test]
    fn a_name_is_compared_once() {
        let names = Names::default();
        let said = vec![false, true, false, false, true];
        assert_eq!(look(&names, &Facts::of_tool("exec"), 5), (Some(said.clone()), 5));
        assert_eq!(look(&names, &Facts::of_tool("exec"), 5), (Some(said.clone()), 0));
        assert_eq!(look(&names, &Facts::of_tool("read"), 5), (Some(said), 5));
    }

    #[test]
    fn what_depends_on_more_than_a_name_is_not_remembered() {
        let names = Names::default();
        let two = Facts { tool: Some(("exec", "functions.exec")), ..Facts::default() };
        let below = Facts { depth: Some(1), ..Facts::of_tool("spawn") };
        for facts in [two, below, Facts::default()] {
            assert_eq!(look(&names, &facts, 5), (None, 0));
        }
        assert_eq!(look(&names, &Facts::of_tool("exec"), 3), (None, 0), "so few are as quickly compared");
    }

    #[test]
    fn a_flood_of_names_is_compared_each_time() {
        let names = Names::default();
        for n in 0..MAX_NAMES {
            assert_eq!(look(&names, &Facts::of_tool(&n.to_string()), 4).1, 4);
        }
        for _ in 0..2 {
            assert_eq!(look(&names, &Facts::of_tool("another"), 4).1, 4);
            assert_eq!(look(&names, &Facts::of_tool("7"), 4).1, 0);
        }
    }
}
