//! Questions for a person: parked with the digest of the exact call, answered once, used once.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::clearing::ApprovalQuestion;
use crate::hex::hex;
use crate::id::{AgentId, CallId, HookName, SessionId, TenantId, TurnId};
use crate::identity::Identity;
use crate::json::{Object, Value, canonical};
use crate::tool::{CallPlace, Digest, ToolCall};

mod by_content;
mod flaw;
mod refusal;
mod seal;
mod used;

pub use by_content::{USABLE_SECONDS, by_content};
pub use flaw::ApprovalFlaw;
pub use refusal::{PersonAnswer, is_refused_by_person, refusal};
pub use seal::ApprovalKey;
pub use used::{APPROVAL_REFUSED, APPROVAL_USED, used_approval};

/// The time, in seconds, that a person has to answer: a day, so that somebody who sleeps over it still finds the
/// question.
pub const LIFETIME_SECONDS: i64 = 24 * 60 * 60;

/// One question, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// Its name, by which it is answered.
    pub id: String,
    /// The tenant that owns the question.
    pub tenant_id: TenantId,
    /// The agent whose call is asked about.
    pub agent_id: AgentId,
    /// In which conversation.
    pub session_id: SessionId,
    /// In which turn.
    pub turn_id: TurnId,
    /// Which call of the model.
    pub tool_call_id: CallId,
    /// The tool.
    pub tool: String,
    /// Exactly what would run.
    pub arguments: Object,
    /// SHA-256 over everything that makes the call this call and no other, in hex.
    pub digest: String,
    /// The hook that wants a person to say.
    pub by: HookName,
    /// Why.
    pub reason: String,
    /// The arguments that were asked about before, where the call changed since: the earlier question is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_from: Option<Object>,
    /// The reason why an earlier answer about this call of the model does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_because: Option<String>,
    /// Where it would run; nothing where a version asked that did not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<CallPlace>,
    /// When it was asked.
    pub asked_at: jiff::Timestamp,
    /// Until when it can be answered and used.
    pub expires_at: jiff::Timestamp,
    /// The seconds after the answer in which it can be used, where that is less: whoever makes the same call again uses
    /// it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usable_seconds: Option<u32>,
    /// The state of the question.
    pub state: ApprovalState,
    /// Who answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// The note that the person added to the answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Why the question does not count as it stands: found when it is read, never kept.
    #[serde(skip)]
    pub flaw: Option<ApprovalFlaw>,
}

/// The state of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalState {
    /// Nobody has answered.
    Waiting,
    /// The call may run, once.
    Approved,
    /// It may not.
    Refused,
    /// It was approved, and ran.
    Used,
    /// The call changed, or its turn ended.
    Void,
    /// Nobody answered in time, or nobody used the answer in time.
    Expired,
}

/// What is told in the place of a call of `tool` while nobody has answered its question `id`. A model reads it, so that how a
/// person answers does not stand there.
pub fn told_meanwhile(tool: &str, id: &str) -> String {
    format!(
        "this call of `{tool}` needs a person's approval with the id {id}; nobody has answered yet. Once they have \
         approved it, exactly the same call runs"
    )
}

/// What the person is told of it, whose call of `tool` it is, why they are asked, and how they answer: never for the model.
pub fn how_to_answer(tool: &str, id: &str, reason: &str) -> String {
    let why = if reason.trim().is_empty() { String::new() } else { format!(" ({})", reason.trim()) };
    format!(
        "A call of `{tool}` waits for you as approval {id}{why}: `pintle approvals approve {id}` in a terminal of your own \
         lets the agent make it again, once; `pintle approvals refuse {id}` does not."
    )
}

impl ApprovalState {
    /// The word in listings and in the store.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Approved => "approved",
            Self::Refused => "refused",
            Self::Used => "used",
            Self::Void => "void",
            Self::Expired => "expired",
        }
    }
}

/// Where a question stands when a call comes to it.
#[derive(Clone, Debug, PartialEq)]
pub enum ApprovalStanding {
    /// It was approved; this use is the only one.
    Approved {
        /// The approval.
        id: String,
    },
    /// It was refused, by this one and with this note.
    Refused {
        /// Who refused it.
        by: Option<String>,
        /// The note that was added; may be empty.
        note: String,
    },
    /// Nobody answered in time.
    Expired,
    /// It waits for a person.
    Waiting(Box<Approval>),
}

/// The plan for the questions that a call has so far.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestionPlan {
    /// One of them stands for the call as it is.
    Stands(ApprovalStanding),
    /// Park this one; those with the ids in `void` are about a call that changed.
    Park {
        /// The new question.
        new: Box<Approval>,
        /// Ids of the questions that no longer count.
        void: Vec<String>,
    },
}

impl Approval {
    /// Whether it is about what a call is, whatever its turn and id.
    pub fn is_by_content(&self) -> bool {
        self.turn_id.as_str() == by_content::ANY_TURN
    }

