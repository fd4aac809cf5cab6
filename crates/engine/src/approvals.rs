//! Where persons are asked: a question is parked in the store first, then put to whoever is there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pintle_domain::approval::{
    Approval, ApprovalFlaw, ApprovalMode, ApprovalStanding, ApprovalState, CallHandling, HooksDecision, PersonAnswer,
    handling, refusal,
};
use pintle_domain::clearing::ApprovalQuestion;
use pintle_domain::identity::Identity;
use pintle_domain::store::{ApprovalQuery, ApprovalStore, StoreError, TenantScope};
use pintle_domain::tool::CallPlace;
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
    /// It may run there, and nowhere else.
    There(CallPlace),
}

/// The refusal of a call that nobody approved in time.
const TOO_LATE: &str = "Tool execution was not approved in time";

/// The refusal of a call whose question the store did not take.
const NOT_KEPT: &str = "Tool execution needs a person's approval, and the question could not be kept";

/// Where a question stands.
pub(crate) enum QuestionResult {
    /// A person approved exactly this call; the approval is used up.
    Yes {
        /// Which approval.
        id: String,
    },
    /// It does not run, in words for the model.
    No(String),
    /// Nobody has answered; the question stays in the store.
    Waiting {
        /// The question.
        approval: Box<Approval>,
        /// Whether it was parked just now.
        is_new: bool,
    },
}

