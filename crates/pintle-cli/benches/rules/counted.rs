//! The SQLite store behind the ports of the rule cache and the handlers, with a count of what is asked of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use anyhow::Context as _;
use jiff::Timestamp;
use pintle_domain::breaker::BreakerRun;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::record::EventRecord;
use pintle_domain::rule::Rule;
use pintle_domain::store::{
    Actor, Budget, BudgetChange, BudgetStore, LoggedChange, OnKept, RecordQuery, RecordStore, RoomSoon, RuleChange,
    RuleChangeResult, RuleStore, StoreError, StoredEvent, StoredRules, Tenant, TenantScope,
};
use pintle_store::Store;

/// A store that counts its questions: everything but the records that are handed over to be written.
pub(crate) struct Counted {
    store: Arc<dyn Store>,
    questions: AtomicUsize,
}

impl Counted {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, questions: AtomicUsize::new(0) }
    }

    /// How much was asked so far.
    pub(crate) fn questions(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }

    fn asked(&self) -> &dyn Store {
        self.questions.fetch_add(1, Ordering::SeqCst);
        &*self.store
    }

    /// Waits until everything is written that was handed over, and sees that nothing was lost.
    pub(crate) fn written(&self) -> anyhow::Result<()> {
        let (say, hear) = channel();
        self.store.keep(Vec::new(), Box::new(move |how| drop(say.send(how))));
        hear.recv().context("the store forgot to say")??;
        Ok(())
    }
}

impl RecordStore for Counted {
    fn keep(&self, records: Vec<EventRecord>, done: OnKept) {
        self.store.keep(records, done);
    }

    fn room(&self, records: &[EventRecord]) -> RoomSoon {
        self.store.room(records)
    }

    fn find(&self, query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        self.asked().find(query)
    }
}

impl RuleStore for Counted {
    fn rules(&self) -> Result<StoredRules, StoreError> {
        self.asked().rules()
    }

    fn epoch(&self) -> Result<u64, StoreError> {
        self.asked().epoch()
    }

    fn hook(&self, id: &HookId) -> Result<Option<Rule>, StoreError> {
        self.asked().hook(id)
    }

    fn change(&self, changes: Vec<RuleChange>, by: &Actor) -> Result<RuleChangeResult, StoreError> {
        self.asked().change(changes, by)
    }

    fn changes(&self, of: &TenantScope, id: &HookId, limit: usize) -> Result<Vec<LoggedChange>, StoreError> {
        self.asked().changes(of, id, limit)
    }

    fn trip(&self, id: &HookId, tenant: &TenantId, by: &Actor) -> Result<u64, StoreError> {
        self.asked().trip(id, tenant, by)
    }

    fn reset(&self, id: &HookId, tenant: Option<&TenantId>, by: &Actor) -> Result<u64, StoreError> {
        self.asked().reset(id, tenant, by)
    }

    fn keep_run(&self, id: &HookId, tenant: &TenantId, run: &BreakerRun, now: Timestamp) -> Result<(), StoreError> {
        self.asked().keep_run(id, tenant, run, now)
    }

    fn tenants(&self) -> Result<Vec<Tenant>, StoreError> {
        self.asked().tenants()
    }

    fn add_tenant(&self, tenant: &Tenant) -> Result<(), StoreError> {
        self.asked().add_tenant(tenant)
    }
}

impl BudgetStore for Counted {
    fn budget(&self, tenant: &TenantId, now: Timestamp) -> Result<Budget, StoreError> {
        self.asked().budget(tenant, now)
    }

    fn reserve(&self, tenant: &TenantId, tokens: u64, now: Timestamp) -> Result<bool, StoreError> {
        self.asked().reserve(tenant, tokens, now)
    }

    fn settle(&self, tenant: &TenantId, delta: i64, now: Timestamp) -> Result<(Budget, bool), StoreError> {
        self.asked().settle(tenant, delta, now)
    }

    fn set_budget(&self, tenant: &TenantId, change: &BudgetChange) -> Result<Budget, StoreError> {
        self.asked().set_budget(tenant, change)
    }
}
