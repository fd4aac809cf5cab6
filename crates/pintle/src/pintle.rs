//! The hooks of one program.

use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::TenantId;
use pintle_domain::store::StoreError;
use pintle_engine::{Engine, Mount};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::approvals::{Ui, asking};
use crate::host::Host;
#[cfg(feature = "rules")]
use crate::rules_in_force::RulesInForce;
use crate::stage::{HookAt, Observer, Stage, observing};
use crate::stores::Stores;
use crate::tenant::{Tenant, UnknownTenant};

/// The hooks of one program, and what they need: stores, tenants, a person to ask. Clones share it.
#[derive(Clone)]
pub struct Pintle(pub(crate) Arc<Host>);

/// A host cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Nothing runs tasks here.
    #[error("there is no tokio runtime here: open it in `#[tokio::main]` or inside `Runtime::block_on`")]
    NoRuntime,
    /// The runtime keeps no time.
    #[error("the tokio runtime keeps no time: build it with `Builder::enable_all`")]
    NoTimers,
    /// The rules of its store cannot be read.
    #[error("the rules of the store cannot be read: {0}")]
    Rules(String),
    /// A tool without a name, or named twice.
    #[error("the tool `{0}` is named twice or has an empty name")]
    BadTool(String),
}

/// A hook cannot act as it was added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// Another hook has the name.
    #[error("hook \"{0}\" is there already: give this one another name")]
    Taken(String),
    /// The host is closed.
    #[error("hook \"{0}\": this host is closed")]
    Closed(String),
    /// The pattern is none.
    #[error("hook \"{hook}\": tools: {why}")]
    Pattern {
        /// The hook.
        hook: String,
        /// The problem.
        why: String,
    },
    /// The pattern matches no tool of this host, so the hook would never be asked.
    #[error("hook \"{hook}\": tools: `{pattern}` matches none of this host's tools ({tools})")]
    MatchesNothing {
        /// The hook.
        hook: String,
        /// The pattern.
        pattern: String,
        /// The tools, comma-separated.
        tools: String,
    },
    /// A pattern for tools at a checkpoint that is not about tools.
    #[error("hook \"{hook}\": `{checkpoint}` is not about tools: leave `tools` empty")]
    NotAboutTools {
        /// The hook.
        hook: String,
        /// Where it acts.
        checkpoint: &'static str,
    },
    /// The entry of a process hook is wrong.
    #[error("{0}")]
    Entry(String),
    /// The program of a process hook did not come up.
    #[error("hook \"{hook}\" {why}")]
    NotUp {
        /// The hook.
        hook: String,
        /// The reason.
        why: String,
    },
}

/// The work that was still under way when a host was closed, and was left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "what is left may still act"]
pub struct Left {
    /// Tasks of hooks, children and what looks after rules that did not end in time.
    pub tasks: usize,
    /// Calls whose hooks or tools did not end in time.
    pub calls: usize,
    /// Records that the store could not take.
    pub lost_records: u64,
}

