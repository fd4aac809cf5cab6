//! The judges: who asks them, what they said lately, how often each was asked.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use pintle_domain::id::TenantId;
use pintle_domain::llm::LlmReply;
use pintle_domain::store::Budget;
use tokio::time::Instant;

use crate::judge::JudgeQuestion;
use crate::reply::HandlerReply;

/// How long an answer counts. Source: agent hooks, prompt handler.
const CACHE_TIME: Duration = Duration::from_secs(60);
/// How many answers are kept. Source: the same.
const CACHE_ENTRIES: usize = 1000;
/// How many turns' counts are kept: far more than run at once; the oldest is then long over.
const COUNTED_TURNS: usize = 4096;
/// Asks language models for judgements. These calls fire no hooks.
pub trait Evaluator: Send + Sync {
    /// Asks `question` of the model that is meant by `wanted`, and marks `sent` before anything of it leaves. Dropping the
    /// future ends the call.
    fn judge<'a>(
        &'a self,
        wanted: JudgeChoice<'a>,
        question: JudgeQuestion,
        sent: &'a QuestionSent,
    ) -> BoxFuture<'a, Result<Judgement, String>>;

    /// The model that `wanted` means, as it would be asked; nobody is.
    ///
    /// # Errors
    /// Why nobody could be asked.
    fn would_ask(&self, wanted: JudgeChoice<'_>) -> Result<String, String> {
        Ok(wanted.model.to_owned())
    }
}

/// Whether a question may have left this host: then it may cost something, whatever became of it.
#[derive(Debug, Default)]
pub struct QuestionSent(AtomicBool);

impl QuestionSent {
    /// It leaves.
    pub fn mark(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it may have left.
    pub fn is_marked(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Which model is to judge.
#[derive(Clone, Copy, Debug)]
pub struct JudgeChoice<'a> {
    /// The provider, if it must be that one.
    pub provider: Option<&'a str>,
    /// An alias such as `haiku`, or a model's name.
    pub model: &'a str,
    /// What counts where neither says enough.
    pub settings: &'a JudgeSettings,
}

/// Which model judges where a hook does not say. Each is `PROVIDER/MODEL`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JudgeSettings {
    /// `agent_hooks.prompt`.
    pub prompt: Option<String>,
    /// `background`.
    pub background: Option<String>,
}

/// What a model answered.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Its answer.
    pub reply: LlmReply,
    /// The model that answered.
    pub model: String,
}

/// What judges said lately, and how often each was asked in a turn.
#[derive(Default)]
pub struct Judges {
    said: Mutex<Cache>,
    asked: Mutex<Counts>,
    heard: OnceLock<OnLowBudget>,
}

/// Called the first time in a month that a tenant has less than a fifth of its budget. Must not block.
pub type OnLowBudget = Box<dyn Fn(&TenantId, &Budget) + Send + Sync>;

#[derive(Default)]
struct Cache {
    entries: HashMap<[u8; 32], (Instant, HandlerReply)>,
    /// Oldest first.
    order: VecDeque<[u8; 32]>,
}

