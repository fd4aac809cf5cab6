//! Pintle as a service: agents and rules over WebSocket and HTTP.
//!
//! [`Gateway`] is one process that serves one configuration. It has no rule about what hooks decide; who may do what
//! stands in one table here and, for rules, in [`pintle_rules::admin`]. This file assembles the parts and shuts
//! them down in order.
//!
//! | module | holds |
//! |---|---|
//! | `door`, `claim`, `sign_in`, `guessing`, `principal` | whether a request may enter, who it claims to be, who it is |
//! | `roles`, `session_name` | the table of permissions; the names of sessions |
//! | `listening`, `tls`, `heads`, `http`, `served`, `openapi` | connections, certificates, HTTP; the table of routes and its description |
//! | `socket`, `frame`, `queue`, `hub` | one WebSocket client, its frames, its queue, all open connections |
//! | `methods`, `params`, `reference`, `error` | the methods of the protocol, and the table that describes it |
//! | `wire`, `model_doors` | agents served over two published model APIs; the model door |
//! | `lanes`, `errand`, `run`, `runs`, `working`, `ready`, `agents` | one run at a time per session, and the agents that carry it out |
//! | `run_output`, `heard`, `outcome`, `repeats`, `repeating` | a run's output and outcome; repeats |
//! | `nodes`, `among_nodes`, `routing`, `places`, `quotas`, `rates` | other nodes, and the limits counted across them |
//! | `attachments`, `media_type` | uploads |
//! | `turns`, `transcript`, `decisions`, `guards`, `proofs`, `shown`, `told` | what the console shows, computed from records and journals |
//! | `push`, `pushed`, `hook_watch`, `watched`, `noticed`, `webhooks` | changes and executions, pushed to whoever watches |
//! | `identity_admin`, `secret`, `watching` | keys, members, tenants, console sessions; closes what was revoked |
//! | `counters`, `doctor`, `outage`, `rare_line`, `settings`, `bad_settings` | metrics, `doctor` on demand, log lines, settings |
//!
//! `build.rs` finds the pages of the console in `console/dist`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pintle_domain::approval::ApprovalMode;
use pintle_domain::rule::Edition;
use pintle_domain::store::SessionStore;
use pintle_domain::webhook::WebhookEvent;
use pintle_engine::Watcher;
use pintle_host::Host;
use pintle_host::config::HttpLimits;
use pintle_host::error::HostError;
use pintle_host::reload::{self, ConfigSource};
use pintle_rules::admin::RuleAdmin;
use pintle_store::Store;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Notify, RwLock};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

mod agents;
mod among_nodes;
mod attachments;
mod bad_settings;
mod claim;
mod counters;
mod decisions;
mod doctor;
mod door;
mod errand;
mod error;
mod frame;
mod guards;
mod guessing;
mod heads;
mod heard;
mod hook_watch;
mod http;
mod hub;
mod identity_admin;
mod lanes;
mod listening;
mod media_type;
mod methods;
mod model_doors;
mod nodes;
mod noticed;
pub mod openapi;
mod outage;
mod outcome;
mod params;
mod places;
mod principal;
mod proofs;
mod push;
mod pushed;
mod queue;
mod quotas;
mod rare_line;
mod rates;
pub mod reference;
mod ready;
mod repeating;
mod repeats;
mod roles;
mod routing;
mod run;
mod run_output;
mod runs;
mod secret;
mod served;
mod session_name;
mod settings;
mod shown;
mod sign_in;
mod socket;
mod tls;
mod told;
mod transcript;
mod turns;
mod watched;
mod watching;
mod webhooks;
mod wire;
mod working;

pub use bad_settings::BadSettings;
pub use doctor::DoctorCommand;
pub use error::{ApiError, ErrorCode};
pub use identity_admin::{FreshKey, IdentityAdmin, KeyWish, MemberChange, TenantChange};
pub use listening::{Listening, could_bind};
pub use model_doors::vendor_settings;
pub use settings::{
    Address, DEFAULT_ADDRESS, ForeignAgents, GatewaySettings, configured_origin, link_user, weak_token,
};
pub use shown::{shown_key, shown_member};
pub use webhooks::{webhook_list, webhook_retry};

