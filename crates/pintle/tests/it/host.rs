//! A host with one tool, and what it sees.

use std::sync::{Arc, Mutex};

use pintle::approval::{ApprovalStanding, ApprovalState, QuestionPlan, plan};
use pintle::checkpoint::ObservedEvent;
use pintle::id::TenantId;
use pintle::message::{Message, Role};
use pintle::prelude::*;
use pintle::record::EventRecord;
use pintle::store::{ApprovalQuery, ApprovalStore, RecordQuery, RecordStore, StoreError, StoredEvent, TenantScope};
use tokio::sync::mpsc;

/// Runs `lookup` and `refund`, and keeps what it ran.
#[derive(Default)]
pub(crate) struct Till {
    pub(crate) ran: Mutex<Vec<Call>>,
}

impl Till {
    pub(crate) fn runs(&self) -> usize {
        self.ran.lock().unwrap().len()
    }
}

impl Executor for Till {
    type Error = String;

    fn runs(&self, tool: &str) -> bool {
        ["lookup", "refund"].contains(&tool)
    }

    async fn execute(&self, permit: Permit, _cancel: &Cancel) -> Result<Output, String> {
        let call = permit.into_call();
        self.ran.lock().unwrap().push(call.clone());
        match call.text("do") {
            Some("fail") => Err("the till is closed".to_owned()),
            Some("panic") => panic!("the till burns"),
            Some(_) | None => Ok(Output::ok(format!("{} done", call.tool))),
        }
    }
}

pub(crate) const TOOLS: [&str; 2] = ["lookup", "refund"];

/// A store of one's own, gone with its last user.
#[derive(Default)]
pub(crate) struct Kept {
    records: Mutex<Vec<StoredEvent>>,
    questions: Mutex<Vec<Approval>>,
}

pub(crate) fn memory() -> Arc<Kept> {
    Arc::default()
}

impl RecordStore for Kept {
    fn keep(&self, records: Vec<EventRecord>, done: pintle::store::OnKept) {
        self.records.lock().unwrap().extend(records.iter().map(StoredEvent::from));
        done(Ok(()));
    }

    fn find(&self, query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        let records = self.records.lock().unwrap();
        let ours = |event: &&StoredEvent| query.tenant.one().is_none_or(|it| it.as_str() == event.tenant_id);
        Ok(records.iter().filter(ours).take(query.limit).cloned().collect())
    }
}

impl ApprovalStore for Kept {
    fn ask(&self, question: Approval, now: jiff::Timestamp) -> Result<ApprovalStanding, StoreError> {
        let mut questions = self.questions.lock().unwrap();
        let about =
            |it: &Approval| (it.tenant_id.clone(), it.session_id.clone(), it.turn_id.clone(), it.tool_call_id.clone());
        let earlier: Vec<Approval> = questions.iter().filter(|it| about(it) == about(&question)).cloned().collect();
        match plan(question, &earlier, now) {
            QuestionPlan::Stands(standing) => Ok(standing),
            QuestionPlan::Park { new, void } => {
                let gone = questions.iter_mut().filter(|it| void.contains(&it.id));
                gone.for_each(|it| it.state = ApprovalState::Void);
                questions.push((*new).clone());
                Ok(ApprovalStanding::Waiting(new))
            }
        }
    }

    fn answer(&self, of: &TenantScope, id: &str, said: Answer, now: jiff::Timestamp) -> Result<Approval, StoreError> {
        let mut questions = self.questions.lock().unwrap();
        let found = questions.iter_mut().find(|it| of.has(&it.tenant_id) && it.id.starts_with(id));
        let found = found.ok_or_else(|| StoreError::NotFound(id.to_owned()))?;
        found.answer(said, now).map_err(StoreError::Conflict)?;
        Ok(found.clone())
    }

    fn use_up(&self, tenant: &TenantId, id: &str, now: jiff::Timestamp) -> Result<(), StoreError> {
        let mut questions = self.questions.lock().unwrap();
        let is_it = |it: &&mut Approval| it.tenant_id == *tenant && it.id == id;
        match questions.iter_mut().find(|it| is_it(it) && it.state_at(now) == ApprovalState::Approved) {
            Some(found) => {
                found.state = ApprovalState::Used;
                Ok(())
            }
            None => Err(StoreError::Conflict("it is not approved".into())),
        }
    }

    fn approval(&self, of: &TenantScope, id: &str) -> Result<Option<Approval>, StoreError> {
        let questions = self.questions.lock().unwrap();
        Ok(questions.iter().find(|it| of.has(&it.tenant_id) && it.id == id).cloned())
    }

    fn approvals(&self, query: &ApprovalQuery) -> Result<Vec<Approval>, StoreError> {
        let now = jiff::Timestamp::now();
        let questions = self.questions.lock().unwrap();
        let ours = |it: &&Approval| query.tenant.has(&it.tenant_id);
        let meant = |it: &&Approval| !query.waiting_only || it.state_at(now) == ApprovalState::Waiting;
        Ok(questions.iter().filter(ours).filter(meant).take(query.limit).cloned().collect())
    }
}

pub(crate) fn open() -> Pintle {
    Pintle::open(memory(), &TOOLS).unwrap()
}

pub(crate) fn turn(pintle: &Pintle) -> Turn {
    pintle.tenant("default").unwrap().turn("support", "session-1", TurnId::fresh())
}

pub(crate) fn refund(id: &str) -> Call {
    Call::new(id, "refund", [("amount", 50)])
}

pub(crate) fn request(text: &str) -> pintle::llm::LlmRequest {
    pintle::llm::LlmRequest {
        model: "m".to_owned(),
        messages: vec![Message::text(Role::User, text).into()],
        tools: Vec::new(),
        options: pintle::json::Object::new(),
        graceful_terminal: false,
    }
}

pub(crate) fn reply(text: &str) -> pintle::llm::LlmReply {
    pintle::llm::LlmReply::text(text)
}

/// Everything that observers are told.
pub(crate) struct Ears(mpsc::UnboundedReceiver<Notice>);

impl Ears {
    pub(crate) fn of(pintle: &Pintle) -> Self {
        let (say, heard) = mpsc::unbounded_channel();
        pintle.observer("ears", move |notice: &Notice| drop(say.send(notice.clone()))).unwrap();
        Self(heard)
    }

    /// What was told up to the first event called `name`, that one included.
    pub(crate) async fn until(&mut self, name: &str) -> Vec<Notice> {
        let mut heard = Vec::new();
        loop {
            let notice = self.0.recv().await.expect("somebody tells");
            let is_last = notice.what.name() == name;
            heard.push(notice);
            if is_last {
                return heard;
            }
        }
    }

    /// Their names.
    pub(crate) async fn names_until(&mut self, name: &str) -> Vec<&'static str> {
        self.until(name).await.iter().map(|notice| notice.what.name()).collect()
    }
}

/// The runtime event of `notice`.
pub(crate) fn event(notice: &Notice) -> &pintle::checkpoint::RuntimeEvent {
    let ObservedEvent::Runtime(event) = &notice.what else { panic!("{notice:?} is not a runtime event") };
    event
}
