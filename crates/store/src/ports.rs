//! The ports of every store in a database: which transaction of [`rows`](crate::rows) answers which method, and how it
//! is run.

mod identity;
mod own;
mod spending;
mod webhooks;

use std::collections::BTreeSet;

use jiff::Timestamp;
use pintle_domain::approval::{Approval, ApprovalStanding, PersonAnswer};
use pintle_domain::audit::{AuditCheckpoint, AuditEntry};
use pintle_domain::breaker::BreakerRun;
use pintle_domain::execution::Execution;
use pintle_domain::id::{HookId, SessionId, TenantId, TurnId};
use pintle_domain::node::{NodeState, SeenNode};
use pintle_domain::record::EventRecord;
use pintle_domain::rule::Rule;
use pintle_domain::session::JournalEntry;
use pintle_domain::store::{
    Actor, ApprovalQuery, ApprovalStore, AuditStore, Budget, BudgetChange, BudgetStore, ExecutionQuery, ExecutionStore,
    IdleStore, JournalAppend, LeftTurn, Letter, LoggedChange, NodeStore, OnKept, OnRulesChanged, OutboxJob,
    OutboxStore, RecordQuery, RecordStore, Repeat, RepeatName, RepeatStore, Room, RoomSoon, RuleChange,
    RuleChangeResult, RuleStore, RuleSubscription, SessionHold, SessionKey, SessionPatch, SessionQuery, SessionRow,
    SessionSettings, SessionStore, StoreError, StoredEvent, StoredRules, Tenant, TenantScope, Upload, UploadStore,
};

use crate::anchoring;
use crate::database::{Database, SqlStore};
use crate::evidence::{detail_read, opened};
use crate::rows::approvals::Asked;
use crate::rows::batch::{Batch, tail};
use crate::rows::hooks::Changer;
use crate::rows::identity::other_key;
use crate::rows::{
    approvals, audit, budgets, epoch, exchange, executions, hooks, journal, nodes, outbox, records, sessions, tenants,
};
use crate::rules;

impl<D: Database> RecordStore for SqlStore<D> {
    fn keep(&self, records: Vec<EventRecord>, done: OnKept) {
        self.0.hand_over(Batch::records(records, done));
    }

    fn keep_patiently(&self, records: Vec<EventRecord>, room: Room, done: OnKept) {
        self.0.hand_over(Batch::records(records, done).patient(Some(room)));
    }

    fn room(&self, records: &[EventRecord]) -> RoomSoon {
        self.0.rooms().soon(records)
    }

    fn idle(&self) -> Option<Box<dyn IdleStore + '_>> {
        self.0.idle()
    }

    fn find(&self, query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        self.0.list(|db| records::query::find(db, query))
    }
}

impl<D: Database> SessionStore for SqlStore<D> {
    fn append(&self, append: JournalAppend, done: OnKept) {
        self.0.hand_over(Batch::append(append, done));
    }

    fn hold(&self, key: &SessionKey) -> Result<Box<dyn SessionHold>, StoreError> {
        self.0.hold(key)
    }

    fn journal(&self, key: &SessionKey) -> Result<Vec<JournalEntry>, StoreError> {
        self.0.read_beside(|db| journal::read(db, key))
    }

    fn turn_journal(
        &self,
        key: &SessionKey,
        turn: &TurnId,
        limit: usize,
    ) -> Result<Vec<(Timestamp, JournalEntry)>, StoreError> {
        self.0.read(|db| journal::of_turn(db, key, turn, limit))
    }

    fn sessions(&self, tenant: &TenantId) -> Result<Vec<SessionRow>, StoreError> {
        self.0.read(|db| sessions::list(db, tenant, &*self.0.holders(db)?))
    }

    fn session_page(&self, tenant: &TenantId, query: &SessionQuery) -> Result<Vec<SessionRow>, StoreError> {
        self.0.read(|db| sessions::page(db, tenant, query, &*self.0.holders(db)?))
    }