    /// The question of a clearing, as it is kept from `now` on.
    pub fn question(id: String, who: &Identity, question: ApprovalQuestion<'_>, now: jiff::Timestamp) -> Self {
        let ApprovalQuestion { call, by, why } = question;
        let lifetime = jiff::SignedDuration::from_secs(LIFETIME_SECONDS);
        Self {
            id,
            tenant_id: who.tenant_id.clone(),
            agent_id: who.agent_id.clone(),
            session_id: who.session_id.clone(),
            turn_id: who.turn_id.clone(),
            tool_call_id: call.id.clone(),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            digest: Digest::of(who, call).to_string(),
            by: by.clone(),
            reason: why.to_string(),
            changed_from: None,
            again_because: None,
            place: None,
            asked_at: now,
            expires_at: now.checked_add(lifetime).unwrap_or(jiff::Timestamp::MAX),
            usable_seconds: None,
            state: ApprovalState::Waiting,
            answered_by: None,
            note: String::new(),
            flaw: None,
        }
    }

    /// The question about the call there.
    #[must_use]
    pub fn at(self, place: CallPlace) -> Self {
        Self { place: Some(place), ..self }
    }

    /// The question, whose answer counts no longer than `seconds`.
    #[must_use]
    pub fn usable(self, seconds: Option<u32>) -> Self {
        Self { usable_seconds: seconds, ..self }
    }

    /// The digest of the call that is shown; it is [`Approval::digest`] unless somebody altered one of them.
    pub fn shown_digest(&self) -> Digest {
        let who = Identity {
            tenant_id: self.tenant_id.clone(),
            ..Identity::top(self.agent_id.as_str(), self.session_id.as_str(), self.turn_id.clone())
        };
        Digest::of(&who, &self.call())
    }

    /// The call that it is about.
    pub fn call(&self) -> ToolCall {
        ToolCall {
            id: self.tool_call_id.clone(),
            tool: self.tool.clone(),
            raw_tool: self.tool.clone(),
            arguments: self.arguments.clone(),
        }
    }

    /// Why the question does not count as it stands.
    pub fn flaw(&self) -> Option<ApprovalFlaw> {
        self.flaw.or_else(|| (self.shown_digest().to_string() != self.digest).then_some(ApprovalFlaw::Altered))
    }

    /// Whether its row says that it can be answered or used, and somebody altered what stands there.
    pub fn is_altered(&self) -> bool {
        self.is_open() && self.flaw().is_some()
    }

    /// The state at `now`: time passes without anybody writing it down, and what was altered gives no leave.
    pub fn state_at(&self, now: jiff::Timestamp) -> ApprovalState {
        if self.is_altered() {
            return ApprovalState::Void;
        }
        match self.state {
            ApprovalState::Waiting | ApprovalState::Approved if now >= self.expires_at => ApprovalState::Expired,
            ApprovalState::Waiting
            | ApprovalState::Approved
            | ApprovalState::Refused
            | ApprovalState::Used
            | ApprovalState::Void
            | ApprovalState::Expired => self.state,
        }
    }

    /// Whether its row says that it can be answered or used.
    fn is_open(&self) -> bool {
        matches!(self.state, ApprovalState::Waiting | ApprovalState::Approved)
    }

    /// Why it stands for nothing in a clearing that comes to `question`, though its row says otherwise.
    fn unfit(&self, question: &Self) -> Option<String> {
        if let Some(flaw) = self.flaw() {
            return Some(format!("approval `{}` is void: {flaw}", self.id));
        }
        let differs = question.place.as_ref()?.differs_from(self.place.as_ref()?)?;
        (self.digest == question.digest).then(|| format!("approval `{}` is void: {differs}", self.id))
    }

    /// Takes an answer. The first one stands.
    ///
    /// # Errors
    /// Why it cannot be answered, in words for whoever tried.
    pub fn answer(&mut self, said: PersonAnswer, now: jiff::Timestamp) -> Result<(), String> {
        match self.state_at(now) {
            ApprovalState::Waiting => {
                self.state = if said.approve { ApprovalState::Approved } else { ApprovalState::Refused };
                self.answered_by = Some(said.by);
                self.note = said.note;
                if let Some(seconds) = self.usable_seconds {
                    let until = now.checked_add(jiff::SignedDuration::from_secs(seconds.into()));
                    self.expires_at = self.expires_at.min(until.unwrap_or(jiff::Timestamp::MAX));
                }
                Ok(())
            }
            ApprovalState::Approved | ApprovalState::Refused | ApprovalState::Used => Err(format!(
                "it was {} already{}",
                if self.state == ApprovalState::Used { "approved and used" } else { self.state.word() },
                self.answered_by.as_ref().map(|by| format!(", by {by}")).unwrap_or_default()
            )),
            ApprovalState::Void => Err(match self.flaw().filter(|_| self.is_open()) {
                Some(ApprovalFlaw::OtherKey) => ApprovalFlaw::OtherKey.to_string(),
                Some(flaw) => format!("it is void: {flaw}"),
                None => "it is void: the call changed or its turn is over".into(),
            }),
            ApprovalState::Expired => Err(format!("it expired at {}", self.expires_at)),
        }
    }
}

