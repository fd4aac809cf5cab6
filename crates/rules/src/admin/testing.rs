//! One made-up event for one hook: its handler runs for real, and nothing is kept of it.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::builtin;
use jiff::{SignedDuration, Timestamp};
use pintle_domain::chain::{Chain, HookMachine as _, wanted};
use pintle_domain::checkpoint::{AgentInfo, Checkpoint, EventContext, Facts, Notice, ObservedEvent};
use pintle_domain::fault::Fault;
use pintle_domain::hook::{Hook, HookState, Scope};
use pintle_domain::id::{AgentId, EventId, HookId, TenantId, TurnId, agent_uuid};
use pintle_domain::identity::Identity;
use pintle_domain::json::Value;
use pintle_domain::record::NotRun;
use pintle_domain::roster::Roster;
use pintle_domain::rule::{Decision, HandlerType, HookScope, Rule, RuleDetails};
use tokio_util::sync::CancellationToken;

use super::reading::hook_id;
use super::sampling::Event;
use super::{AdminError, AdminErrorCode, Caller, CallerRole, RuleAdmin, Sample};
use crate::cache::{as_asked, handler, mount};
use crate::handler::RuleHandler;
use pintle_engine::handler::{Handler as _, HookCall, WireCache};

mod result;

pub use result::{HookSaid, TestResult};

/// The number of tests that one user may run in a minute. Source: the published admin methods.
pub const TESTS_PER_MINUTE: usize = 20;

/// The agent whose turn it is where the host has no agents.
const NOBODY: &str = "main";

/// The rule that is tested.
#[derive(Clone, Copy, Debug)]
pub enum TestTarget<'a> {
    /// The hook with this id.
    Saved(&'a str),
    /// A record that is in no store.
    Unsaved(&'a Value),
    /// The starter guards, as a chain.
    Starter,
}

/// When users tested hooks lately.
#[derive(Default)]
pub(super) struct Throttle(Mutex<BTreeMap<(TenantId, String), VecDeque<Timestamp>>>);

impl Throttle {
    /// Counts one test more.
    fn take(&self, by: &Caller, now: Timestamp) -> Result<(), AdminError> {
        let from = now - SignedDuration::from_secs(60);
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|_, tests| {
            tests.retain(|at| *at > from);
            !tests.is_empty()
        });
        let user = by.user.clone().unwrap_or_else(|| by.name.clone());
        let tests = users.entry((by.tenant.clone(), user)).or_default();
        if let Some(oldest) = tests.front().filter(|_| tests.len() >= TESTS_PER_MINUTE) {
            let text = format!("at most {TESTS_PER_MINUTE} tests of hooks per minute and user; try again in a minute");
            let wait = u64::try_from(oldest.duration_since(from).as_millis()).unwrap_or_default();
            let error = AdminError::new(AdminErrorCode::ResourceExhausted, text);
            return Err(AdminError { retry_after_ms: Some(wait.max(1)), ..error });
        }
        tests.push_back(now);
        Ok(())
    }
}

/// One hook, ready to be tried.
struct Trial {
    /// As it is in force.
    hook: Arc<Hook>,
    /// This hook for a chain that asks it whatever it is about.
    asked: Arc<Hook>,
    handler: Arc<RuleHandler>,
    who: Identity,
    known: Arc<dyn AgentInfo>,
    cancel: CancellationToken,
}

impl RuleAdmin {
    /// Asks one hook about an event that `sample` makes up. Its handler runs for real, whether the hook is about that
    /// event or not; the event says that it is a test. Nothing is kept but what a judge costs.
    ///
    /// # Errors
    /// The hook is not in order or not there; too many tests; or the caller may not.
    pub async fn test(&self, by: &Caller, what: TestTarget<'_>, sample: &Sample) -> Result<TestResult, AdminError> {
        match what {
            TestTarget::Saved(id) => {
                by.at_least(CallerRole::Operator, "test")?;
                let id = hook_id(id)?;
                self.throttle.take(by, self.now())?;
                let row = self.saved(by, id).await?;
                Ok(self.try_row(by, &row, sample).await?.0)
            }
            TestTarget::Unsaved(record) => {
                by.at_least(CallerRole::Admin, "test")?;
                self.throttle.take(by, self.now())?;
                let row = self.unsaved(by, record).await?;
                Ok(self.try_row(by, &row, sample).await?.0)
            }
            TestTarget::Starter => {
                by.at_least(CallerRole::Admin, "test")?;
                self.throttle.take(by, self.now())?;
                self.try_starters(by, sample).await
            }
        }
    }