use agents::Agents;
use doctor::Doctor;
use hub::Hub;
use lanes::Lanes;
use model_doors::ModelDoors;
use nodes::Nodes;
use noticed::Noticed;
use outcome::RunOutcome;
use proofs::Proofs;
use pushed::Push;
use quotas::Quotas;
use rates::Rates;
use repeats::Repeats;
use run::Run;
use runs::{Runs, StoppedBy};
use session_name::user_of;
use sign_in::KnownBy;
use webhooks::{Blocked, Happened, Waiting, Webhooks};

/// How long turns have to end by themselves after they were asked to sum up, and then to end at all.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) host: RwLock<Host>,
    pub(crate) edition: Edition,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sessions: Arc<dyn SessionStore>,
    pub(crate) rule_admin: RuleAdmin,
    pub(crate) hub: Arc<Hub>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) lanes: Lanes,
    pub(crate) agents: Agents,
    pub(crate) guests: Guests,
    pub(crate) desk: Desk,
    pub(crate) life: Life,
}

/// What requests come back for, and what happens is told from.
pub(crate) struct Desk {
    pub(crate) webhooks: Webhooks,
    /// Rung when somebody answered an approval here.
    pub(crate) answers: Notify,
    /// Which approvals people were told of.
    pub(crate) noticed: Mutex<Noticed>,
    pub(crate) repeats: Repeats,
    pub(crate) limits: HttpLimits,
    pub(crate) doctor: Doctor,
    /// What this gateway is called by the machines that it guards.
    pub(crate) team_name: String,
    pub(crate) model_doors: ModelDoors,
    pub(crate) proofs: Proofs,
}

/// Who is let in, and how often.
pub(crate) struct Guests {
    pub(crate) known_by: KnownBy,
    pub(crate) rates: Rates,
    /// Programs that are no persons.
    pub(crate) agents: ForeignAgents,
    pub(crate) quotas: Quotas,
    pub(crate) admin: IdentityAdmin,
    /// Rung when something was taken away from somebody here.
    pub(crate) changed: Notify,
}

/// What is under way, and how far the end has come.
#[derive(Default)]
pub(crate) struct Life {
    pub(crate) tasks: TaskTracker,
    /// What is known of other nodes.
    pub(crate) nodes: Nodes,
    /// The requests over the socket that are being answered.
    pub(crate) requests: TaskTracker,
    /// The answers of models that the agents of others get at the door.
    pub(crate) doors: TaskTracker,
    /// It is about to end: `/readyz` says so.
    pub(crate) not_ready: CancellationToken,
    /// Nothing new is begun.
    pub(crate) draining: CancellationToken,
    /// What waits for a person is left.
    pub(crate) leaving: CancellationToken,
    /// Connections are closed.
    pub(crate) hard_stop: CancellationToken,
}

/// What the engine tells of the turns that it works, on its way to those who asked for them.
#[derive(Default)]
pub struct News(Arc<Runs>);

impl News {
    /// Hears what the engine tells: one of those that a host is opened with.
    pub fn watcher(&self) -> Arc<dyn Watcher> {
        self.0.clone()
    }
}

/// A host that others talk to.
pub struct Gateway {
    shared: Arc<Shared>,
    settings: GatewaySettings,
    /// What happens, until somebody tells it on.
    happens: Mutex<Option<Happens>>,
}

/// What happens to rules and budgets, and what others are to be told.
struct Happens {
    push: UnboundedReceiver<Push>,
    webhooks: Waiting,
}

