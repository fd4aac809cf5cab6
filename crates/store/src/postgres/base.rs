//! What all parts of one store share: the way to the server, and connections for those who wait for their answer.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pintle_domain::store::{OnRulesChanged, RuleSubscription, StoreError};

use super::link::Link;
use super::listening::{ListenerGuard, listen};
use super::net::Net;
use super::pause::{FIRST_PAUSE, LONGEST_PAUSE};
use super::schema;
use super::target::{Target, is_collision};
use crate::Durability;
use crate::db::{Db, Failure};

/// Most connections for those who wait for their answer. Each call takes milliseconds, and a server has a hundred
/// connections for everybody.
const MAX_LINKS: usize = 4;

/// How long a call waits for one of them. Longer than any single statement may take means that nothing moves.
const LINK_PATIENCE: Duration = Duration::from_secs(35);

/// How often a transaction is tried that stood in the way of another one.
pub(super) const TRIES: u32 = 4;

/// The way to the server.
pub(super) struct Base {
    pub(super) target: Target,
    durability: Durability,
    /// The one schema that every connection works in, once it is known.
    schema: OnceLock<String>,
    net: Net,
    links: Mutex<Links>,
    returned: Condvar,
    trouble: Mutex<Option<Trouble>>,
}

#[derive(Default)]
struct Links {
    idle: Vec<Link>,
    /// Those in use.
    out: usize,
}

/// The server could not be reached.
struct Trouble {
    why: StoreError,
    pause: Duration,
    until: Instant,
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Base").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Base {
    /// Starts the network; reaches for nothing yet.
    pub(super) fn new(target: Target, durability: Durability) -> Result<Self, StoreError> {
        Ok(Self {
            target,
            durability,
            schema: OnceLock::new(),
            net: Net::start()?,
            links: Mutex::default(),
            returned: Condvar::new(),
            trouble: Mutex::default(),
        })
    }

    /// Makes a connection. While the server is out of reach, says so at once to all but one now and then.
    pub(super) fn connect(&self) -> Result<Link, StoreError> {
        let mut trouble = locked(&self.trouble);
        if let Some(trouble) = &mut *trouble {
            let now = Instant::now();
            if now < trouble.until {
                return Err(trouble.why.clone());
            }
            // Whoever comes while this one tries hears what was the matter before.
            trouble.until = now + LONGEST_PAUSE;
        }
        drop(trouble);
        let connected = self.try_connect();
        let mut trouble = locked(&self.trouble);
        *trouble = match &connected {
            Ok(_) => None,
            Err(why) => {
                let pause = trouble.take().map_or(FIRST_PAUSE, |before| LONGEST_PAUSE.min(before.pause * 2));
                Some(Trouble { why: why.clone(), pause, until: Instant::now() + pause })
            }
        };
        connected
    }

    fn try_connect(&self) -> Result<Link, StoreError> {
        let (config, tls) = self.target.ways();
        let client = self.net.connect(config, tls).map_err(|why| self.target.unconnected(why))?;
        let link = Link::new(client);
        schema::greet(&link, &self.target, self.durability).map_err(|failure| self.target.error(failure))?;
        if let Some(name) = self.schema.get() {
            schema::pin(&link, name).map_err(|failure| self.target.error(failure))?;
        }
        Ok(link)
    }

    /// Settles which schema the tables stand in: on `link`, and on all connections from now on. Tables of the same names
    /// in another schema are then never seen.
    pub(super) fn settle_schema(&self, link: &Link) -> Result<(), StoreError> {
        let settle = || {
            let found = schema::home(link, &self.target)?;
            schema::pin(link, self.schema.get_or_init(|| found))
        };
        settle().map_err(|failure| self.target.error(failure))
    }

    /// Calls `heard` for what is told on `channels`, on a connection of its own, until what is returned is dropped.
    pub(super) fn listen(&self, channels: &'static [&'static str], heard: OnRulesChanged) -> Box<dyn RuleSubscription> {
        let listener = ListenerGuard::default();
        self.net.run(listen(self.target.ways(), channels, (listener.share(), heard)));
        Box::new(listener)
    }

    /// Does `work` on a connection of its own, out of a transaction.
    pub(super) fn read<T>(&self, work: impl FnOnce(&dyn Db) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.on_link(|link| work(link)).map_err(|failure| self.target.error(failure))
    }

    /// Does `work` in one transaction, once more if it stood in the way of another one, and waits for it.
    pub(crate) fn write<T>(&self, mut work: impl FnMut(&dyn Db) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.on_link(|link| {
            let mut tried = 1;
            loop {
                match link.transact(|link| work(link)) {
                    Err(failure) if is_collision(&failure) && tried < TRIES => tried += 1,
                    done => return done,
                }
            }
        })
        .map_err(|failure| self.target.error(failure))
    }

    fn on_link<T>(&self, work: impl FnOnce(&Link) -> Result<T, Failure>) -> Result<T, Failure> {
        let borrowed = self.borrow().map_err(Failure::Said)?;
        work(borrowed.link.as_ref().expect("only `drop` takes it"))
    }

    fn borrow(&self) -> Result<Borrowed<'_>, StoreError> {
        let end = Instant::now() + LINK_PATIENCE;
        let mut links = locked(&self.links);
        while links.out >= MAX_LINKS {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let name = self.target.name();
                return Err(StoreError::Unavailable(format!(
                    "`{name}` is too slow: {MAX_LINKS} calls wait for it already"
                )));
            }
            links = self.returned.wait_timeout(links, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        links.out += 1;
        // Those that broke while nobody used them are of no use.
        links.idle.retain(|link| !link.is_broken());
        let mut borrowed = Borrowed { base: self, link: links.idle.pop() };
        drop(links);
        if borrowed.link.is_none() {
            borrowed.link = Some(self.connect()?);
        }
        Ok(borrowed)
    }
}

/// A connection that goes back when its user is done, or panics.
struct Borrowed<'a> {
    base: &'a Base,
    link: Option<Link>,
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        let link = self.link.take().filter(|link| !link.is_broken() && !std::thread::panicking());
        let mut links = locked(&self.base.links);
        links.out -= 1;
        links.idle.extend(link);
        drop(links);
        self.base.returned.notify_one();
    }
}

/// What is guarded, also after a panic: every state in here is whole between two statements.
pub(super) fn locked<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}
