//! The schema in both databases: up, down and up again, and what becomes of rows on the way.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pintle_domain::approval::{Approval, ApprovalStanding, ApprovalState};
use pintle_domain::id::{DEFAULT_TENANT, SENTINEL_TENANT, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::record::{EventRecord, EventRuling, HookOutcome, NotRun};
use pintle_domain::store::{RecordQuery, SessionKey, StoredTurn, TenantScope};
use pintle_domain::tool::ToolCall;
use pintle_domain::verdict::VerdictKind;
use pintle_store::{Durability, Memory, Store, migrate_to};
use pintle_testkit::conformance::approvals::{call, moment, question, said};
use pintle_testkit::conformance::sessions::{append_of, appended, begun, queued};
use pintle_testkit::conformance::store::{event, hook as hook_line, keep};
use pintle_testkit::postgres::Server;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

/// The schemas that there are.
const NUMBERS: [u32; 23] = [0, 1, 2, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 67, 68, 69, 70, 71, 72, 73];

/// A database of one kind, looked at from outside.
struct Database<'a> {
    url: String,
    server: Option<&'a Server>,
}

impl Database<'_> {
    fn migrate(&self, to: u32) {
        migrate_to(&self.url, Path::new("/"), to).unwrap();
    }

    fn open(&self) -> Arc<dyn Store> {
        pintle_store::open(&self.url, Path::new("/"), Durability::Commit).unwrap()
    }

    /// Everything that there is but rows.
    fn schema(&self) -> String {
        match self.server {
            Some(server) => server.schema(&self.url),
            None => self.ask("SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1"),
        }
    }

    /// A line for each row.
    fn ask(&self, sql: &str) -> String {
        let Some(file) = self.url.strip_prefix("sqlite://") else {
            return self.server.unwrap().execute(&self.url, sql);
        };
        let connection = Connection::open(file).unwrap();
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        let mut lines = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let cell = |i| match row.get_ref(i).unwrap() {
                ValueRef::Null => String::new(),
                ValueRef::Integer(number) => number.to_string(),
                other @ (ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_)) => {
                    other.as_str().unwrap().to_owned()
                }
            };
            lines.push((0..columns).map(cell).collect::<Vec<_>>().join("|"));
        }
        lines.join("\n")
    }

    /// What the database says to a change.
    fn tell(&self, sql: &str) -> Result<(), String> {
        match self.url.strip_prefix("sqlite://") {
            Some(file) => Connection::open(file).unwrap().execute_batch(sql).map_err(|e| e.to_string()),
            None => {
                let said = std::panic::catch_unwind(|| self.server.unwrap().execute(&self.url, sql));
                said.map(drop).map_err(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
            }
        }
    }
}

