//! A sequence of calls, made from a number. Spaces are small, so that everything meets everything.

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use pintle_domain::breaker::{BreakerOutcome, BreakerPolicy, BreakerRun};
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::{Object, Value};
use pintle_domain::rule::{AGENT_EVENTS, Fallback, HandlerType, HookScope, Rule, Source};
use pintle_domain::store::{Actor, BudgetChange, OutboxJob, RuleChange, Tenant};

use super::steps::Step;

/// Longest sequence, without the tenants that it begins with.
const MAX_STEPS: usize = 11;

const TENANTS: u64 = 2;
const HOOKS: u64 = 3;
const JOBS: u64 = 4;

/// 2026-11-22T10:00:00Z: near the end of a month.
const BEGIN: i64 = 1_795_341_600;

const DAY_SECONDS: i64 = 86_400;

/// Settings that databases could keep otherwise: U+0000 in names and texts, numbers by their digits, secrets.
const OBJECTS: [&str; 8] = [
    r#"{}"#,
    r#"{"url":"https://example.com/check","headers":{"Authorization":"aes-gcm:01234567:YQ==","x-team":"blue"}}"#,
    r#"{"url":"https://example.com/check","headers":{"authorization":"aes-gcm:01234567:Yg=="},"strict":true}"#,
    r#"{"signing_secret":"aes-gcm:01234567:Yw==","secret_headers":["X-Key"],"headers":{"x-key":"aes-gcm:01234567:ZA=="}}"#,
    r#"{"source":"a\u0000b\ufdd0\ufdd00\ufdd02 7","\u0000":{"\ufdd01":["\u0000",""]}}"#,
    r#"{"n":[1e2,-0,-0.0,1.10,1E-400,12345678901234567890123.4500],"z":0,"a":{"deep":[[[{}]]]}}"#,
    r#"{"command":"echo 'ä € \"\\ 𝄞'","z":1,"a":2,"bb":3}"#,
    r#"{"prompt_template":"Is it safe?","model":"haiku","max_invocations_per_turn":5}"#,
];

const NAMES: [&str; 5] = ["", "guard", "nul \0", "\u{fdd0}0 %_'\"", "ß𝄞"];

const TOTALS: [i64; 5] = [0, 1, 1000, 1_000_000, -5];

pub(super) struct Sequence {
    pub(super) steps: Vec<Step>,
    pub(super) tenants: Vec<TenantId>,
    pub(super) hooks: Vec<HookId>,
    /// After the last step.
    pub(super) end: Timestamp,
}

/// Makes one.
struct Maker {
    rng: Rng,
    now: Timestamp,
    tenants: Vec<TenantId>,
    hooks: Vec<HookId>,
    jobs: Vec<String>,
}

impl Sequence {
    pub(super) fn new(number: u64) -> Self {
        let mut maker = Maker {
            rng: Rng::with_seed(number),
            now: Timestamp::from_second(BEGIN).expect("it is in 2026"),
            tenants: (0..TENANTS).map(|it| TenantId::from(uuid(1, number, it).as_str())).collect(),
            hooks: (0..HOOKS).map(|it| HookId::from(uuid(2, number, it).as_str())).collect(),
            jobs: (0..JOBS).map(|it| uuid(3, number, it)).collect(),
        };
        let mut steps: Vec<Step> = (0..maker.tenants.len()).map(|it| maker.add_tenant(it)).collect();
        let many = maker.rng.usize(1..=MAX_STEPS);
        steps.extend((0..many).map(|_| maker.step()));
        let Maker { tenants, hooks, now, .. } = maker;
        Self { steps, tenants, hooks, end: now }
    }

    /// Who clears up.
    pub(super) fn actor(&self) -> Actor {
        Actor { name: "cli".into(), at: self.end, reason: String::new() }
    }
}

/// The identifier of a thing of one kind in one sequence.
fn uuid(kind: u8, sequence: u64, which: u64) -> String {
    format!("{kind:08x}-0000-7000-8000-{:012x}", sequence * 16 + which)
}

