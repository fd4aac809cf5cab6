//! The open connections, and who of them hears of what.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pintle_domain::id::TenantId;
use pintle_domain::json::{Object, Value};
use pintle_rules::admin::CallerRole;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::error::{ApiError, ErrorCode};
use crate::frame;
use crate::principal::Principal;
use crate::queue::{Queue, TooSlow, Waiting};
use crate::roles;
use crate::watched::Watch;

/// One open connection.
pub(crate) struct Connection {
    pub(crate) id: u64,
    pub(crate) who: Principal,
    queue: Mutex<Queue>,
    /// Rung when there is something to write.
    pub(crate) bell: Notify,
    /// Set when it is to be closed.
    pub(crate) closing: CancellationToken,
    /// Set when that is because whoever has it may no more what they might.
    revoked: AtomicBool,
    watch: Mutex<Watch>,
}

impl Connection {
    /// Answers the request `id`.
    pub(crate) fn respond(&self, id: &str, outcome: &Result<Value, ApiError>) {
        // What is nobody's fault who asks has to be found here by what they were told.
        if let Err(error) = outcome
            && error.code == ErrorCode::Internal
        {
            tracing::error!("request {:?} failed: {}", frame::beginning_of(id), error.message);
        }
        // Whoever tries what they may not leaves a trace.
        if let Err(error) = outcome
            && error.code == ErrorCode::Unauthorized
        {
            let (user, tenant, role) = (&self.who.user, &self.who.slug, self.who.role.word());
            tracing::warn!(
                user,
                tenant,
                role,
                "security.refused: request {:?}: {}",
                frame::beginning_of(id),
                error.message
            );
        }
        let text = match outcome {
            Err(error) => frame::response(id, &Err(error.clone().told_to(&self.who))),
            Ok(_) => frame::response(id, outcome),
        };
        self.write(|queue| queue.response(text));
    }

    /// Tells of an event.
    pub(crate) fn tell(&self, head: &str) {
        self.write(|queue| queue.event(head));
    }

    /// Hands over the text of a hook that stays, if the connection is still there.
    pub(crate) fn hook(&self, hook: &Object) -> bool {
        let head = frame::hook_head(hook);
        self.write(|queue| queue.hook(&head));
        !self.closing.is_cancelled()
    }

    /// Closes it: who has it may no more what they might.
    pub(crate) fn revoke(&self) {
        self.revoked.store(true, Ordering::Release);
        self.closing.cancel();
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
    }

    fn write(&self, push: impl FnOnce(&mut Queue) -> Result<(), TooSlow>) {
        let pushed = push(&mut lock(&self.queue));
        if pushed.is_err() {
            self.closing.cancel();
        }
        self.bell.notify_one();
    }

    /// How far its client is behind.
    pub(crate) fn waiting(&self) -> Waiting {
        lock(&self.queue).waiting()
    }

    /// Looks at, or changes, what it watches.
    pub(crate) fn watch<T>(&self, with: impl FnOnce(&mut Watch) -> T) -> T {
        with(&mut lock(&self.watch))
    }

    /// The next frame to write.
    pub(crate) fn next_frame(&self) -> Option<String> {
        lock(&self.queue).pop()
    }
}

/// Somebody whose request over HTTP is under way.
pub(crate) struct Guest {
    pub(crate) who: Principal,
    /// Set when they may no more what they might.
    pub(crate) gone: CancellationToken,
}

/// Every open connection, by tenant.
#[derive(Default)]
pub(crate) struct Hub {
    connections: Mutex<BTreeMap<TenantId, BTreeMap<u64, Arc<Connection>>>>,
    guests: Mutex<Vec<Weak<Guest>>>,
    last: AtomicU64,
}

impl Hub {
    /// Somebody connected.
    pub(crate) fn open(self: &Arc<Self>, who: Principal, closing: CancellationToken) -> OpenConnection {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (queue, watch) = (Mutex::default(), Mutex::default());
        let (bell, revoked) = (Notify::new(), AtomicBool::new(false));
        let connection = Arc::new(Connection { id, who, queue, bell, closing, revoked, watch });
        let mut connections = lock(&self.connections);
        connections.entry(connection.who.tenant.clone()).or_default().insert(id, connection.clone());
        OpenConnection { connection, hub: Arc::downgrade(self) }
    }

    /// Somebody asks over HTTP, until what this gives is dropped.
    pub(crate) fn ask(&self, who: Principal) -> Arc<Guest> {
        let guest = Arc::new(Guest { who, gone: CancellationToken::new() });
        let mut guests = lock(&self.guests);
        guests.retain(|guest| guest.strong_count() > 0);
        guests.push(Arc::downgrade(&guest));
        guest
    }

    /// Those who ask over HTTP.
    pub(crate) fn guests(&self) -> Vec<Arc<Guest>> {
        lock(&self.guests).iter().filter_map(Weak::upgrade).collect()
    }

    /// Those of `tenant` that `wanted` picks.
    pub(crate) fn of(&self, tenant: &TenantId, wanted: impl Fn(&Connection) -> bool) -> Vec<Arc<Connection>> {
        let connections = lock(&self.connections);
        let of_tenant = connections.get(tenant).into_iter().flat_map(BTreeMap::values);
        of_tenant.filter(|connection| wanted(connection)).cloned().collect()
    }

    /// Those of any tenant.
    pub(crate) fn all(&self) -> Vec<Arc<Connection>> {
        lock(&self.connections).values().flat_map(BTreeMap::values).cloned().collect()
    }

    /// Whether nobody is connected.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.connections).is_empty()
    }

    /// Those who watch executions.
    pub(crate) fn watchers(&self) -> Vec<Arc<Connection>> {
        let mut all = self.all();
        all.retain(|connection| connection.watch(|watch| !watch.is_empty()));
        all
    }

    /// Tells of something about rules those of `tenant` who may look at them, and owners, who see all; everybody, where it
    /// is about all tenants.
    pub(crate) fn tell_viewers(&self, tenant: &TenantId, event: &str, payload: &Value) {
        let mut told = self.all();
        told.retain(|connection| {
            let who = &connection.who;
            let is_theirs = *tenant == TenantId::sentinel() || who.tenant == *tenant || who.role == CallerRole::Owner;
            is_theirs && roles::allow(who, "hooks.list").is_ok()
        });
        let head = frame::event_head(event, payload);
        told.iter().for_each(|connection| connection.tell(&head));
    }

    /// Tells all of `tenant` of an event, or everybody where it is about all tenants.
    pub(crate) fn tell(&self, tenant: &TenantId, event: &str, payload: &Value) {
        let told = if *tenant == TenantId::sentinel() { self.all() } else { self.of(tenant, |_| true) };
        let head = frame::event_head(event, payload);
        told.iter().for_each(|connection| connection.tell(&head));
    }
}

/// A connection that is open for as long as this lives.
pub(crate) struct OpenConnection {
    pub(crate) connection: Arc<Connection>,
    hub: Weak<Hub>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connection.closing.cancel();
        let Some(hub) = self.hub.upgrade() else { return };
        let mut connections = lock(&hub.connections);
        let tenant = &self.connection.who.tenant;
        if let Some(of_tenant) = connections.get_mut(tenant) {
            of_tenant.remove(&self.connection.id);
            if of_tenant.is_empty() {
                connections.remove(tenant);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
