//! What happens to rules and budgets, as it comes from a host.

use pintle_domain::id::TenantId;
use pintle_domain::store::Budget;
use pintle_rules::cache::RuleNews;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// One thing that happened.
pub(crate) enum Push {
    /// Rules or their breakers are others.
    Rules(RuleNews),
    /// A tenant has less than a fifth of its budget.
    LowBudget(TenantId, Budget),
}

/// Lets everything that happens to rules and budgets of `host` come out of the result.
pub(crate) fn listen(host: &pintle_host::Host) -> UnboundedReceiver<Push> {
    let (told, happens) = unbounded_channel();
    // Whoever listened may be gone: then nobody is told any more.
    let send = |told: &UnboundedSender<Push>, push| drop(told.send(push));
    let rules = told.clone();
    host.host_rules.rule_cache().tell(Box::new(move |news| send(&rules, Push::Rules(news))));
    let judges = &host.host_rules.parts().judges;
    judges.tell(Box::new(move |tenant, budget| send(&told, Push::LowBudget(tenant.clone(), budget.clone()))));
    happens
}