impl Gateway {
    /// Serves `host`, which is ready: its hooks and servers are up, and it was opened with the watcher of `news`.
    pub fn new(mut host: Host, news: News, settings: GatewaySettings) -> Self {
        host.ask_in(ApprovalMode::Serve, None);
        let guests = Guests {
            known_by: settings.known_by.clone(),
            rates: Rates::new(settings.requests_per_minute),
            agents: settings.agents.clone(),
            quotas: Quotas::default(),
            admin: IdentityAdmin::new(
                host.store.clone(),
                host.host_rules.edition(),
                settings.known_by.owners().clone(),
            ),
            changed: Notify::new(),
        };
        let push = pushed::listen(&host);
        let (webhooks, waiting) =
            Webhooks::new(settings.endpoints.clone(), settings.door.public.clone(), host.store.clone());
        tell_blocked(&news.0, &webhooks);
        let rule_admin = host
            .rule_admin()
            .with_owners(Arc::new(|by, session| user_of(session).is_some_and(|user| by.user.as_ref() == Some(&user))));
        let model_doors = ModelDoors::default();
        model_doors.follow(&host);
        let (repeats, limits) = (Repeats::default(), settings.limits.clone());
        let doctor = Doctor::new(settings.doctor.clone());
        let team_name =
            settings.door.public.as_ref().map_or_else(String::new, |url| url.origin().ascii_serialization());
        let (answers, noticed, proofs) = (Notify::new(), Mutex::default(), Proofs::default());
        let desk = Desk { webhooks, answers, noticed, repeats, limits, doctor, team_name, model_doors, proofs };
        let shared = Shared {
            edition: host.host_rules.edition(),
            store: host.store.clone(),
            sessions: host.sessions.clone(),
            rule_admin,
            host: RwLock::new(host),
            hub: Arc::default(),
            runs: news.0,
            lanes: Lanes::default(),
            agents: Agents::default(),
            guests,
            desk,
            life: Life::default(),
        };
        let happens = Mutex::new(Some(Happens { push, webhooks: waiting }));
        Self { shared: Arc::new(shared), settings, happens }
    }

