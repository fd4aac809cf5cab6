//! A rewrite that a hook has no right to leaves a line in the log of the host, beside what its record says.

use pintle_domain::checkpoint::{Checkpoint, Reply, Subject};
use pintle_domain::json::Object;
use pintle_domain::rule::Rights;
use pintle_domain::verdict::{ParsedVerdict, Verdict};

use super::BoundRule;

impl BoundRule {
    /// Says in the log how much of a rewrite is dropped for want of the right to it.
    pub(super) fn log_denied(&self, subject: &Subject<'_>, reply: &Reply) {
        let Some(stored) = &self.hook.stored else { return };
        let field_count = denied(subject, reply, &stored.rights);
        if field_count > 0 {
            let source = if matches!(stored.rights, Rights::Fields(_)) { "builtin" } else { "user" };
            let (hook_id, handler_type) = (stored.id.as_str(), stored.handler.word());
            tracing::warn!(hook_id, source, handler_type, field_count, "hooks.script_mutation_denied");
        }
    }
}

/// How many of the fields that an answer changes may not be changed.
fn denied(subject: &Subject<'_>, reply: &Reply, rights: &Rights) -> usize {
    if let (Subject::PreToolUse(gate), Reply::PreToolUse(heard)) = (subject, reply) {
        return rewrite(heard).map_or(0, |with| denied_arguments(&gate.call.arguments, with, rights));
    }
    if let (Subject::UserPromptSubmit(at), Reply::UserPromptSubmit(heard)) = (subject, reply) {
        let is_denied = rewrite(heard).is_some_and(|with| *with != at.prompt && !rights.prompt());
        return usize::from(is_denied);
    }
    0
}

fn denied_arguments(old: &Object, new: &Object, rights: &Rights) -> usize {
    let changed = new.iter().filter(|(key, value)| old.get(key) != Some(value)).map(|(key, _)| key);
    let removed = old.keys().filter(|key| !new.contains_key(key));
    changed.chain(removed).filter(|key| !rights.argument(key)).count()
}

/// The rewrite that an answer puts into the place of what it was asked about.
fn rewrite<C: Checkpoint>(heard: &ParsedVerdict<C>) -> Option<&C::Modify> {
    match &heard.verdict {
        Verdict::Modify(with) => Some(with),
        Verdict::Continue | Verdict::Respond(_) | Verdict::Deny(_) | Verdict::Ask(_) | Verdict::Abort(_) => {
            heard.rewrite.as_deref()
        }
    }
}
