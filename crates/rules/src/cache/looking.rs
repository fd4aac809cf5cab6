//! Looks whether the store has other rules than those in force, and puts them in force.

use std::sync::Arc;

use pintle_domain::store::{StoreError, StoredRules};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::news::{Reading, RuleNews};
use super::{LOOK_EVERY, LOOK_SELDOM, LOOK_WHILE_TOLD, RuleCache};

/// The rules as they were read, and how many readings were in force before.
struct RulesRead {
    before: u64,
    rules: StoredRules,
}

impl RuleCache {
    /// Puts the rules in force if the store has others. Says whether it had. Blocks.
    ///
    /// # Errors
    /// The store cannot be read; what was in force stays.
    pub fn refresh(&self) -> Result<bool, StoreError> {
        let epoch = self.store.epoch()?;
        let in_force = self.cache_state().rules.clone();
        if epoch != in_force.epoch || epoch == 0 {
            self.reload()?;
            return Ok(true);
        }
        if in_force.shut.is_none() {
            return Ok(false);
        }
        // What opens the gates again is written beside the store, and raises no epoch.
        let reading = self.read()?;
        let is_news = reading.rules.shut != in_force.shut;
        if is_news {
            self.put_in_force(reading);
        }
        Ok(is_news)
    }

    /// Why every gate is shut whatever the rules say; nothing if they count.
    pub fn why_shut(&self) -> Option<String> {
        let cache_state = self.cache_state();
        cache_state.unread.clone().or_else(|| cache_state.rules.shut.clone())
    }

    /// Reads everything anew. Blocks.
    ///
    /// # Errors
    /// The store cannot be read; what was in force stays.
    pub fn reload(&self) -> Result<(), StoreError> {
        self.put_in_force(self.read()?);
        Ok(())
    }

    fn read(&self) -> Result<RulesRead, StoreError> {
        let before = self.cache_state().readings;
        Ok(RulesRead { before, rules: self.store.rules()? })
    }

    pub(super) fn begin_with(&self, read: Option<StoredRules>) -> Result<(), StoreError> {
        let Some(rules) = read else { return self.reload() };
        if self.store.epoch()? != rules.epoch {
            return self.reload();
        }
        self.put_in_force(RulesRead { before: 0, rules });
        Ok(())
    }

    fn put_in_force(&self, RulesRead { before, rules }: RulesRead) {
        let mut cache_state = self.cache_state();
        // Somebody who read later may have been faster. If nobody was, the store itself is an older one.
        if rules.epoch < cache_state.rules.epoch && before != cache_state.readings {
            return;
        }
        cache_state.readings += 1;
        let heard = self.heard.get();
        let before = heard.map(|_| (cache_state.rows.clone(), cache_state.rules.clone()));
        cache_state.take(rules);
        self.publish(&mut cache_state);
        let news = before.map(|(rows, rules)| {
            let now = Reading { rows: &cache_state.rows, rules: &cache_state.rules };
            RuleNews::between(Reading { rows: &rows, rules: &rules }, now)
        });
        drop(cache_state);
        if let (Some(heard), Some(news)) = (heard, news.filter(|news| !news.is_empty())) {
            heard(news);
        }
        // What is left of earlier events is for hooks that are in force now.
        self.parts.pool.look_with(&self.live);
    }

    /// Puts changes in force until it is cancelled: at once where the store tells of them, else when it looks.
    pub async fn watch(self: Arc<Self>, cancel: CancellationToken) {
        let told = Arc::new(Notify::new());
        let bell = told.clone();
        // However often it rings during one look, one more look sees it all.
        let listening = self.store.listen(Box::new(move || bell.notify_one()));
        let mut lost = false;
        loop {
            let pause = match (listening.is_told(), listening.may_hang()) {
                // Nobody tells that a person took the store as it is.
                _ if self.why_shut().is_some() => LOOK_EVERY,
                (true, false) => LOOK_SELDOM,
                (true, true) => LOOK_WHILE_TOLD,
                (false, _) => LOOK_EVERY,
            };
            tokio::select! {
                () = cancel.cancelled() => return,
                () = told.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            let rule_cache = self.clone();
            let looked = tokio::task::spawn_blocking(move || rule_cache.refresh()).await;
            match looked {
                Ok(Ok(_)) => lost = false,
                Ok(Err(error)) if !lost => {
                    lost = true;
                    tracing::error!("security.hook.resolve_error: {error}; the rules from before stay in force");
                }
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }
}
