//! Where persons are asked: a question is parked in the store first, then put to whoever is there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::approval::{
    Approval, ApprovalMode, ApprovalStanding, ApprovalState, CallHandling, HooksDecision, PersonAnswer, handling,
};
use domain::clearing::ApprovalQuestion;
use domain::identity::Identity;
use domain::store::{ApprovalQuery, ApprovalStore, StoreError};
use tokio_util::sync::CancellationToken;

/// How often the store is looked at for an answer from elsewhere: quick enough for a person who just gave it, too
/// seldom to be felt by the disk.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Says what time it is.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> jiff::Timestamp;
}

/// The clock of the machine.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }
}

/// Puts a question to a person who is there.
#[async_trait]
pub trait Asker: Send + Sync {
    /// What they say; `None` when they do not want to say now: others may still answer. Dropped when somebody else
    /// was faster.
    async fn ask(&self, approval: &Approval) -> Option<PersonAnswer>;
}

/// Where persons are asked, for the turns of one kind.
#[derive(Clone)]
pub struct Approvals {
    store: Arc<dyn ApprovalStore>,
    clock: Arc<dyn Clock>,
    mode: ApprovalMode,
    asker: Option<Arc<dyn Asker>>,
}

/// What a person has to do with a call of a turn that was left open.
#[derive(Clone, Debug, PartialEq)]
pub enum OpenQuestion {
    /// It may not run, in words for the model.
    No(String),
    /// Nobody has answered.
    Waiting(Box<Approval>),
}

/// The refusal of a call that nobody approved in time.
const TOO_LATE: &str = "Tool execution was not approved in time";

/// What came of a question.
pub(crate) enum QuestionResult {
    /// A person approved exactly this call; the approval is used up.
    Yes {
        /// Which approval.
        id: String,
    },
    /// It does not run, in words for the model.
    No(String),
    /// Nobody has answered; the question stays in the store.
    Later(Box<Approval>),
}

impl Approvals {
    /// Questions that are kept in `store` and asked as `mode` has it.
    pub fn new(store: Arc<dyn ApprovalStore>, mode: ApprovalMode) -> Self {
        Self { store, clock: Arc::new(SystemClock), mode, asker: None }
    }

    /// Questions of a host with a loop of its own: `asker` puts them to a person if one is there; without one, calls are
    /// parked.
    pub fn for_host(store: Arc<dyn ApprovalStore>, asker: Option<Arc<dyn Asker>>) -> Self {
        let mode = if asker.is_some() { ApprovalMode::Chat } else { ApprovalMode::Run };
        Self { asker, ..Self::new(store, mode) }
    }

    /// Sets the person who is there.
    #[must_use]
    pub fn with_asker(self, asker: Arc<dyn Asker>) -> Self {
        Self { asker: Some(asker), ..self }
    }

    /// Sets the clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// These questions for turns of sub-agents: where nobody is there to ask, a call is refused, not parked.
    #[must_use]
    pub fn for_subagents(&self) -> Self {
        Self { mode: ApprovalMode::Subagent, ..self.clone() }
    }

    /// Where the questions are.
    pub fn store(&self) -> &Arc<dyn ApprovalStore> {
        &self.store
    }

