//! Executions of hooks, told live to those who watch: the rows of the history, as they come.
//!
//! They are read from the store, so those that another process or another node worked are among them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pintle_domain::execution::Execution;
use pintle_domain::id::HookId;
use pintle_domain::json::{Value, json};

use crate::Shared;
use crate::error::ApiError;
use crate::frame;
use crate::hub::Connection;
use crate::params::Params;

/// How often it is looked for rows that nobody here tells of.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long a row takes at most, in nearly every case, from its event to the store: an observer works that long.
const LATE: SignedDuration = SignedDuration::from_secs(60);

/// Most rows of one look: more at once nobody watches.
const PAGE: usize = 1000;

/// What a row needs from the moment at which it is told of to the one at which it can be read.
const COMMIT_TIME: Duration = Duration::from_millis(30);

/// The rows that were told already, of those that may be read again.
#[derive(Debug, Default)]
struct Told(BTreeMap<String, Timestamp>);

impl Told {
    /// The rows that were not told yet, oldest first.
    fn new_of(&mut self, rows: Vec<Execution>, now: Timestamp) -> Vec<Execution> {
        let mut new: Vec<Execution> = rows.into_iter().filter(|row| !self.0.contains_key(&row.id)).collect();
        new.reverse();
        self.0.extend(new.iter().map(|row| (row.id.clone(), row.created_at)));
        self.0.retain(|_, at| *at >= now - 2 * LATE);
        new
    }
}

impl Shared {
    pub(crate) async fn hooks_watch(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        params: &Value,
    ) -> Result<Value, ApiError> {
        let params = Params::of(params, &["on", "hookId"])?;
        let on = params.flag("on")?.ok_or_else(|| ApiError::invalid("on is required"))?;
        let hook = match params.text("hookId")? {
            Some(id) if on => {
                let hook = self.rule_admin.get(&connection.who.caller(), id).await?;
                hook["id"].as_str().map(HookId::from)
            }
            Some(id) => Some(HookId::new(id.to_lowercase())),
            None => None,
        };
        connection.watch(|watch| watch.set(hook, on.then(Timestamp::now)));
        Ok(json!({ "on": on }))
    }

    /// Tells those who watch of every execution, until the end.
    pub(crate) async fn push_executions(self: Arc<Self>) {
        let mut told = Told::default();
        loop {
            tokio::select! {
                () = self.runs.rung() => tokio::time::sleep(COMMIT_TIME).await,
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = self.life.hard_stop.cancelled() => return,
            }
            let watchers = self.hub.watchers();
            if watchers.is_empty() {
                continue;
            }
            let now = Timestamp::now();
            let read = self.blocking(move |shared| Ok(shared.rule_admin.executions_since(now - LATE, PAGE)?)).await;
            match read {
                Ok(rows) => told.new_of(rows, now).iter().for_each(|row| self.push_execution(row, &watchers)),
                Err(error) => tracing::debug!("executions could not be read: {error}"),
            }
        }
    }

    fn push_execution(&self, row: &Execution, watchers: &[Arc<Connection>]) {
        for watcher in watchers {
            let wants = watcher.watch(|watch| watch.wants(row));
            if let Some(shown) = wants.then(|| self.rule_admin.seen(&watcher.who.caller(), row)).flatten() {
                watcher.tell(&frame::event_head("hooks.execution", &shown));
            }
        }
    }
}