    /// A hook of the store, in order, that the caller may run.
    async fn saved(&self, by: &Caller, id: HookId) -> Result<Rule, AdminError> {
        let by = by.clone();
        self.blocking(move |rule_admin| {
            let view = super::reading::View { by: &by, rules: rule_admin.freshest()? };
            let row = view.hook(&id)?.clone();
            if row.scope == HookScope::Global && !by.is_master() {
                return Err(AdminError::no_master());
            }
            if row.handler_type == HandlerType::Command {
                by.at_least(CallerRole::Admin, "test")?;
            }
            rule_admin.fit(&by, &view.rules, &row)?;
            Ok(row)
        })
        .await
    }

    /// A row that is in no store: nobody's version, and an id of its own, so that it shares nothing with any other.
    async fn unsaved(&self, by: &Caller, record: &Value) -> Result<Rule, AdminError> {
        let (by, record) = (by.clone(), record.clone());
        self.blocking(move |rule_admin| {
            let rules = rule_admin.freshest()?;
            let read = rule_admin.new_hook(&by, (&rules, None), &record)?;
            Ok(Rule { version: 0, ..read.hook })
        })
        .await
    }

    /// Asks the starter guards in their order, as a chain does: a question for a person leaves the later ones to be
    /// asked, and a refusal ends it.
    async fn try_starters(&self, by: &Caller, sample: &Sample) -> Result<TestResult, AdminError> {
        let (mut asked, mut chain) = (TestResult::default(), Vec::new());
        for record in builtin::starter(HookScope::Tenant) {
            let row = self.unsaved(by, &record).await?;
            let trial = self.trial(by, &row)?;
            let event = self.event(&row, sample, &trial);
            if !trial.foreseen(&event).is_match() {
                continue;
            }
            let result = self.run(&trial, event).await;
            let duration_ms = asked.duration_ms + result.duration_ms;
            chain.push(HookSaid::of(&row.name, &result));
            let ends = !matches!(result.decision, Decision::Allow | Decision::Ask);
            // Of two questions the first is put.
            let decides = ends || asked.decision != Decision::Ask;
            if decides {
                asked = TestResult { hook: Some(row.name), ..result };
            }
            asked.duration_ms = duration_ms;
            if ends {
                break;
            }
        }
        Ok(TestResult { chain, ..asked })
    }

    async fn try_row(&self, by: &Caller, row: &Rule, sample: &Sample) -> Result<(TestResult, String), AdminError> {
        let trial = self.trial(by, row)?;
        let event = self.event(row, sample, &trial);
        let foreseen = trial.foreseen(&event);
        let result = self.run(&trial, event).await;
        Ok((foreseen.noted(result), row.name.clone()))
    }

    fn trial(&self, by: &Caller, row: &Rule) -> Result<Trial, AdminError> {
        let agents = (self.parts.agents)();
        let tenant = if row.scope == HookScope::Global { &by.tenant } else { &row.tenant_id };
        let named = |agent: &&AgentId| row.agent_ids.contains(&agent_uuid(tenant, agent.as_str()));
        let agent = agents.iter().find(named).or(agents.first()).cloned().unwrap_or_else(|| AgentId::from(NOBODY));
        // It is tested as it would act if it did.
        let row = as_asked(row, &self.parts.rule_cache.rules()).into_owned();
        let acting = Rule { enabled: true, tripped_at: None, ..row };
        let hook = mount(&acting, &agents, &self.parts.parts).hook;
        let known = (self.parts.known_of)(tenant, &agent);
        let who = Identity {
            tenant_id: tenant.clone(),
            sender_id: by.user.clone().unwrap_or_else(|| by.name.clone()),
            is_test: true,
            ..Identity::top(agent.as_str(), "", TurnId::fresh())
        };
        Ok(Trial {
            asked: Arc::new(whatever_it_is_about(&hook)),
            handler: handler(&acting, hook.clone(), &self.parts.parts)?,
            hook,
            who,
            known,
            cancel: CancellationToken::new(),
        })
    }

    fn event(&self, row: &Rule, sample: &Sample, trial: &Trial) -> Event {
        sample.event(row, &trial.who.agent_id, &*trial.known)
    }

    async fn run(&self, trial: &Trial, event: Event) -> TestResult {
        match event {
            Event::Prompt(subject) => trial.ask(subject).await,
            Event::Tool(subject) => trial.ask(subject).await,
            Event::Subagent(subject) => trial.ask(subject).await,
            Event::Told(what) => trial.tell(what, self.now()).await,
        }
    }
}