    /// The questions about calls of a turn that was left open, by digest: a no stays a no, and a question stays open,
    /// also when nobody asks it any more.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn unsettled(&self, who: &Identity) -> Result<BTreeMap<String, OpenQuestion>, StoreError> {
        // All of them, however old: a no that is not found would be a yes.
        let all = ApprovalQuery { tenant: Some(who.tenant_id.clone()), ..ApprovalQuery::newest(usize::MAX) };
        let questions = self.on_store(move |store| store.approvals(&all)).await?;
        let now = self.clock.now();
        let ours = |it: &Approval| {
            (&it.tenant_id, &it.session_id, &it.turn_id) == (&who.tenant_id, &who.session_id, &who.turn_id)
        };
        let unsettled = |it: Approval| {
            let no = |text: &str| OpenQuestion::No(format!("{text} (asked by hook \"{}\")", it.by));
            let how = match it.state_at(now) {
                ApprovalState::Refused => no(&refused(&it.note)),
                ApprovalState::Expired => no(TOO_LATE),
                ApprovalState::Waiting => OpenQuestion::Waiting(Box::new(it.clone())),
                ApprovalState::Approved | ApprovalState::Used | ApprovalState::Void => return None,
            };
            Some((it.digest, how))
        };
        Ok(questions.into_iter().filter(ours).filter_map(unsettled).collect())
    }

    /// Brings a question as far as it goes now.
    pub(crate) async fn put(
        &self,
        who: &Identity,
        question: ApprovalQuestion<'_>,
        cancel: &CancellationToken,
    ) -> QuestionResult {
        let how = handling(HooksDecision::Ask, self.mode, self.asker.is_some());
        if how == CallHandling::Refused {
            return QuestionResult::No(nobody_to_ask(question.why.as_str()));
        }
        match self.brought(who, question, how, cancel).await {
            Ok(told) => told,
            Err(error) => {
                // Only the log has the detail: it may name a path of the user's.
                tracing::error!("a question for a person cannot be kept: {error}");
                QuestionResult::No(
                    "Tool execution needs a person's approval, and the question could not be kept".into(),
                )
            }
        }
    }

    async fn brought(
        &self,
        who: &Identity,
        question: ApprovalQuestion<'_>,
        how: CallHandling,
        cancel: &CancellationToken,
    ) -> Result<QuestionResult, StoreError> {
        loop {
            let now = self.clock.now();
            let id = uuid::Uuid::now_v7().to_string();
            let asked = Approval::question(id, who, question, now);
            let standing = self.on_store(move |store| store.ask(asked, now)).await?;
            let waiting = match standing {
                ApprovalStanding::Approved { id } => {
                    let used = id.clone();
                    match self.on_store(move |store| store.use_up(&used, now)).await {
                        Ok(()) => return Ok(QuestionResult::Yes { id }),
                        // It was used, or ran out, between the two.
                        Err(StoreError::Conflict(_)) => continue,
                        Err(error) => return Err(error),
                    }
                }
                ApprovalStanding::Refused { note } => return Ok(QuestionResult::No(refused(&note))),
                ApprovalStanding::Expired => return Ok(QuestionResult::No(TOO_LATE.into())),
                ApprovalStanding::Waiting(waiting) => waiting,
            };
            if how != CallHandling::Parked && self.wait(&waiting, how, cancel).await? {
                continue;
            }
            if self.mode == ApprovalMode::Subagent && !cancel.is_cancelled() {
                // Whoever is there does not want to say now, and a sub-agent cannot wait for later.
                return Ok(QuestionResult::No(nobody_to_ask(&waiting.reason)));
            }
            return Ok(QuestionResult::Later(waiting));
        }
    }

    /// Waits until there may be an answer. `false`: nobody wants to answer here, or the turn is ending.
    async fn wait(
        &self,
        waiting: &Approval,
        how: CallHandling,
        cancel: &CancellationToken,
    ) -> Result<bool, StoreError> {
        let here = async {
            match self.asker.as_ref().filter(|_| how == CallHandling::AskedHere) {
                Some(asker) => asker.ask(waiting).await,
                None => std::future::pending().await,
            }
        };
        let said = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(false),
            said = here => said,
            answered = self.answered_elsewhere(&waiting.id) => return answered.map(|()| true),
        };
        let Some(said) = said else { return Ok(false) };
        let (id, now) = (waiting.id.clone(), self.clock.now());
        match self.on_store(move |store| store.answer(&id, said, now)).await {
            // Somebody else was faster: what they said counts.
            Ok(_) | Err(StoreError::Conflict(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn answered_elsewhere(&self, id: &str) -> Result<(), StoreError> {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let (id, now) = (id.to_owned(), self.clock.now());
            let found = self.on_store(move |store| store.approval(&id)).await?;
            if found.is_none_or(|it| it.state_at(now) != ApprovalState::Waiting) {
                return Ok(());
            }
        }
    }

    async fn on_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn ApprovalStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.store.clone();
        match tokio::task::spawn_blocking(move || work(&*store)).await {
            Ok(done) => done,
            Err(error) => Err(StoreError::Unavailable(format!("it failed: {error}"))),
        }
    }
}

fn refused(note: &str) -> String {
    let note = if note.is_empty() { String::new() } else { format!(": {note}") };
    format!("Tool execution refused by a person{note}")
}

/// An ask is never weakened: where nobody can be asked, it refuses.
pub(crate) fn nobody_to_ask(why: &str) -> String {
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    format!("Tool execution needs a person's approval, and nobody can be asked here{why}")
}
