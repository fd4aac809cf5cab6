//! What happens to rules and budgets, told to those who look at them: whoever changed a rule, in this process or another.

use std::sync::Arc;

use pintle_domain::id::TenantId;
use pintle_domain::json::{Value, json};
use pintle_domain::store::{Budget, LoggedChange};
use pintle_rules::cache::{ChangedBreaker, ChangedRow, RuleNews};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::Shared;
use crate::among_nodes::BUDGET;
use crate::pushed::Push;
use crate::webhooks::Happened;

impl Shared {
    /// Tells of what `happens`, until the end.
    pub(crate) async fn push(self: Arc<Self>, mut happens: UnboundedReceiver<Push>) {
        loop {
            let push = tokio::select! {
                push = happens.recv() => push,
                () = self.life.hard_stop.cancelled() => return,
            };
            match push {
                None => return,
                Some(Push::Rules(news)) => self.push_rules(news).await,
                Some(Push::LowBudget(tenant, budget)) => self.push_budget(&tenant, &budget),
            }
        }
    }

    async fn push_rules(self: &Arc<Self>, news: RuleNews) {
        let asked = news.clone();
        let lines = self.blocking(move |shared| Ok(asked.lines(&*shared.store)?)).await;
        let changes = match &lines {
            Ok(lines) => lines.iter().map(|line| (line.tenant_id.clone(), changed(line, news.epoch))).collect(),
            Err(error) => {
                tracing::warn!("who changed rules could not be read: {error}");
                news.rows.iter().map(|row| (row.tenant.clone(), unexplained(row, news.epoch))).collect::<Vec<_>>()
            }
        };
        for (tenant, payload) in &changes {
            self.hub.tell_viewers(tenant, "hooks.changed", payload);
        }
        for line in lines.iter().flatten() {
            self.desk.webhooks.happened(Happened::HookChanged(line.clone(), news.epoch));
        }
        for breaker in &news.breakers {
            self.hub.tell_viewers(&breaker.tenant, "hooks.breaker", &turned(breaker));
            if let Some(since) = &breaker.since {
                self.desk.webhooks.happened(Happened::BreakerTripped(breaker.clone(), since.clone()));
            }
        }
    }

    fn push_budget(&self, tenant: &TenantId, budget: &Budget) {
        self.tell_budget(tenant, budget);
        if self.store.is_shared() {
            self.life.nodes.say(json!({ "kind": BUDGET, "tenant": tenant }).to_string());
        }
        self.desk.webhooks.happened(Happened::BudgetLow(tenant.clone(), budget.clone()));
    }
}

impl Shared {
    fn tell_budget(&self, tenant: &TenantId, budget: &Budget) {
        let mut payload = json!(budget);
        payload["tenantId"] = json!(tenant);
        self.hub.tell_viewers(tenant, "hooks.budget", &payload);
    }

    /// Tells those here of a budget that another node found nearly spent.
    pub(crate) async fn tell_budget_of(self: &Arc<Self>, tenant: TenantId) {
        let of = tenant.clone();
        let budget = self.blocking(move |shared| Ok(shared.store.budget(&of, jiff::Timestamp::now())?)).await;
        match budget {
            Ok(budget) => self.tell_budget(&tenant, &budget),
            Err(error) => tracing::debug!("a budget could not be read: {error}"),
        }
    }
}

fn changed(line: &LoggedChange, epoch: u64) -> Value {
    json!({
        "hookId": line.hook_id,
        "action": line.action,
        "version": line.version,
        "actor": line.actor,
        "epoch": epoch,
    })
}

/// The same without what the change log would say.
fn unexplained(row: &ChangedRow, epoch: u64) -> Value {
    let action = match (row.from, row.to) {
        (0, _) => "created",
        (_, 0) => "deleted",
        (_, _) => "updated",
    };
    json!({ "hookId": row.hook, "action": action, "version": row.to, "actor": null, "epoch": epoch })
}

fn turned(breaker: &ChangedBreaker) -> Value {
    json!({
        "hookId": breaker.hook,
        "tenantId": breaker.tenant,
        "state": if breaker.since.is_some() { "open" } else { "closed" },
        "reason": breaker.reason(),
        "at": breaker.since.clone().unwrap_or_else(|| jiff::Timestamp::now().to_string()),
    })
}
