//! What a question to a judge takes of its tenant's budget: booked before it is asked, corrected by what it cost, and given
//! back where it never left this host.

use std::time::Duration;

use pintle_domain::record::BudgetLeft;
use pintle_domain::store::Budget;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::answer::Failure;
use super::judges::QuestionSent;
use super::running::RuleQuestion;

/// How long an answer waits for what it cost to be booked: less than the time that a run has after its deadline.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// What is booked for one question. Whoever drops it before it is settled, such as a turn that is cancelled, gets back
/// what was booked for a question that had not left yet.
pub(super) struct Booking<'a> {
    question: &'a RuleQuestion<'a>,
    tokens: u64,
    settled: bool,
    /// Whether the question left.
    pub(super) sent: QuestionSent,
}

impl<'a> Booking<'a> {
    /// Books `tokens`, which is what the call may cost; nothing where they do not fit.
    pub(super) async fn of(question: &'a RuleQuestion<'a>, tokens: u64) -> Result<Option<Self>, Failure> {
        let (budgets, tenant) = (question.about.parts.budgets.clone(), question.who.tenant_id.clone());
        let booked =
            tokio::task::spawn_blocking(move || budgets.reserve(&tenant, tokens, jiff::Timestamp::now())).await;
        let why = match booked {
            Ok(Ok(fits)) => {
                let booking = || Self { question, tokens, settled: false, sent: QuestionSent::default() };
                return Ok(fits.then(booking));
            }
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let (hook_id, tenant) = (question.about.id(), &question.who.tenant_id);
        tracing::error!(%hook_id, %tenant, "security.hook.budget_precheck_failed: {why}");
        Err(Failure::unavailable(format!("the budget could not be read: {why}")))
    }

    /// Corrects what was booked by what the provider says that the question cost. Without its word the estimate stands
    /// for a question that left, and nothing for one that did not; it is said if little is left.
    pub(super) async fn settle(mut self, told: Option<u64>) {
        self.settled = true;
        let unsent = if self.sent.is_marked() { self.tokens } else { 0 };
        let Some(settled) = self.correct(told.unwrap_or(unsent)) else { return };
        // Books that hang keep no answer back.
        match tokio::time::timeout(SETTLE_TIME, settled).await {
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(error)) => {
                let tenant = &self.question.who.tenant_id;
                tracing::error!(%tenant, "security.hook.budget_deduct_failed: {error}");
            }
        }
    }

    /// Books `spent` in the place of what was booked, in a task of its own: a turn that is given up now has been paid for
    /// all the same.
    fn correct(&self, spent: u64) -> Option<JoinHandle<()>> {
        let signed = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        let delta = signed(spent).saturating_sub(signed(self.tokens));
        let (budgets, tenant) = (self.question.about.parts.budgets.clone(), self.question.who.tenant_id.clone());
        let parts = self.question.about.parts.clone();
        let settle = move || match budgets.settle(&tenant, delta, jiff::Timestamp::now()) {
            Ok((budget, true)) => {
                tracing::warn!(%tenant, remaining = budget.remaining, "security.hook.budget_low");
                parts.judges.budget_is_low(&tenant, &budget);
            }
            Ok((_, false)) => {}
            Err(error) => tracing::error!(%tenant, "security.hook.budget_deduct_failed: {error}"),
        };
        // Without a runtime the program is over, and the estimate stands.
        let runtime = Handle::try_current().ok()?;
        Some(self.question.about.parts.tasks.spawn_blocking_on(settle, &runtime))
    }
}

impl Drop for Booking<'_> {
    fn drop(&mut self) {
        if !self.settled && !self.sent.is_marked() {
            drop(self.correct(0));
        }
    }
}

impl RuleQuestion<'_> {
    /// What is left of the budget that a question did not fit into.
    pub(super) async fn budget_left(&self) -> Option<BudgetLeft> {
        let (budgets, tenant) = (self.about.parts.budgets.clone(), self.who.tenant_id.clone());
        let read = tokio::task::spawn_blocking(move || budgets.budget(&tenant, jiff::Timestamp::now())).await;
        let budget: Budget = read.ok()?.ok()?;
        let tenant = &self.who.tenant_id;
        let named = (self.about.parts.slug_of)(tenant).unwrap_or_else(|| tenant.to_string());
        Some(BudgetLeft {
            tokens: u64::try_from(budget.remaining).unwrap_or(0),
            of: u64::try_from(budget.budget_total).unwrap_or(0),
            tenant: named,
            until: budget.comes_back(),
        })
    }
}