impl Pintle {
    /// A host without hooks that has these tools, and keeps what it must in `stores`. If rules are kept there, they are in
    /// force, and stay so as they change; reading them blocks.
    ///
    /// # Errors
    /// There is no runtime, or none that keeps time; a tool is named twice; or rules cannot be read.
    pub fn open(stores: impl Into<Stores>, tools: &[&str]) -> Result<Self, OpenError> {
        if Handle::try_current().is_err() {
            return Err(OpenError::NoRuntime);
        }
        // Tokio says it in no other way.
        if catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).is_err() {
            return Err(OpenError::NoTimers);
        }
        let mut named = BTreeSet::new();
        for tool in tools {
            if tool.is_empty() || !named.insert((*tool).to_owned()) {
                return Err(OpenError::BadTool((*tool).to_owned()));
            }
        }
        let stores = stores.into();
        let engine = Engine::new(stores.records.clone(), Vec::new());
        let closing = CancellationToken::new();
        #[cfg(feature = "rules")]
        let rules = match &stores.rules {
            Some(source) => Some(
                RulesInForce::open(source, &engine, &closing).map_err(|error| OpenError::Rules(error.to_string()))?,
            ),
            None => None,
        };
        Ok(Self(Arc::new(Host {
            engine,
            stores,
            tools: Arc::new(named),
            tenants: RwLock::new(BTreeSet::from([TenantId::default_tenant()])),
            ui: RwLock::default(),
            answered: Notify::new(),
            #[cfg(feature = "rules")]
            rules,
            calls: TaskTracker::new(),
            closing,
        })))
    }

    /// Adds a hook at the checkpoint `C`, for the tools that the regular expression `tools` matches; for all if it is
    /// empty. It is in force at once, for turns that begin from now on.
    ///
    /// # Errors
    /// It could not act: its name is taken, or no tool matches.
    pub fn hook<C: Stage>(&self, name: &str, tools: &str, hook: impl HookAt<C>) -> Result<(), AddError> {
        let about_tools = matches!(
            C::KIND,
            CheckpointKind::BeforeTool
                | CheckpointKind::PreToolUse
                | CheckpointKind::ApproveTool
                | CheckpointKind::AfterTool
        );
        if !about_tools && !tools.is_empty() {
            return Err(AddError::NotAboutTools { hook: name.to_owned(), checkpoint: C::KIND.name() });
        }
        let mount = self.0.engine.native(name, 0, C::native(hook));
        let mount = if tools.is_empty() { mount } else { self.matching(mount, name, tools)? };
        self.add(mount)
    }

    /// Adds an observer of everything that happens.
    ///
    /// # Errors
    /// Its name is taken.
    pub fn observer(&self, name: &str, observer: impl Observer) -> Result<(), AddError> {
        self.add(self.0.engine.native(name, 0, observing(observer)))
    }

    /// Sets who puts questions to a person here. It is asked only where the stores have a place for questions: without
    /// such a place every ask refuses; with a place and nobody to ask, the call is parked.
    pub fn ui(&self, ui: impl Ui) {
        *self.0.ui.write().unwrap_or_else(PoisonError::into_inner) = Some(asking(ui));
    }

    /// Makes a tenant known, if it is not; where rules are kept in a store it is written there, which blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    pub fn add_tenant(&self, name: &str) -> Result<Tenant, StoreError> {
        Ok(Tenant::new(self.0.clone(), self.0.add_tenant(name)?))
    }

    /// The handle of the tenant called `name`. The tenant `default` is always there.
    ///
    /// # Errors
    /// It was not added.
    pub fn tenant(&self, name: &str) -> Result<Tenant, UnknownTenant> {
        let known = self.0.tenant(name);
        known.map(|id| Tenant::new(self.0.clone(), id)).ok_or_else(|| UnknownTenant(name.to_owned()))
    }

    /// Cancels every turn, ends every hook within its own bounds, and waits for calls and hooks, at most `within`. Calls
    /// that are made afterwards do not run. Where [`Left::tasks`] is 0 every child has ended, also those of turns that
    /// somebody still holds; allow 5 seconds where there are children.
    pub async fn close(&self, within: Duration) -> Left {
        self.0.stop();
        let calls = tokio::time::timeout(within, self.0.calls.wait());
        let (tasks, _in_time) = tokio::join!(self.0.engine.close_within(within), calls);
        Left { tasks, calls: self.0.calls.len(), lost_records: self.0.lost() }
    }

    /// Puts `mount` in force.
    pub(crate) fn add(&self, mount: Mount) -> Result<(), AddError> {
        if self.0.closing.is_cancelled() {
            return Err(AddError::Closed(mount.hook.name.to_string()));
        }
        self.0.engine.add(mount).map_err(|taken| AddError::Taken(taken.0.to_string()))
    }

    /// Limits `mount` to the tools that `pattern` matches, of which there must be one.
    fn matching(&self, mount: Mount, name: &str, pattern: &str) -> Result<Mount, AddError> {
        let bad = |why: String| AddError::Pattern { hook: name.to_owned(), why };
        let mount = mount.matching(pattern).map_err(bad)?;
        self.meets_a_tool(&mount)?;
        Ok(mount)
    }

    /// Refuses a hook whose pattern matches none of the tools: it would never be asked.
    pub(crate) fn meets_a_tool(&self, mount: &Mount) -> Result<(), AddError> {
        let Some(matcher) = &mount.hook.matcher else { return Ok(()) };
        if self.0.tools.iter().any(|tool| matcher.is_match(tool)) {
            return Ok(());
        }
        Err(AddError::MatchesNothing {
            hook: mount.hook.name.to_string(),
            pattern: matcher.pattern().to_owned(),
            tools: self.0.tools.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
        })
    }
}
