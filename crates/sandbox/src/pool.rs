//! The children that run scripts, and who is served when.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pintle_domain::checkpoint::Duty;
use pintle_domain::json;
use pintle_domain::json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use crate::child::{Child, Launcher, Living};
use crate::fault::{CompileError, ScriptFault};
use crate::frame::{Reply, ReplyBody, Request};
use crate::limits;
use crate::slots::DutySlots;

/// Runs scripts in children of the host. Clones share the children and the slots.
///
/// Children are started when they are first needed; after that one more than runs is kept ready, so that killing one
/// costs the next caller nothing. All of them end with the last clone.
#[derive(Debug, Clone)]
pub struct Sandbox(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    launcher: Launcher,
    idle: Mutex<VecDeque<Child>>,
    living: Living,
    slots: DutySlots,
    checks: Semaphore,
}

/// One run of a script.
#[derive(Debug, Clone, Copy)]
pub struct ScriptRun<'a> {
    /// Whose slots it takes.
    pub tenant: &'a str,
    /// Whether somebody waits for it: observers have slots of their own, and begin behind the gates that wait.
    pub duty: Duty,
    /// The text of the script.
    pub source: &'a str,
    /// The event as JSON; the script sees it deeply frozen.
    pub event: &'a str,
    /// What the script has, from when it has its slot.
    pub timeout: Duration,
    /// What the caller has in all, waiting for the slot included. It cuts the script's own time short.
    pub budget: Duration,
}

/// What a run gave.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptOutput {
    /// The plain object that `handle` returned, or why there is none. Nothing of what it says is checked here.
    pub returned: Result<json::Object, ScriptFault>,
    /// What the script wrote to its console: lines that begin with `log:` or `error:`. Empty after a timeout.
    pub log: String,
    /// How long it waited for its slot, which is not part of its own time.
    pub waited: Duration,
}

impl From<ScriptFault> for ScriptOutput {
    fn from(fault: ScriptFault) -> Self {
        Self { returned: Err(fault), log: String::new(), waited: Duration::ZERO }
    }
}

impl Sandbox {
    /// A sandbox with the usual slots. Starts nothing yet.
    #[must_use]
    pub fn new(launcher: Launcher) -> Self {
        Self(Arc::new(Shared {
            launcher,
            idle: Mutex::default(),
            living: Living::default(),
            slots: DutySlots::usual(),
            checks: Semaphore::new(limits::COMPILE_SLOTS),
        }))
    }

    /// Runs a script once. Dropping the future kills the child that works on it, and frees the slot.
    pub async fn run(&self, call: ScriptRun<'_>) -> ScriptOutput {
        let started = Instant::now();
        if call.event.len() > limits::EVENT_BYTES {
            return ScriptFault::EventTooLarge { bytes: call.event.len() }.into();
        }
        // Who waits for a gate has its whole time; an observer gives up while there is time left for its script.
        let patience = match call.duty {
            Duty::Observer => call.budget.saturating_sub(call.timeout),
            Duty::Gate | Duty::Rewriter | Duty::Approver | Duty::Injector => call.budget,
        };
        let slot = timeout(patience, self.0.slots.take(call.duty, call.tenant)).await;
        let waited = started.elapsed();
        let left = call.budget.saturating_sub(waited);
        let (Ok(_slot), true) = (slot, left >= limits::LEAST_TIME) else {
            let waited = waited.min(patience);
            return ScriptOutput { waited, ..ScriptFault::NoSlot { waited_ms: millis(patience) }.into() };
        };
        let waited = if waited < limits::LEAST_TIME { Duration::ZERO } else { waited };
        match self.ask(call.source, Some(call.event), call.timeout.min(left)).await {
            Ok(reply) => ScriptOutput { returned: object(reply.said), log: reply.console, waited },
            Err(fault) => ScriptOutput { waited, ..fault.into() },
        }
    }

    /// Says whether a script can be used: whether it parses, and defines `handle` when it is loaded.
    ///
    /// # Errors
    /// Where it does not parse, or why it cannot be loaded, or checked at all.
    pub async fn compile(&self, source: &str) -> Result<(), CompileError> {
        let _place = self.0.checks.acquire().await.map_err(|error| ScriptFault::Engine(error.to_string()))?;
        let said = self.ask(source, None, limits::COMPILE_TIME).await?.said;
        Ok(said.checked()?)
    }

