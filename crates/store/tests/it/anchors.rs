//! A store that somebody else writes to, in every column, or puts something else in the place of: what its anchor says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_domain::breaker::BreakerPolicy;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::{DEFAULT_TENANT, HookId, SENTINEL_TENANT, TenantId};
use pintle_domain::json::Object;
use pintle_domain::rule::{Fallback, HandlerType, HookScope, Rule, Source};
use pintle_domain::store::{Actor, RuleChange, StoreError, StoredRules};
use pintle_store::keyring::signing::SigningKey;
use pintle_store::{AnchorFile, Durability, Store, StoreKeys};
use pintle_testkit::conformance::audit::cleared;
use pintle_testkit::conformance::store::keep;
use pintle_testkit::postgres::Server;
use rusqlite::Connection;

/// The rule that somebody edits, and the one beside it.
pub(crate) const EDITED: &str = "0193a5b0-7000-7000-8000-0000000000a1";
pub(crate) const OTHER: &str = "0193a5b0-7000-7000-8000-0000000000a2";

/// The store of a home, and how somebody else gets at it.
pub(crate) struct World<'a> {
    pub(crate) home: tempfile::TempDir,
    pub(crate) url: String,
    pub(crate) server: Option<&'a Server>,
}

impl World<'_> {
    fn file(&self) -> PathBuf {
        self.home.path().join("pintle.db")
    }

    pub(crate) fn open(&self) -> Result<Arc<dyn Store>, pintle_store::StoreOpenError> {
        let keys = StoreKeys {
            signing: Some(Arc::new(SigningKey::open_or_create(self.home.path()).unwrap())),
            anchor: Some(Arc::new(AnchorFile::beside(self.home.path(), &self.url))),
            ..StoreKeys::default()
        };
        pintle_store::open_with(&self.url, self.home.path(), Durability::Commit, keys)
    }

    pub(crate) fn rules(&self) -> StoredRules {
        self.open().unwrap().rules().unwrap()
    }

    /// What is wrong: why everything is shut, and else which rules are in doubt.
    fn wrong(&self) -> Result<Vec<String>, String> {
        let rules = self.rules();
        match rules.shut {
            Some(why) => Err(why),
            None => Ok(rules.doubts.into_iter().map(|doubt| doubt.hook.to_string()).collect()),
        }
    }

    /// What somebody else does.
    pub(crate) fn tell(&self, sql: &str) {
        match self.server {
            Some(server) => drop(server.execute(&self.url, sql)),
            None => {
                let db = Connection::open(self.file()).unwrap();
                db.execute_batch("PRAGMA ignore_check_constraints = on; PRAGMA foreign_keys = on").unwrap();
                db.execute_batch(sql).unwrap_or_else(|why| panic!("{sql}: {why}"));
            }
        }
    }

    /// The columns of a table.
    fn columns(&self, table: &str) -> Vec<String> {
        let sql = match self.server {
            Some(_) => format!("SELECT column_name FROM information_schema.columns WHERE table_name = '{table}'"),
            None => format!("SELECT name FROM pragma_table_info('{table}')"),
        };
        let found = match self.server {
            Some(server) => server.execute(&self.url, &sql),
            None => {
                let db = Connection::open(self.file()).unwrap();
                let mut found = db.prepare(&sql).unwrap();
                let rows = found.query_map([], |row| row.get::<_, String>(0)).unwrap();
                rows.map(Result::unwrap).collect::<Vec<_>>().join("\n")
            }
        };
        let mut columns: Vec<String> = found.lines().map(|line| line.trim().to_owned()).collect();
        columns.sort();
        columns
    }

    pub(crate) fn is_postgres(&self) -> bool {
        self.server.is_some()
    }
}

pub(crate) fn by() -> Actor {
    Actor { name: "ada".into(), at: jiff::Timestamp::now(), reason: String::new() }
}

pub(crate) fn rule(id: &str, name: &str) -> Rule {
    Rule {
        id: HookId::from(id),
        tenant_id: TenantId::default_tenant(),
        agent_ids: Vec::new(),
        event: CheckpointKind::PreToolUse,
        handler_type: HandlerType::Script,
        scope: HookScope::Tenant,
        name: name.to_owned(),
        config: Object::new(),
        matcher: "^exec$".into(),
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
        created_at: "2026-01-31T12:00:00Z".into(),
        updated_at: "2026-01-31T12:00:00Z".into(),
    }
}

