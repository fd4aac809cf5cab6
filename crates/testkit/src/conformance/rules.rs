//! What every store of rules has to do: what the model does, whatever is done in whatever order.
//!
//! A sequence is made from a number, so the number is all that a failure has to name. Each has tenants and hooks of its
//! own and leaves nothing but them, so many can share a store.

mod sequence;
mod steps;

use std::ops::Range;
use std::sync::mpsc::channel;

use jiff::Timestamp;
use pintle_domain::audit::AuditEntry;
use pintle_domain::id::TenantId;
use pintle_domain::json::{Value, json};
use pintle_domain::store::{
    AuditStore, BudgetStore, LoggedChange, OutboxJob, OutboxStore, RuleChange, RuleStore, StoreError, StoredRules,
    TenantScope,
};

use crate::rules::MemoryRules;
use sequence::Sequence;
use steps::Step;

/// Everything about rules.
pub trait RuleBackend: RuleStore + BudgetStore + OutboxStore + AuditStore {}

impl<S: RuleStore + BudgetStore + OutboxStore + AuditStore> RuleBackend for S {}

/// More than any sequence leaves of anything.
const ALL: usize = 1000;

/// Plays the sequences with these numbers on `store` and on the model. Says how many steps they had.
///
/// # Panics
/// The store says something else than the model, or ends up otherwise.
pub fn rules(store: &dyn RuleBackend, numbers: Range<u64>) -> usize {
    numbers.map(|number| sequence(store, number)).sum()
}

fn sequence(store: &dyn RuleBackend, number: u64) -> usize {
    let sequence = Sequence::new(number);
    let model = MemoryRules::new();
    let mut tried = Player::new(store, &sequence);
    let mut right = Player::new(&model, &sequence);
    for (at, step) in sequence.steps.iter().enumerate() {
        let (said, expected) = (tried.play(step), right.play(step));
        agree(&said, &expected, || format!("sequence {number}, step {at}, the last of {:#?}", &sequence.steps[..=at]));
    }
    agree(&tried.state(), &right.state(), || format!("sequence {number}, what is left of {:#?}", sequence.steps));
    agree(&tried.clear(), &right.clear(), || format!("sequence {number}, as it is cleared"));
    sequence.steps.len()
}

/// Panics with the first place in which two answers differ.
fn agree(said: &Value, expected: &Value, what: impl FnOnce() -> String) {
    if let Some((place, said, expected)) = difference(said, expected) {
        panic!("{}: at `{place}`, the store says\n{said}\nand the model\n{expected}", what());
    }
}

fn difference<'v>(a: &'v Value, b: &'v Value) -> Option<(String, &'v Value, &'v Value)> {
    let inside = |name: String, a, b| difference(a, b).map(|(place, a, b)| (format!("/{name}{place}"), a, b));
    match (a, b) {
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            left.iter().zip(right).enumerate().find_map(|(at, (a, b))| inside(at.to_string(), a, b))
        }
        (Value::Object(left), Value::Object(right)) if left.len() == right.len() => {
            let named = |(name, a): (&'v String, &'v Value)| match right.get(name) {
                Some(b) => inside(name.clone(), a, b),
                None => Some((format!("/{name}"), a, &Value::Null)),
            };
            left.iter().find_map(named)
        }
        (a, b) => (a != b).then(|| (String::new(), a, b)),
    }
}

/// Hands jobs over and waits until they are kept.
///
/// # Errors
/// What the store said.
///
/// # Panics
/// The store forgot to say.
pub fn enqueued(store: &dyn OutboxStore, jobs: Vec<OutboxJob>) -> Result<(), StoreError> {
    let (said, heard) = channel();
    store.enqueue(jobs, Box::new(move |how| said.send(how).expect("the test waits for it")));
    heard.recv().expect("`done` is called")
}

/// One store, in one sequence.
struct Player<'a> {
    store: &'a dyn RuleBackend,
    sequence: &'a Sequence,
    /// The epoch before the first step.
    before: u64,
}

impl<'a> Player<'a> {
    fn new(store: &'a dyn RuleBackend, sequence: &'a Sequence) -> Self {
        let before = store.epoch().expect("the store can be read");
        Self { store, sequence, before }
    }

    /// What the store says to it.
    fn play(&mut self, step: &Step) -> Value {
        let store = self.store;
        match step {
            Step::AddTenant(tenant) => said(store.add_tenant(tenant), |()| Value::Null),
            Step::Change(changes, by) => {
                said(store.change(changes.clone(), by), |changed| json!([self.since(changed.epoch), changed.versions]))
            }
            Step::Trip(id, tenant, by) => said(store.trip(id, tenant, by), |epoch| self.since(epoch)),
            Step::Reset(id, tenant, by) => said(store.reset(id, tenant.as_ref(), by), |epoch| self.since(epoch)),
            Step::KeepRun(id, tenant, run, now) => said(store.keep_run(id, tenant, run, *now), |()| Value::Null),
            Step::Hook(id) => said(store.hook(id), |hook| json!(hook)),
            Step::Changes(id, limit) => {
                said(store.changes(&TenantScope::All, id, *limit), |lines| lines.iter().map(line).collect())
            }
            Step::Rules => said(store.rules(), |rules| self.own(&rules)),
            Step::Budget(tenant, now) => said(store.budget(tenant, *now), |budget| json!(budget)),
            Step::Reserve(tenant, tokens, now) => said(store.reserve(tenant, *tokens, *now), Value::Bool),
            Step::Settle(tenant, delta, now) => said(store.settle(tenant, *delta, *now), |settled| json!(settled)),
            Step::SetBudget(tenant, change) => said(store.set_budget(tenant, change), |budget| json!(budget)),
            Step::Enqueue(jobs) => said(enqueued(store, jobs.clone()), |()| Value::Null),
            Step::TakeDue(now, until, limit) => {
                said(store.take_due(*now, *until, *limit), |jobs| jobs.iter().map(job).collect())
            }
            Step::Finish(id) => said(store.finish(id), |()| Value::Null),
            Step::TryAgain(id, attempts, at) => said(store.try_again(id, *attempts, *at), |()| Value::Null),
        }
    }

