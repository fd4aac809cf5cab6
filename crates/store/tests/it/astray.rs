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