/// The answers of a hook's matcher and condition about an event.
struct Prediction {
    matcher: bool,
    condition: Option<Result<bool, String>>,
}

impl Prediction {
    fn is_match(&self) -> bool {
        // What cannot be said is a fault, and the hook is asked for that.
        self.matcher && !matches!(self.condition, Some(Ok(false)))
    }

    fn noted(self, result: TestResult) -> TestResult {
        let (cel_result, cel_error) = match self.condition {
            None => (None, None),
            Some(Ok(holds)) => (Some(holds), None),
            Some(Err(why)) => (None, Some(why)),
        };
        TestResult { matcher_matched: self.matcher, cel_result, cel_error, ..result }
    }
}

impl Trial {
    fn event_context(&self) -> EventContext<'_> {
        EventContext { who: &self.who, known: &*self.known }
    }

    fn foreseen(&self, event: &Event) -> Prediction {
        match event {
            Event::Prompt(subject) => self.foresee(&subject.facts()),
            Event::Tool(subject) => self.foresee(&subject.facts()),
            Event::Subagent(subject) => self.foresee(&subject.facts()),
            Event::Told(what) => self.foresee(&what.facts()),
        }
    }

    fn foresee(&self, facts: &Facts<'_>) -> Prediction {
        let condition = self.hook.stored.as_ref().and_then(|stored| stored.condition.as_ref());
        let event = self.hook.stages.kinds().next().map_or("", |kind| kind.name());
        // Without its matcher only the condition is left to say no.
        let unmatched = Hook { matcher: None, ..(*self.hook).clone() };
        let condition = condition.map(|_| match wanted(&unmatched, event, facts, self.event_context()) {
            Ok(None) => Ok(true),
            Ok(Some(Fault::ConditionFailed { cause })) => Err(cause.shown()),
            Ok(Some(fault)) => Err(fault.explained().to_string()),
            Err(NotRun::Condition { .. }) => Ok(false),
            Err(other) => Err(format!("{other:?}")),
        });
        Prediction { matcher: self.hook.matches(facts), condition }
    }

    /// Asks a gate.
    async fn ask<C: Checkpoint>(&self, subject: C) -> TestResult {
        let alone = Arc::new(Roster::of(vec![self.asked.clone()]));
        let (event_id, wire) = (EventId::fresh(), WireCache::default());
        let mut chain = Chain::new(alone, self.event_context(), subject);
        let (mut wrote, mut said) = (None, None);
        while let Some(need) = chain.next() {
            let call = HookCall {
                event_id: &event_id,
                who: &self.who,
                subject: need.subject,
                timeout: need.timeout,
                budget: need.budget,
                again: need.again,
                cancel: &self.cancel,
                known: &*self.known,
                wire: &wire,
            };
            let began = Instant::now();
            let answered = self.handler.ask(call).await;
            if let Ok(reply) = &answered.heard {
                (wrote, said) = result::proposed(reply);
            }
            chain.settle(answered, began.elapsed());
        }
        let concluded = chain.conclude();
        let record = concluded.records.iter().next().map(Cow::into_owned);
        record.map(|record| TestResult::of_record(record, &concluded.ruling, (wrote, said))).unwrap_or_default()
    }

    /// Tells an observer.
    async fn tell(&self, what: ObservedEvent, at: Timestamp) -> TestResult {
        let kind = what.checkpoint();
        let notice = Notice { event_id: EventId::fresh(), at, who: self.who.clone(), what };
        if let HookState::Broken(fault) = &self.asked.state {
            return TestResult::of_fault(fault, fault.explained().to_string(), Duration::ZERO);
        }
        let began = Instant::now();
        let tried = self.handler.try_out(&notice, &self.cancel).await;
        TestResult::of_tried(tried, kind, began.elapsed())
    }
}

/// The hook without what limits it to some events.
fn whatever_it_is_about(hook: &Hook) -> Hook {
    let free = |stored: &Arc<RuleDetails>| Arc::new(RuleDetails { condition: None, ..(**stored).clone() });
    let only_condition = matches!(hook.state, HookState::Broken(Fault::ConditionFailed { .. }));
    let state = if only_condition { HookState::Armed } else { hook.state.clone() };
    let stored = hook.stored.as_ref().map(free);
    Hook { matcher: None, scope: Scope::Everyone, state, stored, ..hook.clone() }
}