/// Two rules, some evidence, all of it signed.
pub(crate) fn world(server: Option<&Server>) -> World<'_> {
    let home = tempfile::tempdir().unwrap();
    let url = match server {
        Some(server) => server.fresh_database(),
        None => format!("sqlite://{}", home.path().join("pintle.db").display()),
    };
    let world = World { home, url, server };
    let store = world.open().unwrap();
    assert_eq!(store.rules().unwrap().shut, None, "a new store is known from now on");
    let create = |id, name| RuleChange::Create(Box::new(rule(id, name)));
    store.change(vec![create(EDITED, "no-rm"), create(OTHER, "no-push")], &by()).unwrap();
    keep(&*store, cleared()).unwrap();
    drop(store);
    assert_eq!(world.wrong(), Ok(vec![]));
    world
}

pub(crate) fn in_both(check: impl Fn(World<'_>)) {
    check(world(None));
    let server = Server::start();
    check(world(Some(&server)));
}

/// Another value for each column of a rule, in both databases; `'on'` and `'off'` are what a database has for them.
fn edits(is_postgres: bool) -> BTreeMap<String, String> {
    let at = "'2000-01-01T00:00:00.000000Z'";
    let flag = |on: bool| match (is_postgres, on) {
        (true, on) => on.to_string(),
        (false, on) => i64::from(on).to_string(),
    };
    let agents = if is_postgres { format!("ARRAY['{OTHER}']::uuid[]") } else { format!("'[\"{OTHER}\"]'") };
    let edits = [
        ("id", "'0193a5b0-7000-7000-8000-0000000000ff'".to_owned()),
        ("tenant_id", format!("'{SENTINEL_TENANT}'")),
        ("agent_ids", agents),
        ("event", "'stop'".into()),
        ("handler_type", "'http'".into()),
        ("scope", "'global'".into()),
        ("name", "'other'".into()),
        ("config", r#"'{"source":"x"}'"#.into()),
        ("matcher", "'^nothing$'".into()),
        ("if_expr", "'false'".into()),
        ("timeout_ms", "1".into()),
        ("on_timeout", "'allow'".into()),
        ("priority", "-9".into()),
        ("enabled", flag(false)),
        ("version", "9".into()),
        ("source", "'builtin'".into()),
        ("may_rewrite", flag(true)),
        ("breaker", "'off'".into()),
        ("on_trip", "'allow'".into()),
        ("tripped_at", at.into()),
        ("disabled_reason", "'x'".into()),
        ("metadata", r#"'{"file":"x"}'"#.into()),
        ("created_by", "'me'".into()),
        ("created_at", at.into()),
        ("updated_at", at.into()),
    ];
    edits.into_iter().map(|(column, value)| (column.to_owned(), value)).collect()
}

#[test]
fn a_rule_that_somebody_else_edits_is_in_doubt_and_no_other_is() {
    in_both(|world| {
        let edits = edits(world.is_postgres());
        assert_eq!(edits.keys().cloned().collect::<Vec<_>>(), world.columns("agent_hooks"), "each column has an edit");
        world.tell("CREATE TABLE saved AS SELECT * FROM agent_hooks");
        for (column, value) in edits {
            world.tell(&format!("UPDATE agent_hooks SET {column} = {value} WHERE id = '{EDITED}'"));
            let mut wrong = world.wrong().unwrap();
            // One that has another id is missing, and a stranger besides.
            wrong.retain(|id| id != "0193a5b0-7000-7000-8000-0000000000ff");
            assert_eq!(wrong, [EDITED], "{column}");
            let back = match column.as_str() {
                "id" => format!("UPDATE agent_hooks SET id = '{EDITED}' WHERE name = 'no-rm'"),
                _ => format!(
                    "UPDATE agent_hooks SET {column} = (SELECT {column} FROM saved WHERE saved.id = agent_hooks.id)"
                ),
            };
            world.tell(&back);
            assert_eq!(world.wrong(), Ok(vec![]), "{column} is what it was");
        }
    });
}

#[test]
fn a_row_that_is_no_rule_is_in_doubt_and_no_other_is() {
    in_both(|world| {
        world.tell("CREATE TABLE saved AS SELECT * FROM agent_hooks");
        let odd: &[(&str, &str)] = match world.is_postgres() {
            true => &[
                ("updated_at", "'infinity'"),
                ("created_at", "'-infinity'"),
                ("tripped_at", "'infinity'"),
                ("agent_ids", "NULL"),
                ("agent_ids", "ARRAY[ARRAY[gen_random_uuid()], ARRAY[gen_random_uuid()]]"),
                ("config", "'[]'"),
                ("metadata", "'7'"),
                ("timeout_ms", "-1"),
                ("version", "-1"),
            ],
            false => &[
                ("updated_at", "'never'"),
                ("tripped_at", "''"),
                ("agent_ids", "'[[]]'"),
                ("agent_ids", "'x'"),
                ("config", "'{'"),
                ("metadata", "'[]'"),
                ("event", "'nowhere'"),
                ("scope", "'nobody'"),
                ("on_trip", "'maybe'"),
                ("timeout_ms", "-1"),
            ],
        };
        for (column, value) in odd {
            let plant = format!("UPDATE agent_hooks SET {column} = {value} WHERE id = '{EDITED}'");
            if world.is_postgres() && *value == "NULL" {
                // Only the value is meant: whoever owns the server can have the shape as it was afterwards.
                world.tell(&format!(
                    "ALTER TABLE agent_hooks ALTER COLUMN {column} DROP NOT NULL; {plant}; \
                     UPDATE pg_attribute SET attnotnull = true \
                     WHERE attrelid = 'agent_hooks'::regclass AND attname = '{column}'"
                ));
            } else {
                world.tell(&plant);
            }
            let rules = world.rules();
            let doubts: Vec<_> = rules.doubts.iter().map(|doubt| (doubt.hook.as_str(), &*doubt.rule.matcher)).collect();
            assert_eq!((&rules.shut, doubts), (&None, vec![(EDITED, "^exec$")]), "{column} = {value}");
            // Which rule, which row, where in it, what belongs there, what is there, and what to do.
            let (text, remedy) = (rules.doubts[0].text(), rules.doubts[0].remedy(rules.is_of_server));
            let begins = format!(
                "the stored rule `no-rm` cannot be read: hook `{EDITED}`: column `{column}` of `agent_hooks`: "
            );
            let said = text.strip_prefix(&begins).unwrap_or_else(|| panic!("{text}"));
            let (_, there) =
                said.split_once(" belongs there, and what is there is ").unwrap_or_else(|| panic!("{text}"));
            let repeated = match (*column, *value) {
                ("config" | "metadata" | "agent_ids", "NULL") => there == "NULL",
                // Settings may hold secrets, and no text stands for these moments.
                ("config" | "metadata" | "agent_ids", _) | (_, "'infinity'" | "'-infinity'") => {
                    there.starts_with("something else: ")
                }
                (_, value) => there == format!("`{}`", value.trim_matches('\'')),
            };
            assert!(
                repeated && remedy.starts_with("fix or delete its row with a tool for databases"),
                "{text}; {remedy}"
            );
            world.tell(&format!(
                "UPDATE agent_hooks SET {column} = (SELECT {column} FROM saved WHERE saved.id = agent_hooks.id)"
            ));
        }
        assert_eq!(world.wrong(), Ok(vec![]));
    });
}

#[test]
fn a_column_of_another_type_keeps_each_rule_shut_in_its_own_scope() {
    let server = Server::start();
    let world = world(Some(&server));
    world.tell("ALTER TABLE agent_hooks ALTER COLUMN priority DROP DEFAULT, ALTER COLUMN priority TYPE TEXT");
    let rules = world.rules();
    let shut = rules.shut.unwrap();
    assert!(shut.contains("the table `agent_hooks` has `column priority text NOT NULL`"), "{shut}");
    // Beside that, each rule that cannot be read is in doubt, where it was.
    let doubts: Vec<_> = rules.doubts.iter().map(|doubt| (doubt.hook.as_str(), doubt.rule.scope)).collect();
    assert_eq!(doubts, [(EDITED, HookScope::Tenant), (OTHER, HookScope::Tenant)]);
}

#[test]
fn rules_that_come_and_go_behind_our_back_are_in_doubt() {
    in_both(|world| {
        let stranger = "0193a5b0-7000-7000-8000-0000000000a3";
        world.tell(&format!(
            "INSERT INTO agent_hooks (id, tenant_id, event, handler_type, scope) \
             VALUES ('{stranger}', '{DEFAULT_TENANT}', 'pre_tool_use', 'command', 'tenant')"
        ));
        assert_eq!(world.wrong(), Ok(vec![stranger.to_owned()]));
        world.tell(&format!("DELETE FROM agent_hooks WHERE id IN ('{stranger}', '{EDITED}')"));
        assert_eq!(world.wrong(), Ok(vec![EDITED.to_owned()]));
        world.tell("DELETE FROM tenants");
        assert_eq!(world.wrong(), Ok(vec![EDITED.to_owned(), OTHER.to_owned()]));
        // A breaker that somebody opens beside a rule takes it out as well.
        let taken = world.open().unwrap().accept(&by()).unwrap();
        assert_eq!((taken.len(), world.wrong()), (2, Ok(vec![])));
    });
}

#[test]
fn nobody_is_told_to_put_a_file_in_the_place_of_a_database_of_a_server() {
    in_both(|world| {
        let check = |said: &str| {
            let (file, server) = ("`pintle store restore FILE`", "the server's own tools");
            let (named, other) = if world.is_postgres() { (server, file) } else { (file, server) };
            assert!(said.contains(named) && !said.contains(other), "{said}");
        };
        world.tell(&format!("UPDATE agent_hooks SET matcher = '^x$' WHERE id = '{EDITED}'"));
        let rules = world.rules();
        check(rules.doubts[0].remedy(rules.is_of_server));
        let store = world.open().unwrap();
        let hook = Box::new(store.hook(&HookId::from(EDITED)).unwrap().unwrap());
        let refused = store.change(vec![RuleChange::Update { hook, if_version: None, action: "updated" }], &by());
        check(&refused.unwrap_err().to_string());
        drop(store);
        world.tell("UPDATE hook_epoch SET epoch = epoch - 1");
        check(&world.wrong().unwrap_err());
    });
}

#[test]
fn a_breaker_that_somebody_else_opens_puts_its_rule_in_doubt() {
    in_both(|world| {
        for (run, tripped_at) in [("'[]'", "'2026-01-01T00:00:00.000000Z'"), ("'{}'", "NULL")] {
            world.tell(&format!(
                "INSERT INTO hook_breakers (hook_id, tenant_id, run, tripped_at) \
                 VALUES ('{EDITED}', '{DEFAULT_TENANT}', {run}, {tripped_at})"
            ));
            assert_eq!(world.wrong(), Ok(vec![EDITED.to_owned()]), "{run}, {tripped_at}");
            world.tell("DELETE FROM hook_breakers");
        }
        assert_eq!(world.wrong(), Ok(vec![]));
    });
}

#[test]
fn what_is_in_doubt_is_not_changed_until_somebody_takes_it() {
    in_both(|world| {
        world.tell(&format!("UPDATE agent_hooks SET matcher = '^x$' WHERE id = '{EDITED}'"));
        let store = world.open().unwrap();
        let row = store.hook(&HookId::from(EDITED)).unwrap().unwrap();
        let change = || RuleChange::Update { hook: Box::new(row.clone()), if_version: None, action: "updated" };
        let said = store.change(vec![change()], &by()).unwrap_err().to_string();
        assert!(said.contains("`no-rm` was changed by something other than Pintle"), "{said}");
        let said = store.trip(&row.id, &row.tenant_id, &by()).unwrap_err().to_string();
        assert!(said.contains("pintle store accept"), "{said}");
        assert_eq!(
            store.accept(&by()).unwrap(),
            ["the stored rule `no-rm` was changed by something other than Pintle"]
        );
        store.change(vec![change()], &by()).unwrap();
        assert_eq!(world.wrong(), Ok(vec![]));
        assert_eq!(store.accept(&by()), Ok(vec![]));
    });
}

#[test]
fn an_older_chain_or_epoch_shuts_every_gate_until_somebody_takes_it() {
    in_both(|world| {
        let older = "is an older copy of itself";
        for (sql, what) in [
            ("DELETE FROM audit_log", older),
            ("DELETE FROM audit_checkpoints; DELETE FROM audit_log", older),
            ("DELETE FROM audit_log WHERE seq = (SELECT max(seq) FROM audit_log)", older),
            (
                "UPDATE audit_log SET hash = prev WHERE seq = (SELECT max(seq) FROM audit_log)",
                "the end of the audit chain of the store at",
            ),
            ("UPDATE hook_epoch SET epoch = epoch - 1", older),
        ] {
            let before = world.open().unwrap();
            keep(&*before, cleared()).unwrap();
            keep(&*before, cleared()).unwrap();
            drop(before);
            assert_eq!(world.wrong(), Ok(vec![]));
            world.tell(sql);
            let why = world.wrong().expect_err(sql);
            assert!(why.contains(what) && why.contains("pintle store accept"), "{why}");
            let store = world.open().unwrap();
            let refused =
                store.change(vec![RuleChange::Create(Box::new(rule(&HookId::fresh().to_string(), "x")))], &by());
            assert!(matches!(refused, Err(StoreError::Conflict(_))), "{sql}: {refused:?}");
            store.accept(&by()).unwrap();
            drop(store);
            assert_eq!(world.wrong(), Ok(vec![]), "{sql}");
        }
    });
}

#[test]
fn a_copy_from_before_is_older_also_once_it_went_on() {
    let world = world(None);
    let copy = |from: &Path, to: &Path| assert!(fs::copy(from, to).is_ok());
    let saved = world.home.path().join("saved");
    Connection::open(world.file()).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    copy(&world.file(), &saved);
    let store = world.open().unwrap();
    let again = RuleChange::Update {
        hook: Box::new(Rule { matcher: "^exec|spawn$".into(), ..rule(EDITED, "no-rm") }),
        if_version: None,
        action: "updated",
    };
    store.change(vec![again], &by()).unwrap();
    keep(&*store, cleared()).unwrap();
    drop(store);
    for companion in ["-wal", "-shm"] {
        drop(fs::remove_file(format!("{}{companion}", world.file().display())));
    }
    copy(&saved, &world.file());
    assert!(world.wrong().unwrap_err().contains("is an older copy of itself"));
    // Whoever works on does not make it the newer one.
    for _ in 0..9 {
        let store = world.open().unwrap();
        drop(store.rules());
        keep(&*store, cleared()).unwrap();
    }
    assert!(world.wrong().unwrap_err().contains("is an older copy of itself"));
}

#[test]
fn a_store_that_is_gone_emptied_or_another_one_shuts_every_gate_and_names_what_is_lost() {
    let world = world(None);
    let lost = "2 guards are lost (`no-push`, `no-rm`), so every gate stays shut; bring the store back with `pintle store \
                restore FILE`, or go on without with `pintle store forget --yes-i-lose-2-guards`";
    let remove = || {
        for companion in ["", "-wal", "-shm"] {
            drop(fs::remove_file(format!("{}{companion}", world.file().display())));
        }
    };
    remove();
    let why = world.wrong().unwrap_err();
    assert!(why.ends_with(&format!("is new, and not the one that was here: {lost}")), "{why}");
    let other = pintle_store::open(&world.url, world.home.path(), Durability::Commit).unwrap();
    let strange = rule("0193a5b0-7000-7000-8000-0000000000a9", "strange");
    other.change(vec![RuleChange::Create(Box::new(strange))], &by()).unwrap();
    drop(other);
    let why = world.wrong().unwrap_err();
    assert!(why.ends_with(&format!("is another one: {lost}")), "{why}");
    assert!(matches!(world.open().unwrap().accept(&by()), Err(StoreError::Conflict(_))), "that is no older copy");
    AnchorFile::beside(world.home.path(), &world.url).forget().unwrap();
    assert_eq!(world.wrong(), Ok(vec![]), "whoever forgets it goes on with what is there");

    // Where no guard is lost, nothing shuts.
    let store = world.open().unwrap();
    let off = Rule { enabled: false, ..rule("0193a5b0-7000-7000-8000-0000000000a9", "strange") };
    store.change(vec![RuleChange::Update { hook: Box::new(off), if_version: None, action: "toggled" }], &by()).unwrap();
    drop(store);
    remove();
    assert_eq!(world.wrong(), Ok(vec![]));
}

#[test]
fn a_home_older_than_anchors_gets_one_and_takes_what_is_there() {
    in_both(|world| {
        let anchor = AnchorFile::beside(world.home.path(), &world.url);
        anchor.forget().unwrap();
        // As a program wrote them that knew of no digests.
        world.tell("DELETE FROM audit_checkpoints; DELETE FROM audit_log");
        assert_eq!((world.wrong(), anchor.read().unwrap().map(|it| it.guards().count())), (Ok(vec![]), Some(2)));
        world.tell(&format!("UPDATE agent_hooks SET event = 'stop' WHERE id = '{EDITED}'"));
        assert_eq!(world.wrong(), Ok(vec![EDITED.to_owned()]));
        fs::write(anchor.path(), "{").unwrap();
        assert!(world.wrong().unwrap_err().contains("is damaged"));
    });
}
