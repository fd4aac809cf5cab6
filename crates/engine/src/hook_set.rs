//! The hooks in force with what runs each of them: immutable, replaced whole.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_domain::account::HandlerAnswer;
use pintle_domain::checkpoint::Notice;
use pintle_domain::fault::Fault;
use pintle_domain::hook::Hook;
use pintle_domain::id::HookName;
use pintle_domain::roster::{Roster, running_order};

use crate::handler::{Handler, HookCall, NoticeViews};

/// A hook and what runs it.
pub struct Mount {
    /// The hook.
    pub hook: Hook,
    /// The handler that runs it; [`NullHandler`] for hooks that are never asked.
    pub handler: Arc<dyn Handler>,
}

/// A hook that is mounted, with what runs it.
#[derive(Clone)]
pub struct Mounted {
    /// The hook.
    pub hook: Arc<Hook>,
    /// The handler that runs it.
    pub handler: Arc<dyn Handler>,
}

impl From<Mount> for Mounted {
    fn from(mount: Mount) -> Self {
        Self { hook: Arc::new(mount.hook), handler: mount.handler }
    }
}

/// The hooks in force at one moment, with what runs each of them.
#[derive(Default)]
pub struct HookSet {
    roster: Arc<Roster>,
    handlers: Vec<Arc<dyn Handler>>,
}

/// Two hooks have one name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("duplicate hook name \"{0}\"")]
pub struct DuplicateName(pub HookName);

impl HookSet {
    /// Puts `mounts` in running order.
    ///
    /// # Errors
    /// Two of them have one name.
    pub fn new(mounts: Vec<Mount>) -> Result<Self, DuplicateName> {
        let mounted = unique(mounts)?;
        Ok(Self::of(mounted.iter()))
    }

    /// Puts hooks in running order that were told apart already.
    pub fn of<'a>(mounted: impl Iterator<Item = &'a Mounted>) -> Self {
        let mut mounted: Vec<&Mounted> = mounted.collect();
        mounted.sort_by(|a, b| running_order(&a.hook, &b.hook));
        let handlers = mounted.iter().map(|mounted| mounted.handler.clone()).collect();
        // In this order already, so the numbers of the roster are places among the handlers.
        let roster = Roster::of(mounted.into_iter().map(|mounted| mounted.hook.clone()).collect());
        Self { roster: Arc::new(roster), handlers }
    }

    /// The hooks, without what runs them.
    pub fn roster(&self) -> &Arc<Roster> {
        &self.roster
    }

    /// The handler that runs the hook with the number `i` of the roster.
    pub fn handler(&self, i: usize) -> &Arc<dyn Handler> {
        &self.handlers[i]
    }

    /// The handler that runs the hook called `name`.
    pub fn handler_of(&self, name: &HookName) -> Option<&Arc<dyn Handler>> {
        let i = self.roster.hooks().iter().position(|hook| hook.name == *name)?;
        self.handlers.get(i)
    }
}

/// The hooks of a configuration, each with a name of its own.
///
/// # Errors
/// Two of them have one name.
pub(crate) fn unique(mounts: Vec<Mount>) -> Result<Vec<Mounted>, DuplicateName> {
    let mut names = BTreeSet::new();
    for mount in &mounts {
        if !names.insert(mount.hook.name.clone()) {
            return Err(DuplicateName(mount.hook.name.clone()));
        }
    }
    Ok(mounts.into_iter().map(Mounted::from).collect())
}

/// Runs nothing: stands for hooks that are disabled, untrusted or broken, which are never asked.
pub struct NullHandler;

impl Handler for NullHandler {
    fn ask<'a>(&'a self, _call: HookCall<'a>) -> BoxFuture<'a, HandlerAnswer> {
        Box::pin(async { Err(Fault::Unavailable { cause: "nothing runs it".into() }).into() })
    }

    fn tell(&self, _notice: &Arc<Notice>, _views: &NoticeViews) -> bool {
        false
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