    fn left_turns(&self) -> Result<Vec<LeftTurn>, StoreError> {
        let left = self.0.read(|db| {
            let (open, holders) = (nodes::open_turns(db)?, self.0.holders(db)?);
            let mut left = Vec::new();
            for turn in open {
                if holders(&turn.key)?.is_none() {
                    left.push(LeftTurn { node: self.0.last_node(db, &turn.key)?, ..turn });
                }
            }
            Ok(left)
        })?;
        if left.is_empty() {
            return Ok(left);
        }
        // One that ended between the two looks was let go of by then, and is no longer open. One that is open now was
        // when nobody held it: whoever works a turn holds it from before its first entry until after its last.
        let open = self.0.read(nodes::open_turns)?;
        let is_open = |turn: &LeftTurn| open.iter().any(|now| (&now.key, &now.turn_id) == (&turn.key, &turn.turn_id));
        Ok(left.into_iter().filter(is_open).collect())
    }

    fn last_node(&self, key: &SessionKey) -> Result<Option<String>, StoreError> {
        self.0.read_beside(|db| self.0.last_node(db, key))
    }

    fn holder(&self, key: &SessionKey) -> Result<Option<String>, StoreError> {
        self.0.read_beside(|db| self.0.held_by(db, key))
    }

    fn session_settings(&self, key: &SessionKey) -> Result<Option<SessionSettings>, StoreError> {
        self.0.read_beside(|db| sessions::settings(db, key))
    }

    fn patch_session(&self, key: &SessionKey, patch: &SessionPatch) -> Result<bool, StoreError> {
        self.0.write(|db| sessions::patch(db, key, patch))
    }

    fn delete(&self, key: &SessionKey) -> Result<bool, StoreError> {
        // Each time it is asked: by then nobody takes a session any more.
        self.0.write(|db| sessions::delete(db, key, &|member| self.0.held_by(db, member)))
    }
}

impl<D: Database> NodeStore for SqlStore<D> {
    fn node_id(&self) -> String {
        self.0.node_id().to_owned()
    }

    fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    fn join(&self, state: &NodeState) -> Result<Vec<String>, StoreError> {
        self.0.join(&state.name);
        self.0.write(|db| nodes::join(db, state))
    }

    fn beat(&self, state: &NodeState) -> Result<Vec<SeenNode>, StoreError> {
        self.0.write(|db| {
            nodes::beat(db, state)?;
            nodes::all(db)
        })
    }

    fn nodes(&self) -> Result<Vec<SeenNode>, StoreError> {
        self.0.read(nodes::all)
    }

    fn leave(&self, id: &str, cut: &[String]) -> Result<(), StoreError> {
        self.0.write(|db| nodes::leave(db, id, cut))
    }

    fn post(&self, letter: &Letter) -> Result<bool, StoreError> {
        if self.0.is_shared() { self.0.write(|db| nodes::post(db, letter)) } else { Ok(false) }
    }

    fn worked_sessions(&self, tenant: &TenantId) -> Result<Vec<SessionId>, StoreError> {
        if self.0.is_shared() { self.0.read(|db| nodes::worked(db, tenant)) } else { Ok(Vec::new()) }
    }

    fn collect(&self) -> Result<Vec<Letter>, StoreError> {
        if self.0.is_shared() { self.0.write(|db| nodes::collect(db, self.0.node_id())) } else { Ok(Vec::new()) }
    }

    fn stranded(&self, node: &str) -> Result<Vec<Letter>, StoreError> {
        if self.0.is_shared() { self.0.write(|db| nodes::stranded(db, node)) } else { Ok(Vec::new()) }
    }

    fn tell_nodes(&self, news: &[String]) -> Result<(), StoreError> {
        if self.0.is_shared() { self.0.write(|db| nodes::tell(db, self.0.node_id(), news)) } else { Ok(()) }
    }

    fn news(&self) -> Result<Vec<(i64, String)>, StoreError> {
        if self.0.is_shared() { self.0.read(|db| nodes::news(db, self.0.node_id())) } else { Ok(Vec::new()) }
    }

    fn listen_nodes(&self, heard: OnRulesChanged) -> Box<dyn RuleSubscription> {
        self.0.listen_nodes(heard)
    }
}

