//! The hooks in force with what runs each of them: immutable, replaced whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::checkpoint::{Notice, Reply};
use domain::fault::Fault;
use domain::hook::Hook;
use domain::id::HookName;
use domain::roster::Roster;
use futures_util::future::BoxFuture;

use crate::handler::{Call, Handler};

/// A hook and what runs it.
pub struct Mount {
    /// The hook.
    pub hook: Hook,
    /// What runs it; [`Absent`] for hooks that are never asked.
    pub handler: Arc<dyn Handler>,
}

/// The hooks in force. A turn keeps the set it began with.
#[derive(Default)]
pub struct Set {
    roster: Arc<Roster>,
    handlers: Vec<Arc<dyn Handler>>,
}

/// Two hooks have one name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("duplicate hook name \"{0}\"")]
pub struct DuplicateName(pub HookName);

impl Set {
    /// Puts `mounts` in running order.
    ///
    /// # Errors
    /// Two of them have one name.
    pub fn new(mounts: Vec<Mount>) -> Result<Self, DuplicateName> {
        let mut handlers = BTreeMap::new();
        let mut hooks = Vec::with_capacity(mounts.len());
        for Mount { hook, handler } in mounts {
            if handlers.insert(hook.name.clone(), handler).is_some() {
                return Err(DuplicateName(hook.name));
            }
            hooks.push(hook);
        }
        let roster = Roster::new(hooks);
        let handlers = roster.hooks().iter().filter_map(|hook| handlers.remove(&hook.name)).collect();
        Ok(Self { roster: Arc::new(roster), handlers })
    }

    /// The hooks, without what runs them.
    pub fn roster(&self) -> &Arc<Roster> {
        &self.roster
    }

    /// What runs the hook with the number `i` of the roster.
    pub fn handler(&self, i: usize) -> &Arc<dyn Handler> {
        &self.handlers[i]
    }

    /// What runs the hook called `name`.
    pub fn handler_of(&self, name: &HookName) -> Option<&Arc<dyn Handler>> {
        let i = self.roster.hooks().iter().position(|hook| hook.name == *name)?;
        self.handlers.get(i)
    }

    pub(crate) fn handlers(&self) -> &[Arc<dyn Handler>] {
        &self.handlers
    }
}

/// Runs nothing: stands for hooks that are disabled, untrusted or broken, which are never asked.
pub struct Absent;

impl Handler for Absent {
    fn ask<'a>(&'a self, _call: Call<'a>) -> BoxFuture<'a, Result<Reply, Fault>> {
        Box::pin(async { Err(Fault::Unavailable { detail: "nothing runs it".into() }) })
    }

    fn tell(&self, _notice: &Arc<Notice>) -> bool {
        false
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