    fn since(&self, epoch: u64) -> Value {
        epoch.checked_sub(self.before).expect("epochs only grow").into()
    }

    /// What of `rules` belongs to the sequence.
    fn own(&self, rules: &StoredRules) -> Value {
        let is_own = |hook: &pintle_domain::id::HookId| self.sequence.hooks.contains(hook);
        let hooks: Vec<_> = rules.hooks.iter().filter(|hook| is_own(&hook.id)).collect();
        let trips: Vec<_> = rules.trips.iter().filter(|trip| is_own(&trip.hook_id)).collect();
        let runs: Vec<_> = rules.runs.iter().filter(|run| is_own(&run.0)).collect();
        let tenants: Vec<_> =
            rules.tenants.iter().filter(|tenant| self.sequence.tenants.contains(&tenant.id)).collect();
        json!([self.since(rules.epoch), hooks, trips, runs, tenants])
    }

    /// Everything that is left of the sequence.
    fn state(&mut self) -> Value {
        let Sequence { hooks, tenants, end, .. } = self.sequence;
        let each = hooks.iter().map(|id| Step::Changes(id.clone(), ALL));
        let budgets = tenants.iter().map(|tenant| Step::Budget(tenant.clone(), *end));
        let steps: Vec<Step> = each.chain(budgets).chain([Step::Rules]).collect();
        let answers: Vec<Value> = steps.iter().map(|step| self.play(step)).collect();
        let chains: Vec<Value> = tenants.iter().map(|tenant| self.chain(tenant)).collect();
        json!([answers, chains])
    }

    fn chain(&self, tenant: &TenantId) -> Value {
        said(self.store.audit_entries(tenant, 0, ALL), |entries| entries.iter().map(entry).collect())
    }

    /// Deletes what others would find: all hooks at once, and all jobs.
    fn clear(&mut self) -> Value {
        let left = self.store.rules().expect("the store can be read").hooks;
        let own = left.into_iter().map(|hook| hook.id).filter(|id| self.sequence.hooks.contains(id));
        let deleted = self.play(&Step::Change(own.map(RuleChange::delete).collect(), self.sequence.actor()));
        let there = self.store.jobs_left().expect("the store can be read");
        let jobs = self.store.take_due(Timestamp::MAX, self.sequence.end, ALL).expect("the store can be read");
        assert!(there >= jobs.len() as u64, "{there} jobs are there, and {} are due", jobs.len());
        let finished: Vec<Value> = jobs.iter().map(|job| self.play(&Step::Finish(job.id.clone()))).collect();
        json!([deleted, jobs.iter().map(job).collect::<Value>(), finished])
    }
}

/// An answer in words of the suite: what a taken id is called is each store's own affair.
fn said<T>(answer: Result<T, StoreError>, shown: impl FnOnce(T) -> Value) -> Value {
    match answer {
        Ok(answer) => json!({ "ok": shown(answer) }),
        Err(StoreError::NotFound(what)) => json!({ "not found": what }),
        Err(StoreError::Conflict(why)) if why.starts_with("version conflict") => json!({ "conflict": why }),
        Err(StoreError::Conflict(_)) => json!({ "conflict": "taken" }),
        Err(StoreError::Unavailable(why)) => json!({ "unavailable": why }),
        Err(StoreError::Corrupt(why)) => json!({ "corrupt": why }),
    }
}

/// A line of the change log without what is random in it.
fn line(line: &LoggedChange) -> Value {
    comparable(json!(line))
}

/// The same of the JSON of one, also where an entry of the audit chain has it: a store may say that a secret became
/// another one, and the order of members is nothing that a store keeps.
fn comparable(mut line: Value) -> Value {
    const MASK: &str = "********";
    line["id"] = Value::Null;
    if let Some(diff) = line["diff"].as_array_mut() {
        diff.retain(|change| change["op"] != "replace" || change["value"] != MASK);
        diff.sort_by_key(|change| change["path"].as_str().unwrap_or_default().to_owned());
    }
    line
}

fn entry(entry: &AuditEntry) -> Value {
    let mut body: Value = serde_json::from_str(&entry.body).expect("bodies are JSON");
    body["data"] = comparable(body["data"].take());
    if let Some(data) = body["data"].as_object_mut() {
        // How a store knows rows and entries that somebody else makes is its own affair.
        data.shift_remove("row");
        data.shift_remove("epoch");
        data.shift_remove("seal");
    }
    json!([entry.seq, entry.at, entry.kind.word(), body])
}

fn job(job: &OutboxJob) -> Value {
    json!([job.id, job.tenant_id, job.hook_id, job.event_id, job.payload, job.attempts, job.next_at])
}