impl Maker {
    fn step(&mut self) -> Step {
        self.pass();
        match self.rng.u32(0..46) {
            0..10 => Step::Change(vec![self.create()], self.actor()),
            10..16 => Step::Change(vec![self.update()], self.actor()),
            16..18 => Step::Change(vec![RuleChange::delete(self.hook_id())], self.actor()),
            18..20 => self.several(),
            20..24 => Step::Trip(self.hook_id(), self.tenant(), self.actor()),
            24..27 => self.reset(),
            27..30 => self.keep_run(),
            30 => Step::AddTenant(self.any_tenant()),
            31 => Step::Hook(self.hook_id()),
            32 => Step::Changes(self.hook_id(), self.rng.usize(0..3)),
            33 => Step::Rules,
            34..40 => self.budget(),
            40.. => self.outbox(),
        }
    }

    /// Some time, down to nanoseconds; now and then the rest of the month.
    fn pass(&mut self) {
        let seconds = match self.rng.u32(0..12) {
            0 => 40 * DAY_SECONDS,
            1..4 => 0,
            _ => self.rng.i64(0..90),
        };
        self.now += SignedDuration::new(seconds, self.rng.i32(0..1_000_000_000));
    }

    fn actor(&mut self) -> Actor {
        let name = *self.pick(&["cli", "system:breaker", "nul \0"]);
        Actor { name: name.to_owned(), at: self.now, reason: String::new() }
    }

    fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.rng.usize(0..from.len())]
    }

    fn hook_id(&mut self) -> HookId {
        self.hooks[self.rng.usize(0..self.hooks.len())].clone()
    }

    fn tenant(&mut self) -> TenantId {
        self.tenants[self.rng.usize(0..self.tenants.len())].clone()
    }

    /// A tenant that there may not be.
    fn some_tenant(&mut self) -> TenantId {
        match self.rng.u32(0..12) {
            0 => TenantId::from(uuid(9, 0, 0).as_str()),
            _ => self.tenant(),
        }
    }

    fn add_tenant(&mut self, which: usize) -> Step {
        let id = self.tenants[which].clone();
        Step::AddTenant(Tenant { slug: format!("t-{id}"), name: "Ada".into(), created_at: self.now.to_string(), id })
    }

    /// One whose id or whose slug is taken.
    fn any_tenant(&mut self) -> Tenant {
        let (one, another) = (self.tenant(), self.tenant());
        Tenant { slug: format!("t-{another}"), id: one, name: String::new(), created_at: self.now.to_string() }
    }

    fn create(&mut self) -> RuleChange {
        RuleChange::Create(Box::new(self.hook()))
    }

    fn update(&mut self) -> RuleChange {
        let if_version = match self.rng.u32(0..4) {
            0 => Some(self.rng.u32(1..4)),
            _ => None,
        };
        let action = *self.pick(&["updated", "toggled", "reset", "disabled"]);
        RuleChange::Update { hook: Box::new(self.hook()), if_version, action }
    }

    fn several(&mut self) -> Step {
        let one = |maker: &mut Self| match maker.rng.u32(0..4) {
            0 | 1 => maker.create(),
            2 => maker.update(),
            _ => RuleChange::delete(maker.hook_id()),
        };
        let many = self.rng.usize(0..4);
        Step::Change((0..many).map(|_| one(self)).collect(), self.actor())
    }

    fn reset(&mut self) -> Step {
        let tenant = if self.rng.bool() { Some(self.tenant()) } else { None };
        Step::Reset(self.hook_id(), tenant, self.actor())
    }

    fn keep_run(&mut self) -> Step {
        let mut run = BreakerRun::default();
        for _ in 0..self.rng.u32(0..4) {
            run.take(BreakerPolicy::All, BreakerOutcome::Block, self.now);
        }
        Step::KeepRun(self.hook_id(), self.tenant(), run, self.now)
    }

    fn hook(&mut self) -> Rule {
        let scope = *self.pick(HookScope::ALL);
        let tenant_id = if scope == HookScope::Global { TenantId::sentinel() } else { self.some_tenant() };
        let agents = if scope == HookScope::Agent { self.rng.u64(1..3) } else { 0 };
        let instead = |maker: &mut Self| *maker.pick(Fallback::ALL);
        let is_tripped = self.rng.u32(0..8) == 0;
        Rule {
            id: self.hook_id(),
            tenant_id,
            agent_ids: (0..agents).map(|agent| uuid(4, 0, agent)).collect(),
            event: *self.pick(&AGENT_EVENTS),
            handler_type: *self.pick(HandlerType::ALL),
            scope,
            name: (*self.pick(&NAMES)).to_owned(),
            config: self.object(),
            matcher: (*self.pick(&["", "^exec$", "\0"])).to_owned(),
            if_expr: (*self.pick(&["", "depth > 1"])).to_owned(),
            timeout_ms: *self.pick(&[1, 5000, 10_000]),
            on_timeout: instead(self),
            priority: *self.pick(&[i32::MIN, -1, 0, 900, i32::MAX]),
            enabled: !is_tripped && self.rng.u32(0..4) > 0,
            version: self.rng.u32(0..9),
            source: *self.pick(Source::ALL),
            may_rewrite: self.rng.bool(),
            breaker: *self.pick(&BreakerPolicy::ALL),
            on_trip: instead(self),
            tripped_at: is_tripped.then(|| "2026-11-21T23:59:59.000001Z".to_owned()),
            disabled_reason: (*self.pick(&["", "edition"])).to_owned(),
            metadata: self.object(),
            created_by: Some("ann".to_owned()).filter(|_| self.rng.bool()),
            created_at: (*self.pick(&["2026-01-31T12:00:00Z", "2025-12-31T23:59:59.999999Z"])).to_owned(),
            updated_at: "1970-01-01T00:00:00Z".to_owned(),
        }
    }

    fn object(&mut self) -> Object {
        let text: &str = self.pick::<&str>(&OBJECTS);
        match serde_json::from_str(text) {
            Ok(Value::Object(members)) => members,
            other => panic!("no object: {other:?}"),
        }
    }

    fn budget(&mut self) -> Step {
        let tenant = self.some_tenant();
        // Another process has a clock of its own.
        let late = self.rng.u32(0..6) == 0;
        let now = if late { self.now - SignedDuration::from_secs(30 * DAY_SECONDS) } else { self.now };
        match self.rng.u32(0..10) {
            0 => Step::Budget(tenant, now),
            1..5 => Step::Reserve(tenant, *self.pick(&[0, 1, 600, 400_000, 1_000_000, u64::MAX]), now),
            5..8 => Step::Settle(tenant, *self.pick(&[0, 1, -1, -600, 850_000, 2_000_000]), now),
            _ => {
                let by = Actor { at: now, ..self.actor() };
                let reason = (*self.pick(&["", "a quiet month"])).to_owned();
                Step::SetBudget(tenant, BudgetChange { total: *self.pick(&TOTALS), by, reason })
            }
        }
    }

    fn outbox(&mut self) -> Step {
        let later = self.now + SignedDuration::new(self.rng.i64(0..60), 123_456_789);
        match self.rng.u32(0..10) {
            0..5 => {
                let many = self.rng.usize(0..3);
                Step::Enqueue((0..many).map(|_| self.job()).collect())
            }
            5..8 => Step::TakeDue(self.now, later, self.rng.usize(0..3)),
            8 => Step::Finish(self.job_id()),
            _ => Step::TryAgain(self.job_id(), self.rng.u32(0..5), later),
        }
    }

    fn job_id(&mut self) -> String {
        self.jobs[self.rng.usize(0..self.jobs.len())].clone()
    }

    fn job(&mut self) -> OutboxJob {
        OutboxJob {
            id: self.job_id(),
            tenant_id: self.tenant(),
            hook_id: self.hook_id(),
            event_id: uuid(5, 0, 0),
            payload: (0..self.rng.usize(0..40)).map(|_| self.rng.u8(..)).collect(),
            attempts: self.rng.u32(0..5),
            next_at: self.now + SignedDuration::new(self.rng.i64(0..60), 987_654_321),
        }
    }
}
