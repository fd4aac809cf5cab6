//! A store that somebody else writes to, column by column, in every table: what comes of it. The columns are those that
//! the database has, so a new one fails here until it says what must happen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use pintle_domain::approval::ApprovalState;
use pintle_domain::id::{DEFAULT_TENANT, HookId, SENTINEL_TENANT, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::rule::{HookScope, Rule};
use pintle_domain::store::{Actor, BudgetChange, RuleChange, TenantScope};
use pintle_domain::tool::CallPlace;
use pintle_domain::verdict::VerdictKind;
use pintle_store::AnchorFile;
use pintle_store::keyring::signing::{PublicKeys, SigningKey};
use pintle_testkit::conformance::approvals::{call, moment, question, said as answered};
use pintle_testkit::conformance::audit::{findings, verified};
use pintle_testkit::conformance::executions::{ran, said};
use pintle_testkit::conformance::sessions::{append_of, appended, begun, key};
use pintle_testkit::conformance::store::keep;
use rusqlite::Connection;
use rusqlite::types::Value;

use super::anchors::{EDITED, OTHER, World, by, in_both, rule};

/// What must come of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Comes {
    /// The rule of that row refuses, and is named.
    Doubt,
    /// Every gate of the store refuses.
    Shut,
    /// `audit verify` names it.
    Verify,
    /// The question and its answer give no leave.
    Void,
    /// Nothing of these: for this reason, it opens no gate, and no call runs that is not recorded.
    Nothing(&'static str),
}

use Comes::{Doubt, Nothing, Shut, Verify, Void};

const LISTED: &str = "a listing for people; the audit chain has the same, by value, and no gate reads it";
const LOOKED_UP: &str = "where it is looked for: what counts is the sealed body, so the call is asked about again";
const TALK: &str = "a conversation: whatever is gone on with in it is cleared by the hooks in force then";
const TAIL: &str = "a row waits there for a quarter of a second; the tests beside the writer edit it";
const MONEY: &str = "a budget of tokens: raising it by SQL is a documented way, and a judge that is not asked refuses";
const OBSERVED: &str = "what observers are still to be sent: they refuse nothing, and its payload is sealed";
const ANY_NAME: &str =
    "a store that has every guard is the one that was known, whatever it calls itself: its chains are compared";
const SHOWN: &str = "shown, and nothing hangs on it";
const COUNTED: &str = "counted anew from what stands there; the breaker that it may open is a change that is recorded";

/// What must come of another value in each column, table by table.
const EXPECTED: &[(&str, &[&str], Comes)] = &[
    ("tenants", &["id", "slug"], Shut),
    ("tenants", &["name", "created_at"], Nothing(SHOWN)),
    ("hook_breakers", &["hook_id", "tenant_id", "tripped_at"], Doubt),
    ("hook_breakers", &["run"], Nothing(COUNTED)),
    ("hook_breakers", &["updated_at"], Nothing(SHOWN)),
    ("hook_changes", &["id", "tenant_id", "hook_id", "at", "actor", "action", "version", "diff"], Nothing(LISTED)),
    ("hook_epoch", &["id"], Shut),
    ("hook_epoch", &["epoch"], Shut),
    ("store_identity", &["id"], Shut),
    ("store_identity", &["store_id"], Nothing(ANY_NAME)),
    ("tenant_hook_budget", &["tenant_id", "month_start", "budget_total", "used", "last_warned_at"], Nothing(MONEY)),
    ("tenant_hook_budget", &["metadata", "updated_at"], Nothing(SHOWN)),
    ("hook_outbox", &["id", "tenant_id", "hook_id", "event_id", "payload", "attempts", "next_at"], Nothing(OBSERVED)),
    ("audit_log", &["tenant_id", "seq", "at", "kind", "body", "prev", "hash"], Verify),
    ("audit_checkpoints", &["tenant_id", "seq", "hash", "at", "kid", "signature"], Verify),
    ("approvals", &["id", "state", "answered_by", "note", "body", "seal"], Void),
    ("approvals", &["seq", "tenant_id", "session_id", "turn_id", "tool_call_id"], Nothing(LOOKED_UP)),
    (
        "sessions",
        &[
            "number",
            "tenant_id",
            "session_id",
            "agent_id",
            "parent",
            "created_at",
            "updated_at",
            "title",
            "turns",
            "open_turn",
            "opened",
            "last_end",
            "last_entry",
            "label",
            "model",
            "metadata",
        ],
        Nothing(TALK),
    ),
    ("journal", &["seq", "session", "at", "body"], Nothing(TALK)),
    ("holders", &["tenant_id", "session_id", "pid", "started"], Nothing(TALK)),
    (
        "leases",
        &["place", "tenant_id", "session_id", "fence", "owner", "expires_ms", "pid", "host", "boot", "node"],
        Nothing(TALK),
    ),
    ("nodes", &["id", "name", "level", "since_ms", "seen_ms", "state", "cut"], Nothing(TALK)),
    ("node_mail", &["seq", "tenant_id", "session_id", "at_ms", "kind", "body", "sender"], Nothing(TALK)),
    ("node_news", &["seq", "at_ms", "node", "body"], Nothing(TALK)),
    (
        "events",
        &[
            "seq",
            "event_id",
            "turn",
            "at",
            "checkpoint",
            "event",
            "iteration",
            "tool_call_id",
            "tool",
            "ruling",
            "text",
            "permit",
            "substituted",
            "call",
            "hooks",
            "details",
        ],
        Nothing(LISTED),
    ),
    (
        "turns",
        &["number", "key", "turn_id", "tenant_id", "agent_id", "session_id", "is_test", "began", "prompt"],
        Nothing(LISTED),
    ),
    ("hook_sets", &["number", "digest", "hooks", "last_used"], Nothing(LISTED)),
    (
        "hook_executions",
        &[
            "id",
            "hook_id",
            "hook_name",
            "hook_version",
            "handler_type",
            "tenant_id",
            "agent_id",
            "session_id",
            "turn_id",
            "event_id",
            "trace_id",
            "event",
            "tool_name",
            "tool_call_id",
            "input_hash",
            "decision",
            "reason",
            "duration_ms",
            "retry",
            "dedup_key",
            "error",
            "error_detail",
            "output",
            "metadata",
            "created_at",
        ],
        Nothing(LISTED),
    ),
    ("evidence_tail", &["slot", "number", "tenant_id", "seq", "entries", "evidence"], Nothing(TAIL)),
    ("evidence_folded", &["id", "number"], Nothing(TAIL)),
];

fn expected() -> BTreeMap<(String, String), Comes> {
    let of = |(table, columns, comes): &(&str, &[&str], Comes)| {
        columns.iter().map(|column| (((*table).to_owned(), (*column).to_owned()), *comes)).collect::<Vec<_>>()
    };
    EXPECTED.iter().flat_map(of).collect()
}

/// Columns that nobody can write, and tables that have tests of their own.
const LEFT_OUT: [(&str, &str); 21] = [
    // A rule's columns are those of `anchors.rs`.
    ("agent_hooks", ""),
    ("tenant_hook_budget", "remaining"),
    // The number of the schema: another one is another program's store.
    ("pintle_schema", ""),
    // What a gateway keeps beside conversations is no evidence, and no rule hangs on it.
    ("uploads", ""),
    ("upload_pieces", ""),
    ("repeats", ""),
    ("passed_texts", ""),
    // What others are still to be told refuses nothing.
    ("webhook_endpoints", ""),
    ("webhook_outbox", ""),
    ("webhook_cursor", ""),
    ("webhook_told", ""),
    // Who may ask is not a rule of what agents may do.
    ("tenant_stops", ""),
    ("members", ""),
    ("removed_members", ""),
    ("api_keys", ""),
    ("console_links", ""),
    ("console_sessions", ""),
    ("gateway_uses", ""),
    ("door_spending", ""),
    ("door_holds", ""),
    ("identity_epoch", ""),
];

/// Which tables and columns only one of the databases has.
const SQLITE_ALONE: [(&str, &str); 3] = [("holders", ""), ("evidence_tail", ""), ("evidence_folded", "")];
const POSTGRES_ALONE: [(&str, &str); 3] = [("leases", ""), ("node_mail", ""), ("node_news", "")];

/// Whether a column is among `named`, alone or with its table.
fn is_among(named: &[(&str, &str)], (table, column): (&str, &str)) -> bool {
    named.iter().any(|(named, own)| *named == table && (own.is_empty() || *own == column))
}

/// A row in every table that keeps something.
fn filled(world: &World<'_>) {
    let store = world.open().unwrap();
    let hook = HookId::from(EDITED);
    let (tenant, now) = (TenantId::default_tenant(), jiff::Timestamp::now());
    keep(&*store, vec![ran(&hook, said(VerdictKind::Deny))]).unwrap();
    let everywhere = "0193a5b0-7000-7000-8000-0000000000a3";
    let global =
        Rule { tenant_id: TenantId::from(SENTINEL_TENANT), scope: HookScope::Global, ..rule(everywhere, "everywhere") };
    store.change(vec![RuleChange::Create(Box::new(global))], &by()).unwrap();
    store.trip(&HookId::from(everywhere), &tenant, &by()).unwrap();
    store.set_budget(&tenant, &BudgetChange::to(500, Actor { at: now, ..by() })).unwrap();
    let who = Identity::top("main", "cli:1", TurnId::fresh());
    let asked = question("asked", &who, &call(r#"{"command":"rm -rf build"}"#)).at(CallPlace::in_folder("/work"));
    store.ask(asked, moment(0)).unwrap();
    store.answer(&TenantScope::All, "asked", answered(true), moment(1)).unwrap();
    let session = key(DEFAULT_TENANT, "edited");
    appended(&*store, append_of(&session, vec![begun(&TurnId::fresh(), "hello")]));
    drop(store);
    // What only a moment leaves: a job that waits, and in a file who holds a session and a row of the tail.
    let payload = if world.is_postgres() { "'\\x00'" } else { "x'00'" };
    world.tell(&format!(
        "INSERT INTO hook_outbox (id, tenant_id, hook_id, event_id, payload, next_at) VALUES \
         ('{OTHER}', '{DEFAULT_TENANT}', '{EDITED}', '{OTHER}', {payload}, '2999-01-01T00:00:00.000000Z')"
    ));
    if world.is_postgres() {
        world.tell(&format!(
            "INSERT INTO leases VALUES (1, '{DEFAULT_TENANT}', 'edited', 1, '{OTHER}', 1, 1, 'host', 'boot', 'node'); \
             INSERT INTO nodes VALUES ('{OTHER}', 'node', 2, 1, 1, '{{}}', '[]'); \
             INSERT INTO node_mail (tenant_id, session_id, at_ms, kind, body) \
             VALUES ('{DEFAULT_TENANT}', 'edited', 1, 'steer', 'x'); \
             INSERT INTO node_news (at_ms, node, body) VALUES (1, '{OTHER}', '{{}}')"
        ));
    } else {
        world.tell(&format!(
            "INSERT INTO holders VALUES ('{DEFAULT_TENANT}', 'edited', 1, 1); \
             INSERT INTO nodes VALUES ('{OTHER}', 'node', 2, 1, 1, '{{}}', '[]'); \
             INSERT INTO evidence_tail VALUES (0, 0, '{DEFAULT_TENANT}', 1, 1, zeroblob(9))"
        ));
    }
}

/// A home with its store as it was.
struct Saved {
    files: tempfile::TempDir,
    database: Option<String>,
}

fn copied(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

impl Saved {
    fn of(world: &World<'_>) -> Self {
        let files = tempfile::tempdir().unwrap();
        copied(world.home.path(), files.path());
        let database = world.server.map(|server| {
            let name = name(world);
            server.execute("postgres", &format!("CREATE DATABASE saved_{name} TEMPLATE {name}"));
            format!("saved_{name}")
        });
        Self { files, database }
    }

    fn put_back(&self, world: &World<'_>) {
        for entry in fs::read_dir(world.home.path()).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        copied(self.files.path(), world.home.path());
        if let (Some(server), Some(saved)) = (world.server, &self.database) {
            let name = name(world);
            server.execute("postgres", &format!("DROP DATABASE {name} WITH (FORCE)"));
            server.execute("postgres", &format!("CREATE DATABASE {name} TEMPLATE {saved}"));
        }
    }
}

/// The name of the database.
fn name<'a>(world: &'a World<'_>) -> &'a str {
    world.url.rsplit('/').next().unwrap()
}

/// Every column of every table, as the database says.
fn all_columns(world: &World<'_>) -> Vec<(String, String)> {
    let listed = match world.server {
        Some(server) => server.execute(
            &world.url,
            "SELECT table_name || '|' || column_name FROM information_schema.columns WHERE table_schema = 'public'",
        ),
        None => {
            let sql = "SELECT t.name || '|' || c.name FROM sqlite_schema t JOIN pragma_table_xinfo(t.name) c \
                       WHERE t.type = 'table'";
            let db = file(world);
            let mut found = db.prepare(sql).unwrap();
            let rows = found.query_map([], |row| row.get::<_, String>(0)).unwrap();
            rows.map(Result::unwrap).collect::<Vec<_>>().join("\n")
        }
    };
    let pair = |line: &str| line.split_once('|').map(|(table, column)| (table.to_owned(), column.to_owned()));
    listed.lines().filter_map(pair).collect()
}

fn file(world: &World<'_>) -> Connection {
    let db = Connection::open(world.home.path().join("pintle.db")).unwrap();
    db.execute_batch("PRAGMA ignore_check_constraints = on; PRAGMA foreign_keys = off").unwrap();
    db
}

/// How another number differs: fewer changes of rules than were seen are an older store, more are only read anew.
fn step(table: &str, column: &str) -> i64 {
    if (table, column) == ("hook_epoch", "epoch") { -1 } else { 1 }
}

/// Another value than `text`, of the same kind: what is plausible opens more than what is none.
fn other(table: &str, column: &str, text: &str) -> String {
    let flipped = |text: &str| {
        let (rest, last) = text.split_at(text.len() - 1);
        format!("{rest}{}", if last == "a" { "b" } else { "a" })
    };
    let is_hex = |text: &str| text.len() > 30 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    match (table, column) {
        ("audit_log", "kind") => if text == "decision" { "record" } else { "decision" }.into(),
        ("hook_breakers", "run") => "[\"2026-01-01T00:00:00Z\"]".into(),
        ("approvals", "state") => "waiting".into(),
        ("approvals", "body") => text.replace("rm -rf", "ls"),
        ("hook_changes", "action") => "reset".into(),
        ("hook_executions", "decision") => "allow".into(),
        ("hook_executions", "handler_type") => "http".into(),
        ("hook_executions", "event") => "stop".into(),
        _ if is_hex(text) => flipped(text),
        _ if text.starts_with(['{', '[']) => if text.starts_with('{') { "{\"edited\":1}" } else { "[]" }.into(),
        _ if text.len() >= 10 && text[..4].parse::<u32>().is_ok() => format!("2000{}", &text[4..]),
        _ => format!("{text}x"),
    }
}

/// Gives the last row of `table` another value in `column`.
fn edit(world: &World<'_>, table: &str, column: &str) {
    match world.server {
        Some(_) => edit_row_of_server(world, table, column),
        None => {
            let db = file(world);
            let key = if table == "holders" { "session_id" } else { "rowid" };
            let one = format!("{key} = (SELECT max({key}) FROM {table})");
            let sql = format!(
                "SELECT {column}, (SELECT type FROM pragma_table_info('{table}') WHERE name = '{column}') \
                               FROM {table} WHERE {one}"
            );
            let (before, kind): (Value, String) = db
                .query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
                .unwrap_or_else(|why| panic!("{sql}: {why}"));
            let after = match (before, kind.as_str()) {
                (Value::Integer(number), _) => Value::Integer(number + step(table, column)),
                (Value::Text(text), _) => Value::Text(other(table, column, &text)),
                (Value::Blob(mut bytes), _) => {
                    let last = bytes.pop().unwrap_or_default();
                    bytes.push(last ^ 1);
                    Value::Blob(bytes)
                }
                (Value::Null | Value::Real(_), "INTEGER") => Value::Integer(1),
                (Value::Null | Value::Real(_), "BLOB") => Value::Blob(vec![7]),
                (Value::Null | Value::Real(_), _) => Value::Text("edited".into()),
            };
            let edited = db.execute(&format!("UPDATE {table} SET {column} = ?1 WHERE {one}"), [after]);
            assert_eq!(edited, Ok(1), "{table}.{column}");
        }
    }
}

fn edit_row_of_server(world: &World<'_>, table: &str, column: &str) {
    let server = world.server.unwrap();
    let tell = |sql: &str| server.execute(&world.url, sql);
    let kind = tell(&format!(
        "SELECT udt_name || '|' || coalesce(identity_generation, '') FROM information_schema.columns \
         WHERE table_schema = 'public' AND table_name = '{table}' AND column_name = '{column}'"
    ));
    let (kind, identity) = kind.trim().split_once('|').unwrap();
    let one = format!("ctid = (SELECT max(ctid) FROM {table})");
    let before = tell(&format!("SELECT coalesce({column}::text, 'null of it') FROM {table} WHERE {one}"));
    let before = before.trim_end_matches('\n');
    let after = match (before, kind) {
        ("null of it", "int4" | "int8") => "1".to_owned(),
        ("null of it", "bytea") => "\\x07".to_owned(),
        ("null of it", "uuid") => EDITED.to_owned(),
        ("null of it", "timestamptz" | "date") => "2000-01-01".to_owned(),
        ("null of it", "jsonb") => "{}".to_owned(),
        ("null of it", _) => "edited".to_owned(),
        (number, "int4" | "int8") => (number.parse::<i64>().unwrap() + step(table, column)).to_string(),
        (flag, "bool") => (flag != "true").to_string(),
        (bytes, "bytea") => {
            let (rest, last) = bytes.split_at(bytes.len() - 2);
            format!("{rest}{}", if last == "07" { "08" } else { "07" })
        }
        (text, _) => other(table, column, text),
    };
    // Only the value is meant, so the shape is what it was afterwards, as whoever owns the server can have it.
    let (identity, identity_again) = match identity {
        "" => (String::new(), String::new()),
        generated => {
            let set = format!("ALTER TABLE {table} ALTER COLUMN {column} SET GENERATED");
            (format!("{set} BY DEFAULT;"), format!("{set} {generated};"))
        }
    };
    tell(&format!(
        "SET session_replication_role = replica; {identity} \
         DO $$ DECLARE it record; again text := 'SELECT 1;'; BEGIN \
         FOR it IN SELECT conname, pg_get_constraintdef(oid) AS def FROM pg_constraint \
         WHERE conrelid = 'public.{table}'::regclass AND contype = 'c' LOOP \
         EXECUTE format('ALTER TABLE {table} DROP CONSTRAINT %I', it.conname); \
         again := again || format('ALTER TABLE {table} ADD CONSTRAINT %I %s NOT VALID;', it.conname, it.def); \
         END LOOP; \
         UPDATE {table} SET {column} = '{}'::{kind} WHERE {one}; \
         EXECUTE again; \
         UPDATE pg_constraint SET convalidated = true WHERE conrelid = 'public.{table}'::regclass; END $$; \
         {identity_again}",
        after.replace('\'', "''")
    ));
}

/// What somebody sees of a store.
fn seen(world: &World<'_>) -> BTreeSet<Comes> {
    let mut comes = BTreeSet::new();
    let store = match world.open() {
        Ok(store) => store,
        Err(_) => return [Shut].into(),
    };
    match store.rules() {
        Err(_) => drop(comes.insert(Shut)),
        Ok(rules) if rules.shut.is_some() => drop(comes.insert(Shut)),
        Ok(rules) => comes.extend((!rules.doubts.is_empty()).then_some(Doubt)),
    }
    let key = SigningKey::open_or_create(world.home.path()).unwrap();
    let keys = PublicKeys::parse(&key.public_line()).unwrap();
    let check = |kid: &str, message: &[u8], signature: &str| keys.verify(kid, message, signature);
    let is_intact = || {
        let tenants = store.audited().ok()?;
        let readable =
            |tenant: &TenantId| store.audit_entries(tenant, 0, 99).is_ok() && store.checkpoints(tenant, 0, 99).is_ok();
        tenants.iter().all(readable).then(|| findings(&verified(&*store, &check)).is_empty())
    };
    let known = AnchorFile::beside(world.home.path(), &world.url).read().ok().flatten();
    let is_unsigned = |tenant: &TenantId| {
        let last = store.last_checkpoint(tenant).ok()?.map_or(0, |point| point.seq);
        known.as_ref()?.unsigned(tenant, last)
    };
    let is_signed = known.iter().flat_map(|known| known.chains.keys()).all(|tenant| is_unsigned(tenant).is_none());
    comes.extend((is_intact() != Some(true) || !is_signed).then_some(Verify));
    let gives_leave = store
        .approval(&TenantScope::All, "asked")
        .ok()
        .flatten()
        .is_some_and(|it| it.state_at(moment(2)) == ApprovalState::Approved);
    comes.extend((!gives_leave).then_some(Void));
    comes
}

/// How many columns of a row are edited at once of those of which nothing must come: a home is opened for each time.
const AT_ONCE: usize = 5;

/// What comes of an edit of these columns; the store is as it was afterwards.
fn after(world: &World<'_>, saved: &Saved, table: &str, columns: &[String]) -> BTreeSet<Comes> {
    columns.iter().for_each(|column| edit(world, table, column));
    let came = seen(world);
    saved.put_back(world);
    came
}

#[test]
fn every_column_that_somebody_edits_has_its_consequence() {
    in_both(|world| {
        filled(&world);
        assert_eq!(seen(&world), BTreeSet::new(), "nobody did anything yet");
        let saved = Saved::of(&world);
        let mut wanted = expected();
        let elsewhere: &[(&str, &str)] = if world.is_postgres() { &SQLITE_ALONE } else { &POSTGRES_ALONE };
        wanted.retain(|(table, column), _| !is_among(elsewhere, (table, column)));
        let mut wrong = Vec::new();
        let mut harmless: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (table, column) in all_columns(&world) {
            if is_among(&LEFT_OUT, (&table, &column)) {
                continue;
            }
            match wanted.remove(&(table.clone(), column.clone())) {
                None => wrong.push(format!("`{table}`.`{column}` is new: say what must come of an edit")),
                Some(Nothing(_)) => harmless.entry(table).or_default().push(column),
                Some(comes @ (Shut | Verify | Doubt | Void)) => {
                    let came = after(&world, &saved, &table, std::slice::from_ref(&column));
                    if !came.contains(&comes) {
                        wrong.push(format!("`{table}`.`{column}`: {came:?} instead of {comes:?}"));
                    }
                }
            }
        }
        for (table, columns) in harmless {
            for columns in columns.chunks(AT_ONCE) {
                let came = after(&world, &saved, &table, columns);
                if !came.is_empty() {
                    wrong.push(format!("`{table}`, one of {columns:?}: {came:?} instead of nothing"));
                }
            }
        }
        wrong.extend(wanted.keys().map(|(table, column)| format!("there is no `{table}`.`{column}`")));
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}