/// How the waiting for a person ended.
pub(crate) enum WaitEnd {
    /// Somebody said yes, or touched the question: what is left open about the call.
    Answered(Option<OpenQuestion>),
    /// Somebody said no, time is over, or nobody can say: in words for the model.
    Refused(String),
    /// Nobody wants to say here, or the turn is ending: the question stays in the store.
    Left,
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
        let all = ApprovalQuery::newest(TenantScope::from(&who.tenant_id), usize::MAX);
        let questions = self.on_store(move |store| store.approvals(&all)).await?;
        let now = self.clock.now();
        let ours = |it: &Approval| {
            (&it.tenant_id, &it.session_id, &it.turn_id) == (&who.tenant_id, &who.session_id, &who.turn_id)
        };
        Ok(questions.into_iter().filter(ours).filter_map(|it| Some((it.digest.clone(), left_open(it, now)?))).collect())
    }

    /// Looks where a question stands about a call that would run at `place`, and parks it where nobody was asked yet.
    /// Never waits for a person.
    pub(crate) async fn look(
        &self,
        who: &Identity,
        question: ApprovalQuestion<'_>,
        place: CallPlace,
        usable_seconds: Option<u32>,
    ) -> QuestionResult {
        if self.handling() == CallHandling::Refused {
            return QuestionResult::No(nobody_to_ask(question.why.as_str()));
        }
        self.stands(who, question, (place, usable_seconds))
            .await
            .unwrap_or_else(|error| QuestionResult::No(not_kept(&error)))
    }

    async fn stands(
        &self,
        who: &Identity,
        question: ApprovalQuestion<'_>,
        (place, usable_seconds): (CallPlace, Option<u32>),
    ) -> Result<QuestionResult, StoreError> {
        loop {
            let now = self.clock.now();
            let id = uuid::Uuid::now_v7().to_string();
            let asked = Approval::question(id.clone(), who, question, now).at(place.clone()).usable(usable_seconds);
            match self.on_store(move |store| store.ask(asked, now)).await? {
                ApprovalStanding::Approved { id } => {
                    let (tenant, used) = (who.tenant_id.clone(), id.clone());
                    match self.on_store(move |store| store.use_up(&tenant, &used, now)).await {
                        Ok(()) => return Ok(QuestionResult::Yes { id }),
                        // It was used, or ran out, between the two.
                        Err(StoreError::Conflict(_)) => {}
                        Err(error) => return Err(error),
                    }
                }
                ApprovalStanding::Refused { by, note } => {
                    return Ok(QuestionResult::No(refusal(by.as_deref(), &note)));
                }
                ApprovalStanding::Expired => return Ok(QuestionResult::No(TOO_LATE.into())),
                ApprovalStanding::Waiting(approval) => {
                    let is_new = approval.id == id;
                    return Ok(QuestionResult::Waiting { approval, is_new });
                }
            }
        }
    }

    fn handling(&self) -> CallHandling {
        handling(HooksDecision::Ask, self.mode, self.asker.is_some())
    }

    /// Whether a call waits for an answer while the program goes on.
    pub(crate) fn waits_here(&self) -> bool {
        self.handling() != CallHandling::Parked
    }

    /// Waits for the answer to `waiting`, as far as anybody waits here.
    pub(crate) async fn wait(&self, waiting: &Approval, cancel: &CancellationToken) -> WaitEnd {
        let how = self.handling();
        if how == CallHandling::Parked {
            return WaitEnd::Left;
        }
        let answered = match self.heard(waiting, how, cancel).await {
            Ok(answered) => answered,
            Err(error) => return WaitEnd::Refused(of_hook(&not_kept(&error), waiting)),
        };
        if !answered {
            // Whoever is there does not want to say now, and a sub-agent cannot wait for later.
            let cannot_wait = self.mode == ApprovalMode::Subagent && !cancel.is_cancelled();
            let nobody = || WaitEnd::Refused(of_hook(&nobody_to_ask(&waiting.reason), waiting));
            return if cannot_wait { nobody() } else { WaitEnd::Left };
        }
        let (of, id) = (TenantScope::from(&waiting.tenant_id), waiting.id.clone());
        match self.on_store(move |store| store.approval(&of, &id)).await {
            Ok(Some(found)) => {
                let altered = found.is_altered();
                match left_open(found, self.clock.now()) {
                    Some(OpenQuestion::No(text)) if !altered => WaitEnd::Refused(text),
                    left => WaitEnd::Answered(left),
                }
            }
            // Its session was deleted.
            Ok(None) => WaitEnd::Left,
            Err(error) => WaitEnd::Refused(of_hook(&not_kept(&error), waiting)),
        }
    }

    /// Waits until there may be an answer. `false`: nobody wants to answer here, or the turn is ending.
    async fn heard(
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
            answered = self.answered_elsewhere(waiting) => return answered.map(|()| true),
        };
        let Some(said) = said else { return Ok(false) };
        let (shown, now) = (waiting.clone(), self.clock.now());
        match self.on_store(move |store| store.answer_shown(&shown, said, now)).await {
            // Somebody else was faster: what they said counts. Or the question changed since it was shown: it is asked
            // again.
            Ok(_) | Err(StoreError::Conflict(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn answered_elsewhere(&self, waiting: &Approval) -> Result<(), StoreError> {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let (of, id, now) = (TenantScope::from(&waiting.tenant_id), waiting.id.clone(), self.clock.now());
            let found = self.on_store(move |store| store.approval(&of, &id)).await?;
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

/// What is left open about the call of a question, at `now`.
fn left_open(it: Approval, now: jiff::Timestamp) -> Option<OpenQuestion> {
    let no = |text: &str| Some(OpenQuestion::No(of_hook(text, &it)));
    match it.state_at(now) {
        ApprovalState::Refused => no(&refusal(it.answered_by.as_deref(), &it.note)),
        ApprovalState::Expired => no(TOO_LATE),
        ApprovalState::Waiting => Some(OpenQuestion::Waiting(Box::new(it))),
        // The row says yes or nothing yet, and it does not hold: without a hook that asks again, that is no leave.
        ApprovalState::Void if it.is_altered() => no(&does_not_count(it.flaw())),
        ApprovalState::Approved => it.place.map(OpenQuestion::There),
        ApprovalState::Used | ApprovalState::Void => None,
    }
}

/// The refusal of a call whose question or answer does not hold. What there is to do about a key is not for the model.
fn does_not_count(flaw: Option<ApprovalFlaw>) -> String {
    let why = match flaw {
        Some(ApprovalFlaw::OtherKey) => "another key than the one here sealed it",
        Some(ApprovalFlaw::BrokenSeal) => "its seal does not fit: it was altered, or another key sealed it",
        Some(ApprovalFlaw::Unsealed) => "its answer carries no seal",
        Some(ApprovalFlaw::UsedBefore) => "it was used before",
        Some(ApprovalFlaw::BrokenChain) => "nothing says that it was not used before",
        Some(ApprovalFlaw::Altered) | None => "it was altered",
    };
    format!("Tool execution needs a person's approval, and what was kept of it does not count: {why}")
}

/// A refusal that names the hook that wanted a person to say.
fn of_hook(text: &str, asked: &Approval) -> String {
    format!("{text} (asked by hook \"{}\")", asked.by)
}

fn not_kept(error: &StoreError) -> String {
    // Only the log has the detail: it may name a path of the user's.
    tracing::error!("a question for a person cannot be kept: {error}");
    NOT_KEPT.to_owned()
}

/// An ask is never weakened: where nobody can be asked, it refuses.
pub(crate) fn nobody_to_ask(why: &str) -> String {
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    format!("Tool execution needs a person's approval, and nobody can be asked here{why}")
}

#[cfg(test)]
mod tests {
    use pintle_domain::id::{CallId, HookName, TurnId};
    use pintle_domain::json::Object;
    use pintle_domain::tool::ToolCall;
    use pintle_domain::verdict::Reason;

    use super::*;

    #[test]
    fn who_answered_says_whether_a_person_refused_and_no_note_does() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let id = CallId::from("c1");
        let call = ToolCall { id, tool: "exec".into(), raw_tool: "exec".into(), arguments: Object::new() };
        let (by, why) = (HookName::from("gate"), Reason::new("risky"));
        let who = Identity::top("main", "s", TurnId::from("t"));
        let nobody = PersonAnswer::nobody_within(Duration::from_secs(4));
        let anna = PersonAnswer::of("anna".to_owned(), false, nobody.note.clone());
        for (said, text) in [(nobody, "refused: nobody"), (anna, "refused by a person: nobody")] {
            let question = ApprovalQuestion { call: &call, by: &by, why: &why };
            let mut asked = Approval::question("a".to_owned(), &who, question, now);
            asked.answer(said, now).unwrap();
            let text = format!("Tool execution {text} answered within 4 s (asked by hook \"gate\")");
            assert_eq!(left_open(asked, now), Some(OpenQuestion::No(text)));
        }
    }

    #[test]
    fn what_another_key_sealed_is_not_called_altered() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let id = CallId::from("c1");
        let call = ToolCall { id, tool: "exec".into(), raw_tool: "exec".into(), arguments: Object::new() };
        let question = ApprovalQuestion { call: &call, by: &HookName::from("gate"), why: &Reason::new("risky") };
        let who = Identity::top("main", "s", TurnId::from("t"));
        let asked = Approval::question("a".to_owned(), &who, question, now);
        for (flaw, why) in [
            (ApprovalFlaw::OtherKey, "another key than the one here sealed it"),
            (ApprovalFlaw::BrokenSeal, "its seal does not fit: it was altered, or another key sealed it"),
            (ApprovalFlaw::Altered, "it was altered"),
        ] {
            let answered = Approval { state: ApprovalState::Approved, flaw: Some(flaw), ..asked.clone() };
            let Some(OpenQuestion::No(text)) = left_open(answered, now) else { panic!("{flaw:?} gives no leave") };
            assert!(text.contains(&format!("does not count: {why} (asked by")), "{text}");
        }
    }
}