/// Anchors what `grown` says of chains: whoever cuts these entries off their ends is to be found out.
fn note_growth(database: &impl Database, grown: Vec<audit::ChainGrowth>) {
    if grown.is_empty() {
        return;
    }
    if let Some(anchor) = database.sealing().anchor.as_ref().filter(|_| database.settle().is_ok()) {
        anchor.grown(&grown.into_iter().map(|grown| (grown.tenant, grown.to)).collect::<Vec<_>>());
    }
}

impl<D: Database> ApprovalStore for SqlStore<D> {
    fn ask(&self, question: Approval, now: Timestamp) -> Result<ApprovalStanding, StoreError> {
        let proofs = self.0.sealing().approval_proofs();
        self.0.write(|db| approvals::ask(db, &proofs, question.clone(), now))
    }

    fn answer(&self, of: &TenantScope, id: &str, said: PersonAnswer, now: Timestamp) -> Result<Approval, StoreError> {
        let proofs = self.0.sealing().approval_proofs();
        let (answered, grown) =
            self.0.write(|db| approvals::answer(db, &proofs, Asked::Named(of, id), (&said, now)))?;
        note_growth(&self.0, grown);
        Ok(answered)
    }

    fn answer_shown(&self, shown: &Approval, said: PersonAnswer, now: Timestamp) -> Result<Approval, StoreError> {
        let proofs = self.0.sealing().approval_proofs();
        let (answered, grown) = self.0.write(|db| approvals::answer(db, &proofs, Asked::Shown(shown), (&said, now)))?;
        note_growth(&self.0, grown);
        Ok(answered)
    }

    fn use_up(&self, tenant: &TenantId, id: &str, now: Timestamp) -> Result<(), StoreError> {
        let proofs = self.0.sealing().approval_proofs();
        let grown = self.0.write(|db| approvals::use_up((db, &proofs), (tenant, id), now))?;
        // The chain was one that is known, or the approval would not have been used.
        note_growth(&self.0, grown);
        Ok(())
    }

    fn approval(&self, of: &TenantScope, id: &str) -> Result<Option<Approval>, StoreError> {
        let proofs = self.0.sealing().approval_proofs();
        self.0.read(|db| approvals::by_id((db, &proofs), of, id))
    }

    fn approvals(&self, query: &ApprovalQuery) -> Result<Vec<Approval>, StoreError> {
        let proofs = self.0.sealing().approval_proofs();
        self.0.read(|db| approvals::newest(db, &proofs, query))
    }
}

impl<D: Database> RuleStore for SqlStore<D> {
    fn rules(&self) -> Result<StoredRules, StoreError> {
        anchoring::rules(&self.0)
    }

    fn epoch(&self) -> Result<u64, StoreError> {
        self.0.read(|db| epoch::now(db))
    }

    fn listen(&self, heard: OnRulesChanged) -> Box<dyn RuleSubscription> {
        self.0.listen(heard)
    }

    fn hook(&self, id: &HookId) -> Result<Option<Rule>, StoreError> {
        self.0.read(|db| hooks::by_id(db, id))
    }

    fn change(&self, changes: Vec<RuleChange>, by: &Actor) -> Result<RuleChangeResult, StoreError> {
        let meant = changes.iter().filter_map(RuleChange::needs_good_row).collect::<Vec<_>>();
        anchoring::may_change(&self.0, &meant)?;
        let key = self.0.sealing().change_key();
        let changed = self.0.write(|db| hooks::change(db, &changes, &Changer { by, key: key.as_ref() }))?;
        anchoring::rules(&self.0)?;
        Ok(changed)
    }

    fn changes(&self, of: &TenantScope, id: &HookId, limit: usize) -> Result<Vec<LoggedChange>, StoreError> {
        self.0.read(|db| hooks::changes(db, of, id, limit))
    }

    fn change_log(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&(String, String)>,
        limit: usize,
    ) -> Result<Vec<LoggedChange>, StoreError> {
        self.0.read(|db| hooks::change_log(db, tenant, after, limit))
    }

