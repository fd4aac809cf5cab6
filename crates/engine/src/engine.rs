//! The hooks of one host: mounted, replaced whole, closed.

use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::hook::{Family, Hook, HookState, OBSERVER_TIMEOUT, Scope, Stage, Stages};
use pintle_domain::id::HookName;
use pintle_domain::identity::Identity;
use pintle_domain::matcher::{Matcher, RespondTools};
use pintle_domain::store::RecordStore;
use tokio_util::task::TaskTracker;

use crate::deadlines::Deadlines;
use crate::dispatcher::Dispatcher;
use crate::evidence::{Evidence, Watcher};
use crate::handler::Handler;
use crate::hook_set::{DuplicateName, Mount, Mounted, NullHandler, unique};
use crate::live_rules::{CurrentSet, LiveRules};
use crate::native::{NativeHandler, NativeHook};

/// The hooks of one host, and the evidence of what they did.
pub struct Engine {
    configured: RwLock<Arc<[Mounted]>>,
    /// Every handler that was put in force and that somebody still holds: a turn keeps those that it began with.
    mounts: Mutex<Vec<Weak<dyn Handler>>>,
    live: Arc<LiveRules>,
    evidence: Arc<Evidence>,
    tasks: TaskTracker,
    deadlines: Deadlines,
}

impl Engine {
    /// An engine without hooks whose records go to `store`, and to `watchers` as things happen.
    pub fn new(store: Arc<dyn RecordStore>, watchers: Vec<Arc<dyn Watcher>>) -> Self {
        Self::keeping(Evidence::new(store, watchers, Deadlines::default()))
    }

    /// An engine without hooks whose records are `evidence`.
    pub fn keeping(evidence: Evidence) -> Self {
        Self {
            configured: RwLock::new(Arc::from(Vec::new())),
            mounts: Mutex::default(),
            live: Arc::default(),
            deadlines: evidence.deadlines().clone(),
            evidence: Arc::new(evidence),
            tasks: TaskTracker::new(),
        }
    }

    /// Owns the tasks of handlers; [`Engine::close`] joins them.
    pub fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// The timer that handlers share.
    pub fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    /// The record of what hooks did.
    pub fn evidence(&self) -> &Arc<Evidence> {
        &self.evidence
    }

    /// Prepares a native hook for [`Engine::replace`].
    pub fn native(&self, name: &str, priority: i32, hook: Arc<dyn NativeHook>) -> Mount {
        let mut stages = Stages::default();
        for kind in hook.stages() {
            stages.set(kind, Stage::default_at(kind));
        }
        let mounted = Hook {
            name: HookName::from(name),
            family: Family::Native,
            origin: "code".into(),
            priority,
            state: HookState::Armed,
            matcher: None,
            respond: RespondTools::Any,
            events: None,
            scope: Scope::Everyone,
            media_dir: None,
            stages,
            stored: None,
        };
        Mount { hook: mounted, handler: NativeHandler::new(hook, OBSERVER_TIMEOUT, &self.tasks) }
    }

    /// Puts `mounts` in force, all at once. Turns in progress keep what they began with;
    /// handlers that nobody holds any more close themselves.
    ///
    /// # Errors
    /// Two of them have one name; the old set stays in force.
    pub fn replace(&self, mounts: Vec<Mount>) -> Result<(), DuplicateName> {
        let mounted = unique(mounts)?;
        mounted.iter().for_each(|mounted| self.remember(mounted));
        *self.configured.write().unwrap_or_else(PoisonError::into_inner) = mounted.into();
        self.live.forget_sets();
        Ok(())
    }

    /// Puts one more hook in force, for turns that begin from now on.
    ///
    /// # Errors
    /// Its name is taken; nothing changes then.
    pub fn add(&self, mount: Mount) -> Result<(), DuplicateName> {
        let mut configured = self.configured.write().unwrap_or_else(PoisonError::into_inner);
        if configured.iter().any(|other| other.hook.name == mount.hook.name) {
            return Err(DuplicateName(mount.hook.name.clone()));
        }
        let more = Mounted::from(mount);
        self.remember(&more);
        *configured = configured.iter().cloned().chain([more]).collect();
        drop(configured);
        self.live.forget_sets();
        Ok(())
    }

    /// Keeps sight of a handler for [`Engine::close_within`]; those that nobody holds any more are forgotten.
    fn remember(&self, mounted: &Mounted) {
        let mut mounts = self.mounts.lock().unwrap_or_else(PoisonError::into_inner);
        mounts.retain(|handler| handler.strong_count() > 0);
        mounts.push(Arc::downgrade(&mounted.handler));
    }

    /// The rules of stores, which hold for turns in progress, too.
    pub fn live(&self) -> &Arc<LiveRules> {
        &self.live
    }

    /// The hooks that are in force now for a turn of `who`: those of the configuration, and the rules of its tenant.
    pub fn dispatcher(&self, who: Identity) -> Dispatcher {
        let current = CurrentSet::new(self.configured(), who.tenant_id.clone(), self.live.clone());
        Dispatcher::new(Arc::new(current), self.evidence.clone(), who)
    }

    fn configured(&self) -> Arc<[Mounted]> {
        self.configured.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends every handler within its own bounds, and waits for their tasks.
    pub async fn close(&self) {
        let rules = self.live.rules();
        let stored = rules.tenants.values().flat_map(|mounted| mounted.iter()).chain(rules.others.iter());
        let mut handlers: Vec<Arc<dyn Handler>> = stored.map(|mounted| mounted.handler.clone()).collect();
        let mounts = std::mem::take(&mut *self.mounts.lock().unwrap_or_else(PoisonError::into_inner));
        // Also those that were replaced, and that a turn still holds.
        handlers.extend(mounts.iter().filter_map(Weak::upgrade));
        futures_util::future::join_all(handlers.iter().map(|handler| handler.close())).await;
        self.tasks.close();
        self.tasks.wait().await;
        self.deadlines.close().await;
    }

    /// Closes the engine like [`Engine::close`], but no longer than `limit`. Says how many tasks are left then.
    pub async fn close_within(&self, limit: Duration) -> usize {
        // What is left says more than that time was up.
        drop(tokio::time::timeout(limit, self.close()).await);
        self.tasks.len()
    }
}

impl Mount {
    /// A hook that is never asked: disabled, untrusted or broken.
    pub fn idle(hook: Hook) -> Self {
        Self { hook, handler: Arc::new(NullHandler) }
    }

    /// Limits the tool stages to tools that `pattern` matches.
    ///
    /// # Errors
    /// What is wrong with the pattern.
    pub fn matching(mut self, pattern: &str) -> Result<Self, String> {
        self.hook.matcher = Some(Matcher::compile(pattern)?);
        Ok(self)
    }

    /// Sets how long each answer may take.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        let kinds: Vec<CheckpointKind> = self.hook.stages.kinds().collect();
        for kind in kinds {
            self.hook.stages.set(kind, Stage { timeout, ..Stage::default_at(kind) });
        }
        self
    }
}
