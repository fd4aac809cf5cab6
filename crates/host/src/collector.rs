//! The collector that is told what the hooks of a host do, where one is named.

use std::sync::{Arc, Weak};

use jiff::Timestamp;
use pintle_domain::hook::HookState;
use pintle_domain::id::TenantId;
use pintle_domain::measure::{BREAKERS_OPEN, BUDGET_LEFT, EVIDENCE_LOST, Labels, MAX_TENANTS, Metric, MetricRows};
use pintle_engine::evidence::Evidence;
use pintle_engine::live_rules::{LiveRules, RulesByTenant};
use pintle_engine::{Engine, Tracer};
use pintle_rules::handler::{ObserverPool, RuleServices};
use pintle_store::Store;
use pintle_telemetry::{CollectorSettings, Exporter};

use crate::config::{Config, Env};

/// A collector that is told.
pub struct Collector {
    exporter: Arc<Exporter>,
    tracer: Arc<Tracer>,
}

/// What is looked at when numbers are told. It keeps nothing alive but the store, which outlives all of it.
struct Sources {
    live: Weak<LiveRules>,
    evidence: Weak<Evidence>,
    pool: Weak<ObserverPool>,
    store: Arc<dyn Store>,
}

impl Collector {
    /// The collector that `config` or the environment names. One that cannot be told anything is said in the log, and
    /// nothing is sent: agents work without it. Needs a runtime.
    pub fn open(config: &Config, env: &Env) -> Option<Self> {
        let said = |name: &str| env.text(name).map(str::to_owned);
        let settings = CollectorSettings::read(config.otlp_endpoint.as_deref(), said);
        match settings.and_then(|settings| settings.map(Exporter::start).transpose()) {
            Ok(exporter) => {
                let exporter = exporter?;
                let tracer = Arc::new(Tracer::new(exporter.clone()));
                Some(Self { exporter, tracer })
            }
            Err(error) => {
                tracing::error!("telemetry: nothing is sent: {error}");
                None
            }
        }
    }

    /// Makes spans of what happens.
    pub fn tracer(&self) -> &Arc<Tracer> {
        &self.tracer
    }

    /// Lets what `engine`, `store` and `parts` know be told with the numbers.
    pub fn measure(&self, (engine, store): (&Engine, &Arc<dyn Store>), parts: &RuleServices) {
        let sources = Sources::of((engine, store), parts);
        self.exporter.read_gauges(Arc::new(move |tenants| sources.metrics(tenants)));
    }

    /// Tells what is left, once nothing happens any more; waits two seconds at most.
    pub async fn close(&self) {
        self.tracer.finish();
        self.exporter.close().await;
    }
}

/// Tells the numbers of hooks that are not counted but looked at, for tenants that had events; the result blocks.
pub(crate) fn gauges(
    of: (&Engine, &Arc<dyn Store>),
    parts: &RuleServices,
) -> impl FnOnce(&[TenantId]) -> Vec<Metric> + Send + 'static {
    let sources = Sources::of(of, parts);
    move |tenants| sources.metrics(tenants)
}

impl Sources {
    fn of((engine, store): (&Engine, &Arc<dyn Store>), parts: &RuleServices) -> Self {
        Self {
            live: Arc::downgrade(engine.live()),
            evidence: Arc::downgrade(engine.evidence()),
            pool: Arc::downgrade(&parts.pool),
            store: store.clone(),
        }
    }

    fn metrics(&self, seen: &[TenantId]) -> Vec<Metric> {
        let records = self.evidence.upgrade().map_or(0, |evidence| evidence.lost());
        let rows = self.pool.upgrade().map_or(0, |pool| pool.lost());
        let mut metrics = vec![Metric {
            name: EVIDENCE_LOST,
            help: "How many records of hooks the store did not take.",
            unit: "1",
            rows: MetricRows::Counters(vec![(Labels::new(), records + rows)]),
        }];
        if let Some(live) = self.live.upgrade() {
            metrics.push(open_breakers(&live.rules()));
        }
        metrics.push(self.budgets(seen));
        metrics
    }

    /// The tokens that are left for the judges of the tenants that had events. One that cannot be read is left out.
    fn budgets(&self, seen: &[TenantId]) -> Metric {
        let now = Timestamp::now();
        let rows = seen.iter().filter_map(|tenant| match self.store.budget(tenant, now) {
            Ok(budget) => Some((of_tenant(tenant), budget.remaining)),
            Err(error) => {
                tracing::debug!(%tenant, "telemetry: the budget could not be read: {error}");
                None
            }
        });
        Metric {
            name: BUDGET_LEFT,
            help: "What is left for judges this month, in tokens.",
            unit: "{token}",
            rows: MetricRows::Gauges(rows.collect()),
        }
    }
}

/// How many hooks of each tenant are taken out; those of tenants without rules of their own are the global ones.
fn open_breakers(rules: &RulesByTenant) -> Metric {
    let tripped = |mounted: &[pintle_engine::hook_set::Mounted]| {
        let open = mounted.iter().filter(|one| matches!(one.hook.state, HookState::Tripped { .. }));
        i64::try_from(open.count()).unwrap_or(i64::MAX)
    };
    let own = rules.tenants.iter().take(MAX_TENANTS).map(|(tenant, mounted)| (of_tenant(tenant), tripped(mounted)));
    let others = (Labels::from([("tenant_id", pintle_domain::measure::OTHERS.to_owned())]), tripped(&rules.others));
    Metric {
        name: BREAKERS_OPEN,
        help: "How many circuit breakers of hooks are open.",
        unit: "1",
        rows: MetricRows::Gauges(own.chain([others]).collect()),
    }
}

fn of_tenant(tenant: &TenantId) -> Labels {
    vec![("tenant_id", tenant.to_string())]
}
