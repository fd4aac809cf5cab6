//! What somebody else puts into a database so that writes go astray: triggers that swallow rows, tables in a nearer
//! schema.

use jiff::Timestamp;
use pintle_domain::id::{DEFAULT_TENANT, EventId, HookId, TurnId};
use pintle_domain::record::EventRecord;
use pintle_domain::store::{ExecutionQuery, RuleChange, TenantScope};
use pintle_domain::verdict::VerdictKind;
use pintle_store::Store as _;
use pintle_testkit::conformance::audit::cleared;
use pintle_testkit::conformance::executions::{keep_executions, ran, said};
use pintle_testkit::conformance::sessions::{append_of, begun, hand_over, key};
use pintle_testkit::conformance::store::keep;
use pintle_testkit::postgres::Server;

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
        let newest = ExecutionQuery { limit: 1, ..ExecutionQuery::of(TenantScope::All) };
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

/// A change of the shape of a table: its name, what is done, and what undoes it.
type Misshaping = (&'static str, String, String);

fn misshapen(world: &World<'_>) -> Vec<Misshaping> {
    if world.is_postgres() { on_a_server() } else { in_a_file() }
}

fn on_a_server() -> Vec<Misshaping> {
    let alter = |table: &'static str, make: &str, undo: &str| {
        (table, format!("ALTER TABLE {table} {make}"), format!("ALTER TABLE {table} {undo}"))
    };
    let key = "DROP CONSTRAINT events_turn_fkey, ADD CONSTRAINT events_turn_fkey FOREIGN KEY (turn) REFERENCES turns \
               (number)";
    let check = "DROP CONSTRAINT audit_log_kind_check, ADD CONSTRAINT audit_log_kind_check CHECK (kind IN ('record', \
                 'decision', 'change', 'trip'";
    vec![
        alter("events", &format!("{key} ON DELETE CASCADE"), key),
        alter("audit_log", &format!("{check}, 'other'))"), &format!("{check}))")),
        alter("turns", "DROP CONSTRAINT turns_key_key", "ADD CONSTRAINT turns_key_key UNIQUE (key)"),
        alter("agent_hooks", "ALTER enabled SET DEFAULT FALSE", "ALTER enabled SET DEFAULT TRUE"),
        alter("agent_hooks", "ALTER scope DROP NOT NULL", "ALTER scope SET NOT NULL"),
        alter("audit_log", "ALTER body TYPE VARCHAR(9000)", "ALTER body TYPE TEXT"),
        alter("journal", "SET UNLOGGED", "SET LOGGED"),
        alter("journal", "ADD mine TEXT", "DROP mine"),
    ]
    .into_iter()
    .chain(unique_indexes())
    .collect()
}

fn in_a_file() -> Vec<Misshaping> {
    let edit = |table: &'static str, from: &str, to: &str| {
        let replace = |from: &str, to: &str| {
            let (from, to) = (from.replace('\'', "''"), to.replace('\'', "''"));
            format!(
                "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = replace(sql, '{from}', '{to}') \
                 WHERE name = '{table}'; PRAGMA writable_schema = reset"
            )
        };
        (table, replace(from, to), replace(to, from))
    };
    let (add, drop_it) = ("ALTER TABLE journal ADD COLUMN mine TEXT", "ALTER TABLE journal DROP COLUMN mine");
    vec![
        edit("events", "REFERENCES turns (number)", "REFERENCES turns (number) ON DELETE CASCADE"),
        edit("audit_log", "'change', 'trip'", "'change', 'trip', 'other'"),
        edit("agent_hooks", "enabled         INTEGER NOT NULL DEFAULT 1", "enabled INTEGER NOT NULL DEFAULT 0"),
        edit("agent_hooks", "agent_ids       TEXT    NOT NULL", "agent_ids TEXT"),
        edit("audit_log", "body            TEXT", "body ANY"),
        ("journal", add.to_owned(), drop_it.to_owned()),
    ]
    .into_iter()
    .chain(unique_indexes())
    .collect()
}