#[derive(Default)]
struct Counts {
    by_turn: BTreeMap<(String, String), u32>,
    order: VecDeque<(String, String)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Judges {
    /// Lets `heard` know of budgets that run low. Only the first call counts.
    pub fn tell(&self, heard: OnLowBudget) {
        // Whoever came first goes on.
        drop(self.heard.set(heard));
    }

    pub(super) fn budget_is_low(&self, tenant: &TenantId, budget: &Budget) {
        if let Some(heard) = self.heard.get() {
            heard(tenant, budget);
        }
    }

    pub(super) fn earlier(&self, key: &[u8; 32]) -> Option<HandlerReply> {
        let mut cache = lock(&self.said);
        let (at, said) = cache.entries.get(key)?;
        if at.elapsed() < CACHE_TIME {
            let said = said.clone();
            cache.order.retain(|other| other != key);
            cache.order.push_back(*key);
            return Some(said);
        }
        None
    }

    pub(super) fn keep(&self, key: [u8; 32], said: &HandlerReply) {
        let mut cache = lock(&self.said);
        cache.order.retain(|other| *other != key);
        cache.order.push_back(key);
        cache.entries.insert(key, (Instant::now(), said.clone()));
        while cache.entries.len() > CACHE_ENTRIES {
            let Some(oldest) = cache.order.pop_front() else { break };
            cache.entries.remove(&oldest);
        }
    }

    /// Counts one more call of `hook` in `turn`; `false` if it had `max` already.
    pub(super) fn may_ask(&self, turn: &str, hook: &str, max: u32) -> bool {
        let mut counts = lock(&self.asked);
        let key = (turn.to_owned(), hook.to_owned());
        let known = counts.by_turn.get(&key).copied();
        let asked = known.unwrap_or_default();
        if asked >= max {
            return false;
        }
        if known.is_none() {
            counts.order.push_back(key.clone());
        }
        counts.by_turn.insert(key, asked + 1);
        while counts.order.len() > COUNTED_TURNS {
            let Some(oldest) = counts.order.pop_front() else { break };
            counts.by_turn.remove(&oldest);
        }
        true
    }

    /// Takes back one count of [`Judges::may_ask`].
    pub(super) fn not_asked(&self, turn: &str, hook: &str) {
        let mut counts = lock(&self.asked);
        if let Some(asked) = counts.by_turn.get_mut(&(turn.to_owned(), hook.to_owned())) {
            *asked = asked.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn calls_at_the_same_time_share_one_cap() {
        let judges = Judges::default();
        let let_in = std::thread::scope(|scope| {
            let asking = || (0..100).filter(|_| judges.may_ask("turn", "hook", 70)).count();
            let askers: Vec<_> = (0..4).map(|_| scope.spawn(asking)).collect();
            askers.into_iter().map(|asker| asker.join().unwrap()).sum::<usize>()
        });
        assert_eq!(let_in, 70);
        assert!(judges.may_ask("another turn", "hook", 1) && judges.may_ask("turn", "another hook", 1));
    }

    #[test]
    fn a_call_that_came_to_nothing_counts_for_nothing() {
        let judges = Judges::default();
        assert!(judges.may_ask("turn", "hook", 1) && !judges.may_ask("turn", "hook", 1));
        judges.not_asked("turn", "hook");
        assert!(judges.may_ask("turn", "hook", 1) && !judges.may_ask("turn", "hook", 1));
        judges.not_asked("nobody's", "hook");
        assert_eq!(lock(&judges.asked).order.len(), 1, "each is there once");
    }

    #[test]
    fn the_oldest_counts_go_first() {
        let judges = Judges::default();
        (0..=COUNTED_TURNS).for_each(|turn| assert!(judges.may_ask(&turn.to_string(), "hook", 1)));
        assert!(!judges.may_ask("1", "hook", 1));
        assert!(judges.may_ask("0", "hook", 1));
        let counts = lock(&judges.asked);
        assert_eq!((counts.order.len(), counts.by_turn.len()), (COUNTED_TURNS, COUNTED_TURNS));
    }

    #[tokio::test(start_paused = true)]
    async fn answers_count_for_a_minute_and_the_ones_used_last_stay() {
        let judges = Judges::default();
        let key = |number: usize| -> [u8; 32] { Sha256::digest(number.to_string()).into() };
        let said = HandlerReply { reason: Some("so".into()), ..HandlerReply::default() };
        (0..CACHE_ENTRIES).for_each(|number| judges.keep(key(number), &said));
        assert!(judges.earlier(&key(0)).is_some());
        judges.keep(key(CACHE_ENTRIES), &said);
        assert!(judges.earlier(&key(0)).is_some() && judges.earlier(&key(1)).is_none());
        tokio::time::advance(CACHE_TIME).await;
        assert!(judges.earlier(&key(0)).is_none());
    }
}