    /// Begins to tell what happens, and others too.
    fn tell(&self) {
        let happens = self.happens.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Happens { push, webhooks }) = happens else { return };
        let (shared, life) = (&self.shared, &self.shared.life);
        life.tasks.spawn(shared.clone().push(push));
        life.tasks.spawn(shared.clone().push_executions());
        life.tasks.spawn(shared.desk.webhooks.clone().keep(webhooks, life.hard_stop.clone()));
        life.tasks.spawn(shared.desk.webhooks.clone().catch_up(life.hard_stop.clone()));
        life.tasks.spawn(shared.desk.webhooks.clone().deliver(life.hard_stop.clone()));
    }

    /// The configuration in force, for whoever prints what there is. Nobody else may hold it for long.
    pub async fn host(&self) -> tokio::sync::RwLockReadGuard<'_, Host> {
        self.shared.host.read().await
    }

    /// The edition.
    pub fn edition(&self) -> Edition {
        self.shared.edition
    }

    /// Where those who may ask are managed.
    pub fn identity_admin(&self) -> &IdentityAdmin {
        &self.shared.guests.admin
    }

    /// What it was told.
    pub fn settings(&self) -> &GatewaySettings {
        &self.settings
    }

    /// Why doors to models let nobody in, a line each.
    pub async fn door_faults(&self) -> Vec<String> {
        let (mut faults, tenants) = model_doors::examined(&*self.shared.host.read().await);
        for (name, tenant) in tenants {
            if let Err(error) = self.shared.passing(tenant).await {
                faults.push(format!("the door to {name} lets nobody in: {}", error.message));
            }
        }
        faults
    }

    /// Puts the configuration in force as it is now; what became of it, a line each.
    ///
    /// # Errors
    /// What is bad; the one before stays.
    pub async fn reload(&self, source: ConfigSource<'_>) -> Result<Vec<String>, HostError> {
        // What is new starts beside what is in force: meanwhile turns begin as before.
        let prepared = reload::prepare(&*self.shared.host.read().await, source).await?;
        let mut host = self.shared.host.write().await;
        let before = host.loaded.config.gateway.clone();
        let mut reloaded = reload::take(&mut host, prepared, |_| Ok(()))?;
        if before != host.loaded.config.gateway {
            reloaded.later.push("gateway".to_owned());
        }
        self.shared.agents.clear();
        self.shared.desk.model_doors.follow(&host);
        self.shared.life.nodes.describe(&host, self.shared.store.node_id(), None);
        drop(host);
        let mut lines: Vec<String> = reloaded
            .children
            .words()
            .into_iter()
            .map(|(word, names)| format!("{word}: {}", names.join(", ")))
            .collect();
        if !reloaded.later.is_empty() {
            lines.push(format!("waits for a restart: {}", reloaded.later.join(", ")));
        }
        Ok(lines)
    }

    /// Says to other nodes that this one is there, at these addresses. The sessions whose turns the last end
    /// of this node cut.
    ///
    /// # Errors
    /// The store cannot do it.
    pub async fn join(&self, addresses: Vec<String>) -> Result<Vec<String>, ApiError> {
        self.shared.join(addresses).await
    }

    /// Ends: goes on as before for a while, lets turns end, stops them, and closes everything. A `hurry` that is set
    /// meanwhile stops them at once. The sessions whose turns were cut.
    pub async fn drain(&self, hurry: &CancellationToken) -> Vec<String> {
        let (shared, life) = (&self.shared, &self.shared.life);
        life.not_ready.cancel();
        wait(self.settings.drain_delay, hurry).await;
        life.draining.cancel();
        shared.say_goodbye(self.settings.drain);
        // What waits for a person is kept, and goes on after the next start.
        life.leaving.cancel();
        life.doors.close();
        self.until_idle(self.settings.drain, hurry).await;
        let left = shared.lanes.all();
        left.iter().for_each(|run| run.handle.interrupt());
        if !left.is_empty() {
            self.until_idle(LAST_WORDS, hurry).await;
        }
        let mut cut = shared.lanes.all();
        cut.iter().for_each(|run| run.handle.cancel());
        if !cut.is_empty() {
            self.until_idle(LAST_WORDS, &CancellationToken::new()).await;
        }
        cut.retain(|run| is_cut(run));
        let cut_sessions: Vec<String> = cut.iter().map(|run| run.key.session.to_string()).collect();
        let told = cut_sessions.clone();
        life.requests.close();
        if tokio::time::timeout(LAST_WORDS, life.requests.wait()).await.is_err() {
            tracing::debug!("some requests were not answered");
        }
        life.hard_stop.cancel();
        life.tasks.close();
        if tokio::time::timeout(LAST_WORDS, life.tasks.wait()).await.is_err() {
            tracing::warn!("some clients did not get their whole answer");
        }
        let id = shared.store.node_id();
        let left = shared.blocking(move |shared| Ok(shared.store.leave(&id, &cut_sessions)?)).await;
        if let Err(error) = left {
            tracing::debug!("other nodes were not told: {error}");
        }
        shared.host.read().await.close().await;
        told
    }

    /// Waits until no run is under way and no answer at the door, but not longer than `time`.
    async fn until_idle(&self, time: Duration, hurry: &CancellationToken) {
        let idle = async {
            for run in self.shared.lanes.all() {
                run.outcome().await;
            }
            self.shared.life.doors.wait().await;
        };
        tokio::select! {
            () = idle => {}
            () = tokio::time::sleep(time) => {}
            () = hurry.cancelled() => {}
        }
    }
}

/// Whether a run did not come to its end because the host goes away: what waits for a person goes on, and what was done by
/// then is done.
fn is_cut(run: &Run) -> bool {
    !matches!(run.settled(), Some(RunOutcome::Parked(_) | RunOutcome::Completed(_))) && run.waits().is_none()
}

/// Lets `webhooks` hear of what hooks refuse.
fn tell_blocked(runs: &Runs, webhooks: &Webhooks) {
    let webhooks = webhooks.clone();
    runs.tell_blocked(Box::new(move |record| {
        if record.who.is_test || !webhooks.wanted(WebhookEvent::ExecutionBlocked) {
            return;
        }
        let Some(StoppedBy { hook_id, hook, checkpoint, reason }) = StoppedBy::of(record) else { return };
        webhooks.happened(Happened::Blocked(Box::new(Blocked {
            event_id: record.event_id.to_string(),
            who: record.who.clone(),
            at: record.at,
            checkpoint,
            tool: record.tool.clone(),
            head: record.input.as_deref().map(webhooks::head),
            hook_id,
            hook,
            reason,
        })));
    }));
}

async fn wait(time: Duration, hurry: &CancellationToken) {
    tokio::select! {
        () = tokio::time::sleep(time) => {}
        () = hurry.cancelled() => {}
    }
}