/// Where `question` stands among `earlier`, the questions that were asked about the same call of the model.
pub fn plan(question: Approval, earlier: &[Approval], now: jiff::Timestamp) -> QuestionPlan {
    let again_because = earlier.iter().rev().filter(|it| it.is_open()).find_map(|it| it.unfit(&question));
    let same = earlier.iter().rev().find(|it| it.digest == question.digest);
    let fits = |it: &Approval| it.unfit(&question).is_none();
    let standing = same.and_then(|it| match it.state_at(now) {
        ApprovalState::Approved if fits(it) => Some(ApprovalStanding::Approved { id: it.id.clone() }),
        ApprovalState::Waiting if fits(it) => Some(ApprovalStanding::Waiting(Box::new(it.clone()))),
        ApprovalState::Refused => Some(ApprovalStanding::Refused { by: it.answered_by.clone(), note: it.note.clone() }),
        // A turn that goes on comes too late; the same call that is made anew is asked about anew.
        ApprovalState::Expired if it.usable_seconds.is_none() => Some(ApprovalStanding::Expired),
        // What was used or given up is asked again.
        ApprovalState::Expired
        | ApprovalState::Approved
        | ApprovalState::Waiting
        | ApprovalState::Used
        | ApprovalState::Void => None,
    });
    if let Some(standing) = standing {
        return QuestionPlan::Stands(standing);
    }
    let counted = |it: &&Approval| (it.is_open() && it.flaw().is_none()) || it.state == ApprovalState::Refused;
    let before = earlier.iter().rev().find(counted);
    let changed_from = before.filter(|it| it.digest != question.digest).map(|it| it.arguments.clone());
    // A no stays a no: the call may change back.
    let open = |it: &&Approval| it.is_open() && it.state_at(now) != ApprovalState::Expired;
    let void = earlier.iter().filter(open).map(|it| it.id.clone()).collect();
    QuestionPlan::Park { new: Box::new(Approval { changed_from, again_because, ..question }), void }
}

/// SHA-256 over the canonical form of `what`, in hex.
fn sha256(what: &Value) -> String {
    hex(&Sha256::digest(canonical(what).as_bytes()))
}

/// Who works the turn in which a person is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalMode {
    /// `chat`: a conversation in a terminal.
    Chat,
    /// `run`: one turn, for a script.
    Run,
    /// `sessions resume`: a turn that goes on.
    Resume,
    /// `mcp`: calls of somebody else's agent.
    Mcp,
    /// `serve`: a turn for whoever asks over the network.
    Serve,
    /// A sub-agent, in any of these.
    Subagent,
}

/// Every mode, in the order of the table.
pub const MODES: [ApprovalMode; 6] = [
    ApprovalMode::Chat,
    ApprovalMode::Run,
    ApprovalMode::Resume,
    ApprovalMode::Mcp,
    ApprovalMode::Serve,
    ApprovalMode::Subagent,
];

/// The handling of a call: what happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallHandling {
    /// It runs.
    Runs,
    /// It does not run; the model reads why.
    Refused,
    /// The person there is asked, and the call waits meanwhile; others may answer too.
    AskedHere,
    /// The call waits for `approvals approve` from elsewhere, while the program goes on waiting.
    WaitsHere,
    /// The turn is parked; the program ends and says how to go on.
    Parked,
}

/// The decision that the gates and approvers came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HooksDecision {
    /// Nobody objects.
    Allow,
    /// Somebody objects.
    Deny,
    /// A person must say.
    Ask,
}

/// The handling of a call: the published table of verdict, mode and whether an approver is present. No mode turns an
/// ask into leave.
pub fn handling(came: HooksDecision, mode: ApprovalMode, present: bool) -> CallHandling {
    match (came, mode, present) {
        (HooksDecision::Allow, _, _) => CallHandling::Runs,
        (HooksDecision::Deny, _, _) => CallHandling::Refused,
        (HooksDecision::Ask, ApprovalMode::Chat | ApprovalMode::Resume | ApprovalMode::Subagent, true) => {
            CallHandling::AskedHere
        }
        (HooksDecision::Ask, ApprovalMode::Chat | ApprovalMode::Resume, false)
        | (HooksDecision::Ask, ApprovalMode::Run | ApprovalMode::Serve, _) => CallHandling::Parked,
        // Whoever calls over MCP waits for the answer; it cannot come back for it.
        (HooksDecision::Ask, ApprovalMode::Mcp, _) => CallHandling::WaitsHere,
        // A parent that was parked could not tell what its child had done meanwhile.
        (HooksDecision::Ask, ApprovalMode::Subagent, false) => CallHandling::Refused,
    }
}

#[cfg(test)]
mod tests;