    /// Has a child ready, so that the first run need not wait for one. Needs a runtime with IO.
    ///
    /// # Errors
    /// Why no child can be started.
    pub fn warm(&self) -> Result<(), ScriptFault> {
        if self.idle().is_empty() {
            let child = self.start()?;
            self.idle().push_back(child);
        }
        Ok(())
    }

    /// The process ids of its children.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.0.living.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn ask(&self, source: &str, event: Option<&str>, allowed: Duration) -> Result<Reply, ScriptFault> {
        let deadline = Instant::now() + allowed;
        if source.len() > limits::SOURCE_BYTES {
            return Err(ScriptFault::SourceTooLarge { bytes: source.len() });
        }
        let orphan_s = u32::try_from(allowed.as_secs() + limits::ORPHAN_S).unwrap_or(u32::MAX);
        let request = Request { orphan_s, source, event }.encode();
        let mut child = self.take()?;
        // At the deadline the child is dropped, which kills it: nothing else stops every loop of the engine.
        let asked = timeout_at(deadline, self.exchange(&mut child, &request)).await;
        let reply = asked.map_err(|_late| ScriptFault::Timeout { after_ms: millis(allowed) })?;
        let reply = reply.map_err(ScriptFault::Ended)?;
        self.give_back(child, &reply.said);
        Ok(reply)
    }

    async fn exchange(&self, child: &mut Child, request: &[u8]) -> Result<Reply, String> {
        child.ask(request).await?;
        // While the child works, so that this costs its caller nothing.
        if let Err(error) = self.warm() {
            tracing::debug!(%error, "no child is ready for the next script");
        }
        child.hear().await
    }

    /// The child that has rested longest, or a new one.
    fn take(&self) -> Result<Child, ScriptFault> {
        loop {
            let Some(mut child) = self.idle().pop_front() else { return self.start() };
            if child.lives() {
                return Ok(child);
            }
        }
    }

    /// Keeps a child for the next run, unless it has had its share of them or was driven to its limits.
    fn give_back(&self, child: Child, said: &ReplyBody) {
        let mut idle = self.idle();
        if said.is_usual() && child.answered < limits::CHILD_RUNS && idle.len() < limits::IDLE_CHILDREN {
            idle.push_back(child);
        }
    }

    fn start(&self) -> Result<Child, ScriptFault> {
        Child::start(&self.0.launcher, &self.0.living).map_err(ScriptFault::Engine)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, VecDeque<Child>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReplyBody {
    /// Whether the engine is as good as before.
    fn is_usual(&self) -> bool {
        match self {
            Self::Returned(_)
            | Self::Checked
            | Self::Syntax(_)
            | Self::NoHandle
            | Self::NotObject
            | Self::Threw(_)
            | Self::ReturnTooLarge(_) => true,
            Self::OutOfMemory | Self::TooDeep | Self::Unable(_) => false,
        }
    }

    fn checked(self) -> Result<(), ScriptFault> {
        match self {
            Self::Checked => Ok(()),
            Self::Returned(_) => Err(ScriptFault::Ended("it ran what it should have checked".into())),
            Self::Syntax(error) => Err(ScriptFault::Syntax(error)),
            Self::NoHandle => Err(ScriptFault::NoHandle),
            Self::NotObject => Err(ScriptFault::NotObject),
            Self::Threw(text) => Err(ScriptFault::Threw(text)),
            Self::OutOfMemory => Err(ScriptFault::OutOfMemory),
            Self::TooDeep => Err(ScriptFault::TooDeep),
            Self::ReturnTooLarge(bytes) => Err(ScriptFault::ReturnTooLarge { bytes }),
            Self::Unable(why) => Err(ScriptFault::Engine(why)),
        }
    }
}

/// The object that a run returned. The child is not believed that it is one.
fn object(said: ReplyBody) -> Result<json::Object, ScriptFault> {
    let ReplyBody::Returned(text) = said else {
        return Err(said.checked().err().unwrap_or_else(|| ScriptFault::Ended("it checked what it should run".into())));
    };
    match json::parse(&text).map_err(ScriptFault::Unreadable)? {
        Value::Object(object) => Ok(object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(ScriptFault::NotObject)
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