    fn trip(&self, id: &HookId, tenant: &TenantId, by: &Actor) -> Result<u64, StoreError> {
        anchoring::may_change(&self.0, &[id])?;
        let key = self.0.sealing().change_key();
        let epoch = self.0.write(|db| hooks::trip(db, id, tenant, &Changer { by, key: key.as_ref() }))?;
        anchoring::rules(&self.0)?;
        Ok(epoch)
    }

    fn reset(&self, id: &HookId, tenant: Option<&TenantId>, by: &Actor) -> Result<u64, StoreError> {
        anchoring::may_change(&self.0, &[id])?;
        let key = self.0.sealing().change_key();
        let epoch = self.0.write(|db| hooks::reset(db, id, tenant, &Changer { by, key: key.as_ref() }))?;
        anchoring::rules(&self.0)?;
        Ok(epoch)
    }

    fn keep_run(&self, id: &HookId, tenant: &TenantId, run: &BreakerRun, now: Timestamp) -> Result<(), StoreError> {
        self.0.write(|db| hooks::keep_run(db, id, tenant, run, now))
    }

    fn tenants(&self) -> Result<Vec<Tenant>, StoreError> {
        self.0.read_beside(|db| tenants::all(db))
    }

    fn add_tenant(&self, tenant: &Tenant) -> Result<(), StoreError> {
        self.0.write(|db| tenants::add(db, tenant))
    }
}

impl<D: Database> BudgetStore for SqlStore<D> {
    fn budget(&self, tenant: &TenantId, now: Timestamp) -> Result<Budget, StoreError> {
        self.0.write(|db| budgets::budget(db, tenant, now))
    }

    fn reserve(&self, tenant: &TenantId, tokens: u64, now: Timestamp) -> Result<bool, StoreError> {
        self.0.write(|db| budgets::reserve(db, tenant, tokens, now))
    }

    fn settle(&self, tenant: &TenantId, delta: i64, now: Timestamp) -> Result<(Budget, bool), StoreError> {
        self.0.write(|db| budgets::settle(db, tenant, delta, now))
    }

    fn set_budget(&self, tenant: &TenantId, change: &BudgetChange) -> Result<Budget, StoreError> {
        let key = self.0.sealing().change_key();
        self.0.write(|db| {
            other_key::refuse(db, key.as_ref())?;
            let (before, budget) = budgets::set(db, tenant, change.total, change.by.at)?;
            let line = rules::budget_line(tenant, before, change);
            hooks::log_budget(db, line, &Changer { by: &change.by, key: key.as_ref() })?;
            Ok(budget)
        })
    }
}

impl<D: Database> OutboxStore for SqlStore<D> {
    fn enqueue(&self, jobs: Vec<OutboxJob>, done: OnKept) {
        self.0.hand_over(Batch::jobs(jobs, done));
    }

    fn take_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Vec<OutboxJob>, StoreError> {
        let taken = self.0.write(|db| outbox::take_due(db, (now, until), limit))?;
        Ok(outbox::opened(taken, self.0.sealing()))
    }

    fn jobs_left(&self) -> Result<u64, StoreError> {
        self.0.list(|db| outbox::jobs_left(db))
    }

    fn finish(&self, id: &str) -> Result<(), StoreError> {
        self.0.write(|db| outbox::finish(db, id))
    }

    fn try_again(&self, id: &str, attempts: u32, next_at: Timestamp) -> Result<(), StoreError> {
        self.0.write(|db| outbox::try_again(db, id, attempts, next_at))
    }
}

impl<D: Database> ExecutionStore for SqlStore<D> {
    fn keep_executions(&self, executions: Vec<Execution>, done: OnKept) {
        self.0.hand_over(Batch::executions(executions, done).patient(None));
    }

    fn executions(&self, query: &ExecutionQuery) -> Result<Vec<Execution>, StoreError> {
        self.0.list(|db| executions::list(db, query))
    }

    fn execution(&self, of: &TenantScope, id: &str) -> Result<Option<Execution>, StoreError> {
        let found = self.0.list(|db| executions::by_id(db, of, id))?;
        found.map(|(execution, sealed)| opened(execution, sealed, self.0.sealing())).transpose()
    }

