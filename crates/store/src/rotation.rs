//! Taking what is sealed to the key that seals now, a batch at a time.
//!
//! What is under that key already is passed over, so a rotation that was broken off goes on where it was.

pub use crate::rows::rotation::{RotationBatch, SealedColumn, UnopenedValue};

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use jiff::Timestamp;
    use pintle_domain::breaker::BreakerPolicy;
    use pintle_domain::checkpoint::CheckpointKind;
    use pintle_domain::id::{HookId, TenantId};
    use pintle_domain::json::{Object, json};
    use pintle_domain::rule::{Fallback, HandlerType, HookScope, Rule, Source};
    use pintle_domain::store::{Actor, OutboxJob, RuleChange, TenantScope};
    use pintle_testkit::postgres::Server;

    use super::*;
    use crate::keyring::{KeySource, Keyring};
    use crate::{Durability, Store, StoreKeys, open_with};

    const OLD: &str = "0000000000000000000000000000000000000000000000000000000000000001";
    const NEW: &str = "0000000000000000000000000000000000000000000000000000000000000002";

    fn keyring(now: &str, old: Option<&str>) -> Keyring {
        let source = KeySource {
            primary: Some(("PINTLE_ENCRYPTION_KEY", OsString::from(now))),
            old: old.map(OsString::from),
            file: None,
        };
        Keyring::open(&source).unwrap()
    }

    fn opened(url: &str, home: &Path, keyring: Keyring) -> Arc<dyn Store> {
        let sealing = StoreKeys { keyring: Some(keyring.into()), ..StoreKeys::default() };
        open_with(url, home, Durability::Commit, sealing).unwrap()
    }

    fn job(number: u8) -> OutboxJob {
        OutboxJob {
            id: format!("0193a5b0-7000-7000-8000-0000000000{number:02}"),
            tenant_id: TenantId::default_tenant(),
            hook_id: HookId::from("0193a5b0-7000-7000-8000-0000000000aa"),
            event_id: "0193a5b0-7000-7000-8000-0000000000ab".into(),
            payload: vec![number; 3],
            attempts: 0,
            next_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn enqueue(store: &dyn Store, jobs: Vec<OutboxJob>) {
        let (say, hear) = channel();
        store.enqueue(jobs, Box::new(move |done| say.send(done).unwrap()));
        hear.recv().unwrap().unwrap();
    }

    fn check(url: &str, home: &Path) {
        enqueue(&*opened(url, home, keyring(OLD, None)), (1..=5).map(job).collect());
        let both = keyring(NEW, Some(OLD));
        let store = opened(url, home, keyring(NEW, None));
        let first = store.rotate(SealedColumn::Jobs, &both, None, 2).unwrap();
        assert_eq!((first.seen, first.rewritten, first.failed.len()), (2, 2, 0));
        // It is broken off here, and begun once more.
        let mut after = None;
        let mut counts = Vec::new();
        loop {
            let batch = store.rotate(SealedColumn::Jobs, &both, after.as_deref(), 2).unwrap();
            counts.push((batch.seen, batch.rewritten));
            after = batch.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(counts, [(2, 0), (2, 2), (1, 1)]);
        let taken = store.take_due(Timestamp::now(), Timestamp::MAX, 9).unwrap();
        assert_eq!(
            taken.iter().map(|job| job.payload[0]).collect::<Vec<_>>(),
            [1, 2, 3, 4, 5],
            "the new key opens all"
        );
        let stranger = keyring(OLD, None);
        let lost = store.rotate(SealedColumn::Jobs, &stranger, None, 9).unwrap();
        assert_eq!((lost.seen, lost.rewritten, lost.failed.len()), (5, 0, 5));
        assert!(lost.failed[0].why.contains("no key `"), "{}", lost.failed[0].why);
        assert_eq!(store.rotate(SealedColumn::Details, &both, None, 9).unwrap(), RotationBatch::default());
    }

    #[test]
    fn a_rotation_goes_on_where_it_was_broken_off() {
        let home = tempfile::tempdir().unwrap();
        check("sqlite://pintle.db", home.path());
        let server = Server::start();
        check(&server.fresh_database(), home.path());
    }

    fn hook() -> Rule {
        let config = json!({"url": "https://a", "headers": {"Authorization": "aes-gcm:old"}});
        Rule {
            id: HookId::from("0193a5b0-7000-7000-8000-0000000000aa"),
            tenant_id: TenantId::default_tenant(),
            agent_ids: Vec::new(),
            event: CheckpointKind::PreToolUse,
            handler_type: HandlerType::Http,
            scope: HookScope::Tenant,
            name: "guard".into(),
            config: config.as_object().unwrap().clone(),
            matcher: String::new(),
            if_expr: String::new(),
            timeout_ms: 5000,
            on_timeout: Fallback::Block,
            priority: 0,
            enabled: true,
            version: 1,
            source: Source::User,
            may_rewrite: false,
            breaker: BreakerPolicy::All,
            on_trip: Fallback::Block,
            tripped_at: None,
            disabled_reason: String::new(),
            metadata: Object::new(),
            created_by: None,
            created_at: Timestamp::UNIX_EPOCH.to_string(),
            updated_at: Timestamp::UNIX_EPOCH.to_string(),
        }
    }

    #[test]
    fn other_ciphertexts_are_no_change_of_the_rule() {
        let home = tempfile::tempdir().unwrap();
        let store = opened("sqlite://pintle.db", home.path(), keyring(NEW, None));
        let by = Actor { name: "ada".into(), at: Timestamp::UNIX_EPOCH, reason: String::new() };
        store.change(vec![RuleChange::Create(Box::new(hook()))], &by).unwrap();
        let before = store.hook(&hook().id).unwrap().unwrap();
        store.trip(&before.id, &before.tenant_id, &by).unwrap();
        let tripped = store.hook(&before.id).unwrap().unwrap();
        let epoch = store.epoch().unwrap();
        let mut config = tripped.config.clone();
        config.insert("headers".into(), json!({"Authorization": "aes-gcm:new"}));
        assert_eq!(store.rotate_config(&tripped, &config), Ok(true));
        assert_eq!(store.hook(&before.id).unwrap(), Some(Rule { config: config.clone(), ..tripped.clone() }));
        assert_eq!(store.epoch().unwrap(), epoch + 1);
        assert_eq!(store.rotate_config(&tripped, &config), Ok(false), "somebody was faster");
        assert_eq!(store.changes(&TenantScope::All, &before.id, 9).unwrap().len(), 2);
    }
}
