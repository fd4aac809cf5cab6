//! Hooks that ask a language model, and what that may cost. What never left this host costs nothing.

use std::time::Duration;

use crate::judge::{self, JudgeQuestion};
use crate::reply::{self, HandlerReply};
use pintle_domain::account::Account;
use pintle_domain::fault::Fault;
use pintle_domain::json::{Value, canonical};
use pintle_domain::record::{BudgetNeed, NotRun};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use pintle_engine::deadlines::Elapsed;

use super::answer::Failure;
use super::booking::Booking;
use super::judges::{JudgeChoice, Judgement, QuestionSent};
use super::running::{RuleQuestion, RuleRunner};

/// What a judge may write, in tokens, which is reserved with its question.
const ANSWER_TOKENS: u64 = judge::MAX_OUTPUT_TOKENS as u64;

/// What a provider adds to a question in words of its own, in tokens: the frame of a tool call is some hundreds.
const FRAME_TOKENS: u64 = 1_024;

/// The most that a question of so many bytes can cost, in tokens. No model reads more tokens than bytes.
fn costs_at_most(question_bytes: usize) -> u64 {
    (question_bytes as u64).saturating_add(ANSWER_TOKENS + FRAME_TOKENS)
}

/// The judge was not asked, since what it may cost is spent: this says nothing of the hook.
fn refused(account: &mut Account, why: NotRun, reason: String) -> HandlerReply {
    (account.uncounted, account.instead) = (true, Some(why));
    HandlerReply { decision: reply::Decision::Block, reason: Some(reason), ..HandlerReply::default() }
}

impl RuleQuestion<'_> {
    /// Cache, cap, reserve, call, settle, cache.
    pub(super) async fn judge(&self, account: &mut Account) -> Result<HandlerReply, Failure> {
        let RuleRunner::Prompt { template, max_per_turn, on_injection, .. } = &self.about.runs else {
            return Err(Failure::unavailable("it is not a prompt hook"));
        };
        let judges = &self.about.parts.judges;
        let key = self.cache_key();
        if let Some(said) = judges.earlier(&key) {
            account.cached = true;
            account.injection_detected = said.injection_detected;
            return Ok(said);
        }
        let question = judge::request(template, self.event.name(), self.facts.tool, self.facts.input, nonce())
            .map_err(|large| Failure::of(Fault::broke(large.to_string()), large.to_string()))?;
        if !self.who.is_test && !judges.may_ask(self.who.turn_id.as_str(), self.about.id().as_str(), *max_per_turn) {
            let cap = NotRun::CapReached { cap: *max_per_turn };
            return Ok(refused(account, cap, format!("max_invocations_per_turn ({max_per_turn}) reached")));
        }
        let most = costs_at_most(question.bytes());
        let reserved = (question.bytes() as u64).div_ceil(3) + ANSWER_TOKENS;
        let began = Instant::now();
        // The time of the hook is that of the books, too.
        let booked = tokio::time::timeout(self.timeout, Booking::of(self, reserved)).await;
        if !matches!(booked, Ok(Ok(Some(_)))) {
            self.nobody_was_asked();
        }
        let Some(booking) = booked.map_err(|_elapsed| self.timed_out())?? else {
            let need = BudgetNeed { needed: reserved, left: self.budget_left().await };
            let reason = format!("tenant budget exceeded: {need}");
            return Ok(refused(account, NotRun::BudgetSpent(need), reason));
        };
        let answered = self.call(question, self.timeout.saturating_sub(began.elapsed()), &booking.sent).await;
        let told = answered.as_ref().ok().and_then(|judged| judged.reply.usage).map(|usage| usage.total_tokens);
        // What an endpoint claims beyond that spends nobody's month.
        let spent = told.map(|told| told.min(most));
        if let Some(told) = told.filter(|told| *told > most) {
            let (hook_id, tenant) = (self.about.id(), &self.who.tenant_id);
            tracing::warn!(%hook_id, %tenant, told, most, "a judge claims more tokens than its question can cost");
        }
        if answered.is_ok() {
            booking.sent.mark();
        } else if !booking.sent.is_marked() {
            self.nobody_was_asked();
        }
        booking.settle(spent.filter(|spent| *spent > 0)).await;
        let judged = answered?;
        account.model = Some(judged.model.clone());
        account.tokens = spent;
        let said = match reply::decide(&judged.reply, *on_injection) {
            Ok(said) => said,
            Err(broken) => {
                let failure = Failure::from(broken);
                self.log_broken(&failure.fault, reply::saw_injection(&judged.reply));
                return Err(failure);
            }
        };
        account.injection_detected = said.injection_detected;
        judges.keep(key, &said);
        Ok(said)
    }

    /// The cap counts calls of judges, and this one was none.
    fn nobody_was_asked(&self) {
        if !self.who.is_test {
            self.about.parts.judges.not_asked(self.who.turn_id.as_str(), self.about.id().as_str());
        }
    }

    async fn call(
        &self,
        question: JudgeQuestion,
        timeout: Duration,
        sent: &QuestionSent,
    ) -> Result<Judgement, Failure> {
        let RuleRunner::Prompt { model, provider, .. } = &self.about.runs else {
            return Err(Failure::unavailable("it is not a prompt hook"));
        };
        let parts = &self.about.parts;
        let Some(evaluator) = &parts.evaluator else {
            return Err(Failure::unavailable("hook resolver: no providers registered for tenant"));
        };
        let wanted = JudgeChoice { provider: provider.as_deref(), model, settings: &parts.judge };
        match parts.deadlines.within(timeout, evaluator.judge(wanted, question, sent)).await {
            Ok(Ok(judged)) => Ok(judged),
            Ok(Err(why)) => Err(Failure::unavailable(why)),
            Err(Elapsed) => Err(self.timed_out()),
        }
    }

    fn log_broken(&self, fault: &Fault, injection_detected: bool) {
        let err = fault.phrase();
        let (hook_id, tenant) = (self.about.id(), &self.who.tenant_id);
        tracing::error!(%hook_id, %tenant, %err, injection_detected, "security.hook.prompt_parse_error");
    }

    fn cache_key(&self) -> [u8; 32] {
        let input = self.facts.input.map_or(Value::Null, |input| Value::Object(input.clone()));
        // An unsaved hook has no version that its settings would change.
        let settings = if self.about.version() == 0
            && let RuleRunner::Prompt { template, model, provider, on_injection, .. } = &self.about.runs
        {
            pintle_domain::json::json!([template, model, provider, *on_injection == reply::InjectionEffect::Block])
        } else {
            Value::Null
        };
        let key = pintle_domain::json::json!([
            self.who.tenant_id,
            self.about.id(),
            self.about.version(),
            settings,
            self.event,
            self.facts.tool,
            input,
        ]);
        Sha256::digest(canonical(&key).as_bytes()).into()
    }
}

/// 128 bits that nobody can predict: two random identifiers, since each of them has six fixed bits.
fn nonce() -> u128 {
    uuid::Uuid::new_v4().as_u128() ^ uuid::Uuid::new_v4().as_u128().rotate_left(64)
}
