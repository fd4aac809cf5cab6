//! Which hook's question a person sees.

use super::Chain;
use crate::checkpoint::Checkpoint;
use crate::hook::Hook;

impl<C: Checkpoint> Chain<'_, C> {
    /// Keeps that a person must say. The first hook that wants it is the one that asks, unless a later one is an exception:
    /// somebody made that for this call, and it tells more than a rule about all calls of a tool. What a hook says in the
    /// second pass takes the place of what it said in the first.
    pub(super) fn ask(&mut self, hook: &Hook, why: C::Ask) {
        let place = self.place_now();
        let gives_way = self.question.as_ref().is_none_or(|(first, _, _)| {
            let row = self.roster.at(C::KIND);
            let before = row.get(*first).map(|number| self.roster.hook(*number));
            *first == place || (is_exception(hook) && before.is_none_or(|before| !is_exception(before)))
        });
        if gives_way {
            self.question = Some((place, hook.name.clone(), why));
        }
    }
}

fn is_exception(hook: &Hook) -> bool {
    hook.stored.as_ref().is_some_and(|stored| stored.is_exception)
}