fn in_both(check: impl Fn(&Database<'_>)) {
    let folder = tempfile::tempdir().unwrap();
    check(&Database { url: format!("sqlite://{}", folder.path().join("pintle.db").display()), server: None });
    let server = Server::start();
    check(&Database { url: server.fresh_database(), server: Some(&server) });
}

#[test]
fn a_schema_goes_up_and_down_and_up_again() {
    in_both(|database| {
        let mut schemas = Vec::new();
        for number in NUMBERS {
            database.migrate(number);
            schemas.push(database.schema());
        }
        assert_eq!(
            schemas.iter().collect::<std::collections::HashSet<_>>().len(),
            NUMBERS.len(),
            "each adds something"
        );
        for (number, schema) in NUMBERS.iter().zip(&schemas).rev() {
            database.migrate(*number);
            assert_eq!(&database.schema(), schema, "down to {number}");
        }
        database.migrate(NUMBERS[NUMBERS.len() - 1]);
        assert_eq!(Some(&database.schema()), schemas.last(), "up in one go");
        database.migrate(2);
        drop(database.open());
        assert_eq!(Some(&database.schema()), schemas.last(), "opening brings it up to date");
        assert_eq!(database.ask("SELECT epoch FROM hook_epoch"), "0");
        let tenants = format!("{SENTINEL_TENANT}|global\n{DEFAULT_TENANT}|default");
        assert_eq!(database.ask("SELECT id, slug FROM tenants ORDER BY id"), tenants);
    });
}

#[test]
fn an_unknown_schema_is_named() {
    for (url, number, why) in [
        ("sqlite://x.db", 3, "there is no schema 3; expected one of 0, 1, 2, 51, 52, 53, 54, 55"),
        ("memory:", 2, "store url: `memory:` has no schema; expected "),
        ("x", 2, "store url: `x` has no scheme; expected "),
    ] {
        let said = migrate_to(url, Path::new("/nowhere"), number).unwrap_err().to_string();
        assert!(said.starts_with(why), "{said}");
    }
}

/// Somebody of the only tenant there was.
fn before_tenants() -> Identity {
    Identity { tenant_id: TenantId::from("default"), ..Identity::top("main", "s", TurnId::from("t")) }
}

#[test]
fn what_was_kept_before_tenants_belongs_to_the_default_one() {
    in_both(|database| {
        let (before, after) = (before_tenants(), Identity::top("main", "s", TurnId::from("t")));
        let others = Identity { tenant_id: TenantId::from("other"), ..before.clone() };
        let arguments = r#"{"tenant_id":"default","amount":12345678901234567890.10,"huge":1e400,"nul":"\u0000"}"#;
        let old = question("old", &before, &call(arguments));
        let another = ToolCall { id: "call_2".into(), ..call("{}") };
        let forged = Approval { digest: "00".into(), ..question("forged", &before, &another) };
        let store = database.open();
        let key = SessionKey { tenant: before.tenant_id.clone(), session: before.session_id.clone() };
        appended(&*store, append_of(&key, vec![begun(&before.turn_id, "hello"), queued("x")]));
        keep(&*store, vec![EventRecord { who: before.clone(), ..event(&before.turn_id) }]).unwrap();
        store.ask(old.clone(), moment(0)).unwrap();
        store.answer(&TenantScope::All, "old", said(true), moment(1)).unwrap();
        store.ask(forged.clone(), moment(0)).unwrap();
        store.ask(question("foreign", &others, &call("{}")), moment(0)).unwrap();
        drop(store);
        // As if all that had been written by a program of that time.
        database.migrate(2);
        let store = database.open();

        let now = SessionKey { tenant: after.tenant_id.clone(), session: after.session_id.clone() };
        assert_eq!(store.journal(&now).unwrap().len(), 2);
        assert_eq!((store.journal(&key).unwrap().len(), store.sessions(&key.tenant).unwrap().len()), (0, 0));
        let found = store.find(&RecordQuery { limit: 9, ..RecordQuery::of(TenantScope::All) }).unwrap();
        assert_eq!(found[0].tenant_id, DEFAULT_TENANT);
        let fresh = question("new", &after, &call(arguments));
        let expected = Approval {
            id: "old".into(),
            state: ApprovalState::Approved,
            answered_by: Some("ada".into()),
            note: "as we said".into(),
            ..fresh.clone()
        };
        assert_eq!(
            store.approval(&TenantScope::All, "old"),
            Ok(Some(expected)),
            "it is about the same call, to the last digit"
        );
        assert_eq!(store.ask(fresh, moment(2)), Ok(ApprovalStanding::Approved { id: "old".into() }), "and good for it");
        assert_eq!(
            store.approval(&TenantScope::All, "forged").unwrap().unwrap().digest,
            "00",
            "what was not a call's does not become one's"
        );
        assert_eq!(store.approval(&TenantScope::All, "foreign").unwrap().unwrap().tenant_id, others.tenant_id);
        drop(store);
        database.migrate(2);
        assert_eq!(database.ask("SELECT DISTINCT tenant_id FROM sessions"), "default");
        let held = "SELECT id, tenant_id, state FROM approvals ORDER BY seq";
        assert_eq!(database.ask(held), "old|default|approved\nforged|default|waiting\nforeign|other|waiting");
    });
}

/// A hook with only what has no default.
fn hook(id: u8, more: &str) -> String {
    let (columns, values) =
        more.split_once('=').map_or_else(Default::default, |(name, value)| (format!(", {name}"), format!(", {value}")));
    format!(
        "INSERT INTO agent_hooks (id, tenant_id, event, handler_type, scope{columns}) VALUES \
         ('{}', '{DEFAULT_TENANT}', 'pre_tool_use', 'script', 'tenant'{values});",
        uuid(id)
    )
}

fn execution(id: u8, hook: u8, key: &str) -> String {
    format!(
        "INSERT INTO hook_executions (id, hook_id, hook_name, hook_version, handler_type, tenant_id, event_id, event, \
         decision, dedup_key) VALUES ('{}', '{}', 'guard', 1, 'script', '{DEFAULT_TENANT}', '{}', 'stop', 'allow', {key});",
        uuid(id),
        uuid(hook),
        uuid(9)
    )
}

fn uuid(id: u8) -> String {
    format!("0193a5b0-7000-7000-8000-0000000001{id:02}")
}

#[test]
fn hooks_have_their_defaults_and_only_words_that_exist() {
    in_both(|database| {
        drop(database.open());
        database.tell(&hook(1, "")).unwrap();
        let defaults = "SELECT config, timeout_ms, on_timeout, priority, version, source, breaker, on_trip, \
                        disabled_reason, metadata, matcher, name FROM agent_hooks WHERE enabled AND NOT may_rewrite";
        assert_eq!(database.ask(defaults), "{}|5000|block|0|1|user|all|block||{}||");
        for refused in [
            "event='stopp'",
            "source='ui'",
            "breaker='some'",
            "on_trip='ask'",
            "on_timeout='ask'",
            "disabled_reason='a reason that is longer than it may be'",
            "timeout_ms=NULL",
        ] {
            let (name, value) = refused.split_once('=').unwrap();
            let sql = format!("UPDATE agent_hooks SET {name} = {value}");
            let said = database.tell(&sql).expect_err(refused);
            assert!(
                ["CHECK", "check", "too long", "NOT NULL", "not-null"].iter().any(|word| said.contains(word)),
                "{said}"
            );
        }
        let foreign = hook(2, "").replace(DEFAULT_TENANT, &uuid(77));
        assert!(database.tell(&foreign).is_err(), "a tenant that is not there has no hooks");
        assert!(database.tell("INSERT INTO hook_epoch (id, epoch) VALUES (2, 7)").is_err(), "there is one row");
    });
}

#[test]
fn executions_outlive_their_hook_and_stand_once() {
    in_both(|database| {
        drop(database.open());
        for sql in [hook(1, ""), execution(2, 1, "'k'"), execution(3, 1, "NULL"), execution(4, 1, "NULL")] {
            database.tell(&sql).unwrap();
        }
        assert!(database.tell(&execution(5, 1, "'k'")).is_err(), "a retry leaves no second row");
        let breaker =
            format!("INSERT INTO hook_breakers (hook_id, tenant_id) VALUES ('{}', '{DEFAULT_TENANT}');", uuid(1));
        database.tell(&breaker).unwrap();
        database.tell("DELETE FROM agent_hooks").unwrap();
        assert_eq!(database.ask("SELECT count(*), count(hook_id) FROM hook_executions"), "3|0");
        assert_eq!(database.ask("SELECT count(*) FROM hook_breakers"), "0");
    });
}

#[test]
fn a_budget_knows_what_remains() {
    in_both(|database| {
        drop(database.open());
        let budget = format!(
            "INSERT INTO tenant_hook_budget (tenant_id, month_start) VALUES ('{DEFAULT_TENANT}', '2026-11-01');"
        );
        database.tell(&budget).unwrap();
        database.tell("UPDATE tenant_hook_budget SET used = used + 400000").unwrap();
        let told = "SELECT month_start, budget_total, used, remaining, metadata FROM tenant_hook_budget";
        assert_eq!(database.ask(told), "2026-11-01|1000000|400000|600000|{}");
        database.tell(&format!("DELETE FROM tenants WHERE id = '{DEFAULT_TENANT}'")).unwrap();
        assert_eq!(database.ask("SELECT count(*) FROM tenant_hook_budget"), "0", "it goes with its tenant");
    });
}

/// An event with a hook of everything that is kept, and one without anything.
fn told(turn: &TurnId) -> Vec<EventRecord> {
    let took = Duration::from_micros(812);
    let said = HookOutcome::Said { word: VerdictKind::Deny, reason: Some("no".into()), took };
    let hooks = vec![hook_line("guard", said), hook_line("other", HookOutcome::NotRun(NotRun::Disabled))];
    vec![EventRecord { hooks: hooks.into(), tool: Some("exec".into()), ..event(turn) }, event(turn)]
}

#[test]
fn events_of_before_come_over_and_back_with_nothing_lost() {
    in_both(|database| {
        let (first, second) = (TurnId::fresh(), TurnId::from("no uuid"));
        let store = database.open();
        for _ in 0..300 {
            keep(&*store, told(&first)).unwrap();
        }
        keep(&*store, told(&second)).unwrap();
        let all = RecordQuery { limit: usize::MAX, ..RecordQuery::of(TenantScope::All) };
        let before = store.find(&all).unwrap();
        drop(store);
        database.migrate(53);
        assert_eq!(database.ask("SELECT count(*) FROM events"), before.len().to_string());
        let broken = "UPDATE events SET hooks = '[{' WHERE seq = (SELECT max(seq) FROM events)";
        database.tell(broken).unwrap();
        let store = database.open();
        let mut after = store.find(&all).unwrap();
        let kept = after.pop().unwrap().hooks;
        assert_eq!(kept[0].reason.as_deref(), Some("unreadable"), "one row does not shut the store");
        assert_eq!(kept[0].warnings[1], "[{", "and is not lost");
        assert_eq!(after, before[..before.len() - 1]);
    });
}

#[test]
fn the_old_are_forgotten_and_what_only_they_used() {
    in_both(|database| {
        let store = database.open();
        let now: jiff::Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        let (old, young) = (TurnId::fresh(), TurnId::fresh());
        for _ in 0..5 {
            keep(&*store, told(&old)).unwrap();
        }
        let fresh = EventRecord { at: now, ..event(&young) };
        keep(&*store, vec![fresh.clone()]).unwrap();
        assert_eq!(store.forget_events(moment(0), 4), Ok(0), "nothing is that old");
        assert_eq!(store.forget_events(now, 4), Ok(4), "some at a time");
        assert_eq!(store.forget_events(now, 100), Ok(6), "and no more than are old");
        assert_eq!(store.forget_events(now, 100), Ok(0));
        let left = store.find(&RecordQuery { limit: 99, ..RecordQuery::of(TenantScope::All) }).unwrap();
        assert_eq!(left.iter().map(|event| &*event.event_id).collect::<Vec<_>>(), [fresh.event_id.as_str()]);
        assert_eq!(database.ask("SELECT count(*) FROM turns"), "1");
        assert_eq!(database.ask("SELECT hooks FROM hook_sets"), "[]");
    });
}

#[test]
fn turns_are_listed_with_what_was_asked_and_refused() {
    in_both(|database| {
        for store in [database.open(), Arc::new(Memory::new())] {
            let (first, second) = (TurnId::fresh(), TurnId::fresh());
            let who = |turn: &TurnId| Identity::top("main", "s", turn.clone());
            let key = SessionKey { tenant: who(&first).tenant_id, session: who(&first).session_id };
            let about = |turn: &TurnId, call: &str, word| EventRecord {
                who: who(turn).for_call(&call.into()),
                ruling: EventRuling::word(word),
                ..event(turn)
            };
            appended(&*store, append_of(&key, vec![begun(&first, "tidy\n  up")]));
            let calls = [("a", VerdictKind::Deny), ("a", VerdictKind::Deny), ("b", VerdictKind::Continue)];
            keep(&*store, calls.map(|(call, word)| about(&first, call, word)).into()).unwrap();
            keep(&*store, vec![EventRecord { who: who(&second), ..event(&second) }]).unwrap();
            let line = |turn: &StoredTurn| (turn.turn_id.clone(), turn.prompt.clone(), turn.calls, turn.refused);
            let listed = |limit| store.turns(None, None, limit).unwrap().iter().map(line).collect::<Vec<_>>();
            let expected = [(second.to_string(), None, 0, 0), (first.to_string(), Some("tidy up".to_owned()), 2, 1)];
            assert_eq!(listed(9), expected);
            assert_eq!(listed(1), expected[..1]);
            assert_eq!(store.turns(Some(&TenantId::from("other")), None, 9), Ok(vec![]));
            assert_eq!(store.turns(None, Some("2030-01-01T00:00:00Z".parse().unwrap()), 9), Ok(vec![]));
            store.delete(&key).unwrap();
            assert_eq!(listed(9)[1].1, None, "a prompt goes with its session");
        }
    });
}

#[test]
fn a_record_that_a_trigger_swallows_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database { url: format!("sqlite://{}", folder.path().join("pintle.db").display()), server: None };
    drop(database.open());
    database.tell("CREATE TRIGGER t BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END").unwrap();
    let said = keep(&*database.open(), told(&TurnId::fresh())).unwrap_err().to_string();
    assert!(said.contains("the table `events` has the trigger `t`, which Pintle did not make"), "{said}");
}
