//! Steers a turn from outside while it is worked.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pintle_domain::ruling::Aborted;
use pintle_domain::store::Steerer;
use pintle_domain::turn::WaitingMessage;
use tokio_util::sync::CancellationToken;

/// How many messages wait for the next poll: what a person types in a long minute. More are refused.
const MAX_WAITING: usize = 64;

/// The handle of a turn: messages for it, and ways to end it. Clones steer the same turn.
#[derive(Clone, Debug)]
pub struct TurnHandle {
    cancel: CancellationToken,
    /// Stops not only the turn that is worked now, but whatever is worked with this handle.
    whole: CancellationToken,
    orders: Arc<Mutex<Orders>>,
    /// The turn that this one works for, whose whole run ends when a hook says so.
    parent: Option<Arc<TurnHandle>>,
}

/// The orders since the turn looked last.
#[derive(Debug, Default)]
struct Orders {
    messages: VecDeque<Said>,
    results: VecDeque<WaitingMessage>,
    interrupt: bool,
    abort: Option<AbortedBy>,
    /// Set once the turn takes no more orders.
    over: bool,
}

/// A message that the turn has not heard.
#[derive(Debug)]
struct Said {
    text: String,
    by: Option<Steerer>,
    /// Nobody may hear it any more. It keeps its place: a gate may be ruling on it.
    is_taken_back: bool,
}

/// Who stopped the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AbortedBy {
    /// A person.
    Person,
    /// A hook, in this turn or in one that works for it.
    Hook(Box<Aborted>),
}

/// The input that a turn finds when it looks.
#[derive(Debug, Default)]
pub(crate) struct PolledInput {
    pub(crate) results: Vec<WaitingMessage>,
    pub(crate) interrupt: bool,
    pub(crate) abort: Option<AbortedBy>,
}

/// The turn does not take the message: it is over, or too many wait.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the turn takes no more messages")]
pub struct NotAccepted;

impl Default for TurnHandle {
    fn default() -> Self {
        Self::new(&CancellationToken::new())
    }
}

impl TurnHandle {
    /// A handle whose turn ends, too, when `cancel` is set; what it did so far stays.
    pub fn new(cancel: &CancellationToken) -> Self {
        // What stops this turn does not stop what its host may still want to do.
        let cancel = cancel.child_token();
        Self { whole: cancel.clone(), cancel, orders: Arc::default(), parent: None }
    }

    /// The handle of a turn that works for this one.
    pub(crate) fn child(&self) -> Self {
        let cancel = self.cancel.child_token();
        Self { whole: cancel.clone(), cancel, orders: Arc::default(), parent: Some(Arc::new(self.clone())) }
    }

    /// This handle for one turn of several that are worked with it: that one can be stopped alone.
    pub(crate) fn for_one_turn(&self) -> Self {
        self.orders().over = false;
        Self { cancel: self.whole.child_token(), ..self.clone() }
    }

    /// Says something to the turn: it goes through the gates and enters the conversation at the next poll.
    ///
    /// # Errors
    /// The turn is over, or too much waits already.
    pub fn steer(&self, text: impl Into<String>) -> Result<(), NotAccepted> {
        self.say(text.into(), None)
    }

    /// The same, said by somebody whose message can be [taken back](TurnHandle::take_back).
    ///
    /// # Errors
    /// The turn is over, or too much waits already.
    pub fn steer_by(&self, text: impl Into<String>, by: Steerer) -> Result<(), NotAccepted> {
        self.say(text.into(), Some(by))
    }

    fn say(&self, text: String, by: Option<Steerer>) -> Result<(), NotAccepted> {
        let mut orders = self.orders();
        if orders.over || orders.messages.len() >= MAX_WAITING {
            return Err(NotAccepted);
        }
        orders.messages.push_back(Said { text, by, is_taken_back: false });
        Ok(())
    }

    /// Those who said what the turn has not heard yet.
    pub fn steerers(&self) -> BTreeSet<Steerer> {
        let orders = self.orders();
        orders.messages.iter().filter(|said| !said.is_taken_back).filter_map(|said| said.by.clone()).collect()
    }

    /// What `by` said and the turn has not heard yet, it does not hear.
    pub fn take_back(&self, by: &Steerer) {
        let mut orders = self.orders();
        let of_them = orders.messages.iter_mut().filter(|said| said.by.as_ref() == Some(by));
        of_them.for_each(|said| said.is_taken_back = true);
    }

    /// Asks the turn to come to an end: calls in flight are finished, and one more model call without tools sums up.
    pub fn interrupt(&self) {
        self.orders().interrupt = true;
    }

    /// Stops the whole run at once; the conversation goes back to where the turn began.
    pub fn abort(&self) {
        self.abort_by(AbortedBy::Person);
    }

    /// Stops the turn at once; what it did so far stays in the conversation.
    pub fn cancel(&self) {
        self.whole.cancel();
    }

    /// Waits until the turn is to stop at once.
    pub async fn stopped(&self) {
        self.whole.cancelled().await;
    }

    /// Set when the turn is to stop at once.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Stops the run of the turn at the top, and with it every turn below.
    pub(crate) fn abort_by(&self, by: AbortedBy) {
        let mut top = self;
        while let Some(parent) = &top.parent {
            top = parent;
        }
        top.orders().abort.get_or_insert(by);
        top.whole.cancel();
    }

    /// Hands over what a sub-agent brought; it comes back if the turn is over.
    pub(crate) fn deliver(&self, result: WaitingMessage) -> Option<WaitingMessage> {
        let mut orders = self.orders();
        if orders.over {
            return Some(result);
        }
        orders.results.push_back(result);
        None
    }

    /// The oldest message that the turn has not heard. It stays until [`TurnHandle::heard`]: a turn that is dropped
    /// while its gates rule on it has not lost it.
    pub(crate) fn message(&self) -> Option<String> {
        let mut orders = self.orders();
        while orders.messages.front().is_some_and(|said| said.is_taken_back) {
            orders.messages.pop_front();
        }
        orders.messages.front().map(|said| said.text.clone())
    }

    /// Whether the oldest message was taken back since somebody asked for it.
    pub(crate) fn is_taken_back(&self) -> bool {
        self.orders().messages.front().is_some_and(|said| said.is_taken_back)
    }

    /// The turn has heard the oldest message.
    pub(crate) fn heard(&self) {
        self.orders().messages.pop_front();
    }

    /// Takes what was ordered, but for messages.
    pub(crate) fn look(&self) -> PolledInput {
        let mut orders = self.orders();
        PolledInput {
            results: orders.results.drain(..).collect(),
            interrupt: std::mem::take(&mut orders.interrupt),
            abort: orders.abort.take(),
        }
    }

    /// The turn takes no more orders; what came in last is handed out. Messages still wait to be heard.
    pub(crate) fn close(&self) -> PolledInput {
        self.orders().over = true;
        self.look()
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
