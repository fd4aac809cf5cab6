//! What somebody else puts into a database so that writes go astray: triggers that swallow rows, tables in a nearer
//! schema.

use domain::id::{DEFAULT_TENANT, HookId, TurnId};
use domain::store::{ExecutionQuery, RuleChange};
use domain::verdict::VerdictKind;
use testkit::conformance::audit::cleared;
use testkit::conformance::executions::{keep_executions, ran, said};
use testkit::conformance::sessions::{append_of, begun, hand_over, key};
use testkit::conformance::store::keep;
use testkit::postgres::Server;

use super::anchors::{EDITED, World, by, in_both, rule, world};

#[test]
fn what_a_trigger_swallows_is_told_before_the_call_runs() {
    in_both(|world| {
        let tables =
            ["events", "audit_log", "audit_checkpoints", "hook_executions", "agent_hooks", "hook_changes", "journal"];
        for table in tables {
            world.tell(&match world.is_postgres() {
                true => format!(
                    "CREATE OR REPLACE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
                     CREATE TRIGGER gone BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION gone()"
                ),
                false => format!("CREATE TRIGGER gone BEFORE INSERT ON {table} BEGIN SELECT RAISE(IGNORE); END"),
            });
            let store = world.open().unwrap();
            let kept = match table {
                "events" | "audit_log" => keep(&*store, cleared()),
                // Signed at the end, or after a thousand rows.
                "audit_checkpoints" => keep(&*store, std::iter::repeat_with(cleared).take(1001).flatten().collect()),
                "hook_executions" => keep(&*store, vec![ran(&HookId::from(EDITED), said(VerdictKind::Deny))]),
                "journal" => {
                    let key = key(DEFAULT_TENANT, &HookId::fresh().to_string());
                    hand_over(&*store, append_of(&key, vec![begun(&TurnId::fresh(), "hello")])).recv().unwrap()
                }
                _ => {
                    let fresh = rule(&HookId::fresh().to_string(), "fresh");
                    store.change(vec![RuleChange::Create(Box::new(fresh))], &by()).map(drop)
                }
            };
            assert!(kept.is_err(), "{table}");
            drop(store);
            world.tell(&match world.is_postgres() {
                true => format!("DROP TRIGGER gone ON {table}"),
                false => "DROP TRIGGER gone".to_owned(),
            });
        }
        let store = world.open().unwrap();
        keep(&*store, vec![ran(&HookId::from(EDITED), said(VerdictKind::Deny))]).unwrap();
        let newest = ExecutionQuery { limit: 1, ..ExecutionQuery::default() };
        let executed = store.executions(&newest).unwrap();
        assert_eq!(keep_executions(&*store, executed), Ok(()), "one that is there already is no loss");
    });
}

/// Something that takes away or changes what was written, after it was written.
fn taking_away(world: &World<'_>, table: &str) -> [String; 2] {
    match world.is_postgres() {
        true => [
            format!(
                "CREATE OR REPLACE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS \
                 'BEGIN DELETE FROM {table}; RETURN NULL; END'; \
                 CREATE TRIGGER gone AFTER INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION gone()"
            ),
            format!("DROP TRIGGER gone ON {table}"),
        ],
        false => [
            format!(
                "CREATE TRIGGER gone AFTER INSERT ON {table} BEGIN DELETE FROM {table} WHERE rowid = NEW.rowid; END"
            ),
            "DROP TRIGGER gone".to_owned(),
        ],
    }
}

#[test]
fn what_is_taken_away_after_it_was_written_shuts_every_gate() {
    in_both(|world| {
        let mut tables = vec!["audit_log", "events", "hook_executions"];
        if !world.is_postgres() {
            tables.push("evidence_tail");
        }
        for table in tables {
            let [make, drop_it] = taking_away(&world, table);
            // Under way: the call that comes next is refused.
            let store = world.open().unwrap();
            keep(&*store, cleared()).unwrap();
            world.tell(&make);
            let said = keep(&*store, cleared()).unwrap_err().to_string();
            assert!(said.contains(&format!("the table `{table}` has the trigger `gone`")), "{table}: {said}");
            drop(store);
            // And whoever comes to it is told before any call.
            let shut = world.rules().shut.unwrap_or_default();
            assert!(shut.contains(&format!("the table `{table}` has the trigger `gone`")), "{table}: {shut}");
            world.tell(&drop_it);
            assert_eq!(world.rules().shut, None, "{table}");
            keep(&*world.open().unwrap(), cleared()).unwrap();
        }
        let others = match world.is_postgres() {
            true => vec![
                ("CREATE RULE gone AS ON INSERT TO events DO INSTEAD NOTHING", "DROP RULE gone ON events"),
                ("ALTER TABLE events ENABLE ROW LEVEL SECURITY", "ALTER TABLE events DISABLE ROW LEVEL SECURITY"),
            ],
            false => vec![
                (
                    "ALTER TABLE events RENAME TO real; CREATE VIEW events AS SELECT * FROM real",
                    "DROP VIEW events; ALTER TABLE real RENAME TO events",
                ),
                (
                    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = replace(sql, 'event_id     BLOB', \
                     'event_id BLOB UNIQUE ON CONFLICT REPLACE') WHERE name = 'events'; PRAGMA writable_schema = reset",
                    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = replace(sql, \
                     'event_id BLOB UNIQUE ON CONFLICT REPLACE', 'event_id     BLOB') WHERE name = 'events'; \
                     PRAGMA writable_schema = reset",
                ),
                (
                    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = replace(sql, 'event_id     BLOB', \
                     'event_id BLOB UNIQUE on/**/conflict--\n replace') WHERE name = 'events'; \
                     PRAGMA writable_schema = reset",
                    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = replace(sql, \
                     'event_id BLOB UNIQUE on/**/conflict--\n replace', 'event_id     BLOB') WHERE name = 'events'; \
                     PRAGMA writable_schema = reset",
                ),
            ],
        };
        for (make, undo) in others {
            world.tell(make);
            assert!(world.rules().shut.is_some_and(|why| why.contains("`events`")), "{make}");
            world.tell(undo);
            assert_eq!(world.rules().shut, None, "{undo}");
        }
        // What somebody keeps beside is theirs.
        if !world.is_postgres() {
            world.tell("CREATE TABLE foo (a UNIQUE ON CONFLICT IGNORE)");
            world.tell("CREATE TRIGGER bar AFTER INSERT ON foo BEGIN DELETE FROM foo; END");
            assert_eq!(world.rules().shut, None);
        }
    });
}

#[test]
fn tables_in_a_nearer_schema_are_never_seen() {
    let server = Server::start();
    let world = world(Some(&server));
    let user = server.execute(&world.url, "SELECT current_user");
    world.tell(&format!(
        "CREATE SCHEMA \"{0}\"; CREATE TABLE \"{0}\".agent_hooks AS SELECT * FROM public.agent_hooks WHERE FALSE; \
         CREATE TABLE \"{0}\".audit_log AS SELECT * FROM public.audit_log WHERE FALSE",
        user.trim()
    ));
    let rules = world.rules();
    assert_eq!((rules.shut, rules.doubts, rules.hooks.len()), (None, vec![], 2));
    world.tell(&format!("CREATE TABLE \"{}\".pintle_schema AS SELECT 57 AS number", user.trim()));
    let said = world.open().unwrap_err().to_string();
    assert!(said.contains("say which one with `?schema=NAME`"), "{said}");
    let named = World {
        url: format!("{}{}schema=public", world.url, if world.url.contains('?') { "&" } else { "?" }),
        ..world
    };
    assert_eq!(named.rules().hooks.len(), 2);
}