/// What keeps rows unique, gone and new.
fn unique_indexes() -> [Misshaping; 2] {
    let once = "CREATE UNIQUE INDEX hook_executions_once ON hook_executions (dedup_key) WHERE dedup_key IS NOT NULL";
    [
        ("hook_executions", "DROP INDEX hook_executions_once".to_owned(), once.to_owned()),
        ("hook_outbox", "CREATE UNIQUE INDEX mine ON hook_outbox (attempts)".to_owned(), "DROP INDEX mine".to_owned()),
    ]
}

#[test]
fn a_table_of_another_shape_shuts_every_gate() {
    in_both(|world| {
        let store = world.open().unwrap();
        keep(&*store, cleared()).unwrap();
        for (table, make, undo) in misshapen(&world) {
            world.tell(&make);
            let shut = world.rules().shut.unwrap_or_default();
            assert!(shut.contains(&format!("the table `{table}` ")), "{make}: {shut}");
            if !world.is_postgres() {
                let said = keep(&*store, cleared()).unwrap_err().to_string();
                assert!(said.contains(&format!("the table `{table}` ")), "{make}: {said}");
            }
            world.tell(&undo);
            assert_eq!(world.rules().shut, None, "{undo}");
            keep(&*store, cleared()).unwrap();
        }
        let cascades = misshapen(&world).remove(0);
        world.tell(&cascades.1);
        let shut = world.rules().shut.unwrap_or_default();
        assert!(shut.contains("ON DELETE CASCADE` and lacks `"), "{shut}");
        world.tell(&cascades.2);
        // What changes nothing but how long something takes, and what somebody keeps beside.
        world.tell("CREATE INDEX mine ON events (checkpoint)");
        world.tell("CREATE TABLE theirs (id INT PRIMARY KEY)");
        assert_eq!(world.rules().shut, None);
    });
}

/// Calls that were cleared a day after another from now on, with the events that decided on them.
fn days_of_calls(store: &dyn pintle_store::Store) -> Vec<(EventId, Timestamp)> {
    let now = Timestamp::now();
    let day = |number: i64| {
        let at = now + jiff::SignedDuration::from_hours(24 * (number + 1));
        let events: Vec<_> = cleared().into_iter().map(|event| EventRecord { at, ..event }).collect();
        let decided = events.iter().find(|event| event.ruling.permit.is_some()).unwrap().event_id.clone();
        keep(store, events).unwrap();
        (decided, at)
    };
    (0..5).map(day).collect()
}

#[test]
fn an_event_that_somebody_took_is_missed_and_one_that_was_forgotten_is_not() {
    in_both(|world| {
        let store = world.open().unwrap();
        let told = days_of_calls(&*store);
        assert_eq!(store.missing_events(&told), Ok(Vec::new()));
        store.forget_events(told[1].1, 1000).unwrap();
        assert_eq!(store.missing_events(&told), Ok(Vec::new()), "the oldest one is gone in time");
        let at = told[3].1.as_nanosecond();
        world.tell(&format!("DELETE FROM events WHERE at = {at}"));
        assert_eq!(store.missing_events(&told), Ok(vec![told[3].0.clone()]));
        world.tell("DELETE FROM events");
        assert_eq!(store.missing_events(&told), Ok(Vec::new()), "nothing says what was there");
    });
    let memory = pintle_store::Memory::new();
    let told = days_of_calls(&memory);
    let never = (EventId::from("0193a5b0-7000-7000-8000-00000000dead"), told[2].1);
    assert_eq!(memory.missing_events(&[told[0].clone(), never.clone(), told[4].clone()]), Ok(vec![never.0]));
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
    world.tell(&format!("CREATE TABLE \"{}\".pintle_schema AS SELECT 60 AS number", user.trim()));
    let said = world.open().unwrap_err().to_string();
    assert!(said.contains("say which one with `?schema=NAME`"), "{said}");
    let named = World {
        url: format!("{}{}schema=public", world.url, if world.url.contains('?') { "&" } else { "?" }),
        ..world
    };
    assert_eq!(named.rules().hooks.len(), 2);
}