    fn note_read(&self, execution: &Execution, by: &Actor) -> Result<(), StoreError> {
        let note = detail_read(execution, by)?;
        self.0.write(|db| audit::append_all(db, &[&note]).map(drop))
    }

    fn forget(&self, rows_before: Timestamp, details_before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.0.write(|db| executions::forget(db, rows_before, details_before, limit))
    }
}

impl<D: Database> AuditStore for SqlStore<D> {
    fn audit_entries(&self, tenant: &TenantId, from_seq: u64, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        self.0.list(|db| audit::entries(db, tenant, from_seq, limit))
    }

    fn checkpoints(&self, tenant: &TenantId, from_seq: u64, limit: usize) -> Result<Vec<AuditCheckpoint>, StoreError> {
        self.0.list(|db| audit::checkpoints(db, tenant, from_seq, limit))
    }

    fn last_checkpoint(&self, tenant: &TenantId) -> Result<Option<AuditCheckpoint>, StoreError> {
        self.0.list(|db| audit::last_checkpoint(db, tenant))
    }

    fn audited(&self) -> Result<Vec<TenantId>, StoreError> {
        self.0.list(|db| audit::audited(db))
    }

    fn unhashed(&self) -> Result<Vec<(TenantId, u64)>, StoreError> {
        self.0.list(tail::unhashed)
    }

    fn forget_audit(&self, tenant: &TenantId, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let Some(last) = self.0.list(|db| audit::cut_at(db, tenant, before))? else { return Ok(0) };
        let (gone, cut) = self.0.write(|db| audit::cut_some(db, tenant, last, limit))?;
        if let (Some(anchor), Some(cut)) = (&self.0.sealing().anchor, cut) {
            anchor.cut(tenant, cut);
        }
        Ok(gone)
    }
}

impl<D: Database> UploadStore for SqlStore<D> {
    fn keep_upload(&self, upload: &Upload, content: &[u8], quota_bytes: u64) -> Result<bool, StoreError> {
        self.0.write(|db| exchange::keep_upload(db, upload, content, quota_bytes))
    }

    fn upload(&self, tenant: &TenantId, id: &str) -> Result<Option<Upload>, StoreError> {
        self.0.read(|db| exchange::upload(db, tenant, id))
    }

    fn upload_content(&self, tenant: &TenantId, id: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.read(|db| exchange::upload_content(db, tenant, id))
    }

    fn take_upload(&self, session: &SessionKey, id: &str, user: &str) -> Result<bool, StoreError> {
        self.0.write(|db| exchange::take_upload(db, session, id, user))
    }

    fn forget_uploads(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.0.write(|db| exchange::forget_uploads(db, before, limit))
    }
}

impl<D: Database> RepeatStore for SqlStore<D> {
    fn begin_repeat(&self, name: &RepeatName, new: &Repeat, since: Timestamp) -> Result<Option<Repeat>, StoreError> {
        self.0.write(|db| exchange::begin_repeat(db, name, new, since))
    }

    fn repeat(&self, name: &RepeatName, since: Timestamp) -> Result<Option<Repeat>, StoreError> {
        self.0.read_beside(|db| exchange::repeat(db, name, since))
    }

    fn end_repeats(&self, tenant: &TenantId, turn_id: &TurnId, outcome: Option<&str>) -> Result<(), StoreError> {
        self.0.write(|db| exchange::end_repeats(db, tenant, turn_id, outcome))
    }

    fn forget_repeat(&self, name: &RepeatName) -> Result<(), StoreError> {
        self.0.write(|db| exchange::forget_repeat(db, name))
    }

    fn forget_repeats(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.0.write(|db| exchange::forget_repeats(db, before, limit))
    }

    fn remember_passed(&self, codes: &[String], at: Timestamp) -> Result<(), StoreError> {
        self.0.write(|db| exchange::remember_passed(db, codes, at))
    }

    fn passed(&self, codes: &[String], since: Timestamp) -> Result<BTreeSet<String>, StoreError> {
        self.0.read(|db| exchange::passed(db, codes, since))
    }
}
