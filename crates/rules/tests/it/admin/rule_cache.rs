//! Rules in force: swapped, remounted, taken out when their breaker opens, kept when the store is lost.

use std::sync::Arc;

use pintle_domain::fault::Fault;
use pintle_domain::hook::HookState;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::json;
use pintle_domain::rule::Rule;
use pintle_domain::store::{RuleChange, RuleStore as _, StoredRules, Tenant};
use pintle_rules::admin::CallerRole;
use pintle_rules::cache::{AgentNames, RuleCache};
use pintle_testkit::log::Log;
use tokio_util::sync::CancellationToken;

use super::stage::{ACME, Plan, Stage, UNKNOWN, of_acme, of_default, script};

const DEFAULT: &str = pintle_domain::id::DEFAULT_TENANT;

/// What runs the hook, to see whether it is another one.
fn mounted(stage: &Stage, name: &str) -> Arc<pintle_domain::hook::Hook> {
    let rules = stage.engine.live().rules();
    let hooks = rules.of(&TenantId::from(DEFAULT));
    hooks.iter().find(|mounted| mounted.hook.name.as_str() == name).unwrap().hook.clone()
}

#[tokio::test]
async fn a_change_remounts_the_row_that_changed() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "a", "allow")).await;
    stage.create(&admin, script("tenant", "b", "allow")).await;
    let (a, b) = (mounted(&stage, "a"), mounted(&stage, "b"));
    stage.ok(&admin, "hooks.update", json!({"hookId": id, "updates": {"priority": 5}})).await;
    assert!(!Arc::ptr_eq(&a, &mounted(&stage, "a")));
    assert!(Arc::ptr_eq(&b, &mounted(&stage, "b")));
    stage.rule_cache.remount();
    assert!(!Arc::ptr_eq(&b, &mounted(&stage, "b")));
}

#[tokio::test]
async fn another_process_is_noticed_by_the_epoch() {
    let stage = Stage::new();
    let id = stage.create(&of_default(CallerRole::Admin), script("tenant", "guard", "allow")).await;
    assert_eq!(stage.rule_cache.refresh(), Ok(false));
    let config =
        pintle_domain::json::from_value(json!({"source": "return {\"decision\":\"block\",\"reason\":\"new\"}"}))
            .unwrap();
    let row = Rule { config, ..stage.row(&id) };
    stage.write(RuleChange::Update { hook: row.into(), if_version: None, action: "updated" });
    assert_eq!(stage.gate(DEFAULT, "exec").await, "allow");
    assert_eq!(stage.rule_cache.refresh(), Ok(true));
    assert_eq!(stage.gate(DEFAULT, "exec").await, "block: new");
}

#[tokio::test]
async fn rules_that_somebody_just_read_are_read_again_only_if_they_changed() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    stage.create(&admin, script("tenant", "guard", "block")).await;
    let read = stage.store.rules().unwrap();
    let begin = |read: StoredRules| {
        let before = stage.store.calls();
        let agents: AgentNames = Arc::new(Vec::new);
        let (live, parts) = (stage.engine.live().clone(), stage.parts.clone());
        let (rule_cache, begun) = RuleCache::open_read(stage.store.clone(), live, parts, agents, Some(read));
        begun.unwrap();
        let names: Vec<String> = rule_cache.rules().hooks.iter().map(|rule| rule.name.clone()).collect();
        (names, stage.store.calls() - before)
    };
    assert_eq!(begin(read.clone()), (vec!["guard".to_owned()], 1), "the epoch alone is asked for");
    let id = read.hooks[0].id.clone();
    stage.write(RuleChange::delete(id));
    assert_eq!(begin(read), (vec![], 2), "somebody deleted it meanwhile");
}

#[tokio::test(start_paused = true)]
async fn the_watch_looks_and_ends() {
    let stage = Stage::new();
    let id = stage.create(&of_default(CallerRole::Admin), script("tenant", "guard", "allow")).await;
    let cancel = CancellationToken::new();
    let watching = stage.rule_cache.clone().watch(cancel.clone());
    stage.write(RuleChange::delete(HookId::from(id.as_str())));
    let seen = async {
        while !stage.rule_cache.rules().hooks.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        cancel.cancel();
    };
    tokio::join!(watching, seen);
    assert_eq!(stage.rule_cache.rules().hooks, []);
}

/// Waits while no time passes.
async fn at_once(what: &str, is_so: impl Fn() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !is_so() {
        assert!(std::time::Instant::now() < end, "{what}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_store_tells_is_in_force_before_anybody_looks() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let ids = [stage.create(&admin, script("tenant", "a", "block")).await];
    let cancel = CancellationToken::new();
    let began = tokio::time::Instant::now();
    let story = async {
        // Whoever is busy lets no time pass, so nobody looks.
        let watched = stage.store.calls();
        stage.store.tell(true);
        at_once("it is heard from the beginning", || stage.store.calls() > watched).await;
        stage.write(RuleChange::delete(HookId::from(ids[0].as_str())));
        stage.store.tell(true);
        at_once("the change is in force", || stage.rule_cache.rules().hooks.is_empty()).await;
        assert_eq!(stage.gate(DEFAULT, "exec").await, "allow");
        assert_eq!(began.elapsed(), std::time::Duration::ZERO);
        cancel.cancel();
    };
    tokio::join!(stage.rule_cache.clone().watch(cancel.clone()), story);
}

#[tokio::test(start_paused = true)]
async fn who_is_told_looks_less_often_until_the_line_is_cut() {
    let stage = Stage::new();
    let cancel = CancellationToken::new();
    let looks = |before: u64| stage.store.calls() - before;
    let pass = async |seconds: u64| {
        for _ in 0..seconds * 10 {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    let story = async {
        stage.store.tell(true);
        pass(1).await;
        let before = stage.store.calls();
        pass(20).await;
        assert_eq!(looks(before), 4, "every five seconds");
        let before = stage.store.calls();
        stage.store.tell(false);
        pass(20).await;
        assert!((20..=21).contains(&looks(before)), "{} looks, one for the cut and one each second", looks(before));
        cancel.cancel();
    };
    tokio::join!(stage.rule_cache.clone().watch(cancel.clone()), story);
}

#[tokio::test(start_paused = true)]
async fn an_idle_program_that_the_system_tells_looks_once_a_minute() {
    let stage = Stage::new();
    let cancel = CancellationToken::new();
    stage.store.tell_steadily();
    let story = async {
        stage.store.tell(true);
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        let before = stage.store.calls();
        tokio::time::sleep(std::time::Duration::from_secs(600)).await;
        assert_eq!(stage.store.calls() - before, 10);
        cancel.cancel();
    };
    tokio::join!(stage.rule_cache.clone().watch(cancel.clone()), story);
}

#[tokio::test]
async fn a_new_tenant_has_its_name_where_it_has_rules() {
    let stage = Stage::new();
    let live = stage.engine.live().clone();
    assert_eq!(live.slug(&TenantId::from(DEFAULT)).as_deref(), Some("default"));
    assert_eq!(live.slug(&TenantId::from(ACME)).as_deref(), Some("acme"));
    let id = TenantId::from(UNKNOWN);
    assert_eq!(live.slug(&id), None);
    let new =
        Tenant { id: id.clone(), slug: "new".into(), name: "New".into(), created_at: "2026-01-01T00:00:00Z".into() };
    stage.store.add_tenant(&new).unwrap();
    assert_eq!(stage.rule_cache.refresh(), Ok(true));
    let before = stage.store.calls();
    assert_eq!(live.slug(&id).as_deref(), Some("new"));
    assert_eq!(stage.store.calls(), before, "nobody asks the store for it");
}

#[tokio::test]
async fn events_never_ask_the_store() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    stage.create(&admin, script("tenant", "guard", "allow")).await;
    stage.create(&of_default(CallerRole::Owner), script("global", "other", "allow")).await;
    let before = stage.store.calls();
    for _ in 0..100 {
        assert_eq!(stage.gate(DEFAULT, "exec").await, "allow");
    }
    assert_eq!(stage.store.calls(), before);
}

#[tokio::test]
async fn five_blocks_open_the_breaker_at_once_and_for_good() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "block")).await;
    for _ in 0..5 {
        assert_eq!(stage.gate(DEFAULT, "exec").await, "block: guard says so");
    }
    // In force before anything is written.
    let refused = stage.gate(DEFAULT, "exec").await;
    assert!(refused.contains("circuit breaker, 5 blocks/timeouts in 60 s"), "{refused}");
    stage.until(|stage| stage.row(&id).tripped_at.is_some()).await;
    let row = stage.row(&id);
    assert_eq!((row.enabled, row.disabled_reason.as_str()), (false, "breaker"));
    stage.until(|stage| stage.rule_cache.rules().hooks[0].version == row.version).await;
    let log = stage.rule_admin.changes(&admin, &id, 1).await.unwrap();
    assert_eq!((log[0].action.as_str(), log[0].actor.as_str()), ("tripped", "system:breaker"));
    stage.ok(&admin, "hooks.toggle", json!({"hookId": id, "enabled": true})).await;
    assert_eq!(stage.gate(DEFAULT, "exec").await, "block: guard says so", "it is asked again");
}

#[tokio::test]
async fn a_change_clears_the_run() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "block")).await;
    let source = |decision: &str| json!({"config": {"source": format!("return {{\"decision\":\"{decision}\"}}")}});
    for _ in 0..4 {
        stage.gate(DEFAULT, "exec").await;
    }
    stage.until(|stage| stage.store.rules().unwrap().runs.iter().any(|(_, _, run)| run.len() == 4)).await;
    stage.ok(&admin, "hooks.update", json!({"hookId": id, "updates": source("block")})).await;
    assert_eq!(stage.store.rules().unwrap().runs, []);
    for _ in 0..4 {
        stage.gate(DEFAULT, "exec").await;
    }
    assert_eq!(stage.row(&id).tripped_at, None);
}

#[tokio::test]
async fn what_is_on_its_way_to_the_store_is_not_read_back_old() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    stage.create(&admin, script("tenant", "guard", "block")).await;
    for n in 1..=4 {
        stage.gate(DEFAULT, "exec").await;
        // Somebody else's change makes the rules be read anew in between.
        stage.create(&of_acme(CallerRole::Admin), script("tenant", &format!("other {n}"), "allow")).await;
    }
    assert_eq!(stage.gate(DEFAULT, "exec").await, "block: guard says so");
    assert!(stage.gate(DEFAULT, "exec").await.contains("is off since"), "no outcome was lost");
}

#[tokio::test]
async fn a_global_hook_trips_for_one_tenant() {
    let stage = Stage::new();
    let owner = of_default(CallerRole::Owner);
    let id = stage.create(&owner, script("global", "guard", "block")).await;
    for _ in 0..5 {
        stage.gate(ACME, "exec").await;
    }
    assert!(stage.gate(ACME, "exec").await.contains("is off since"));
    assert_eq!(stage.gate(DEFAULT, "exec").await, "block: guard says so");
    stage.until(|stage| !stage.store.rules().unwrap().trips.is_empty()).await;
    let trips = stage.store.rules().unwrap().trips;
    assert_eq!((trips.len(), trips[0].tenant_id.as_str()), (1, ACME));
    let row = stage.row(&id);
    assert_eq!((row.enabled, row.tripped_at, row.version), (true, None, 1));
    assert_eq!(stage.get(&of_acme(CallerRole::Admin), &id).await["enabled"], false);
    assert_eq!(stage.get(&of_default(CallerRole::Admin), &id).await["enabled"], true);
}

#[tokio::test(start_paused = true)]
async fn a_trip_that_cannot_be_written_holds_and_is_tried_again() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "block")).await;
    stage.store.break_down("the disk is full");
    for _ in 0..5 {
        stage.gate(DEFAULT, "exec").await;
    }
    assert!(stage.gate(DEFAULT, "exec").await.contains("is off since"));
    let before = stage.store.calls();
    while stage.store.calls() < before + 3 {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    assert!(stage.gate(DEFAULT, "exec").await.contains("is off since"));
    assert_eq!(stage.rule_cache.rules().hooks[0].disabled_reason, "breaker");
    stage.store.mend();
    while stage.row(&id).tripped_at.is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    assert!(stage.gate(DEFAULT, "exec").await.contains("is off since"));
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_somebody_closes_is_not_opened_by_an_old_attempt() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "block")).await;
    stage.store.break_down("the disk is full");
    for _ in 0..5 {
        stage.gate(DEFAULT, "exec").await;
    }
    // The first attempt fails; the next waits.
    let before = stage.store.calls();
    while stage.store.calls() == before {
        tokio::task::yield_now().await;
    }
    stage.store.mend();
    stage.ok(&admin, "hooks.reset", json!({"hookId": id})).await;
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    assert_eq!(stage.row(&id).tripped_at, None);
    assert_eq!(stage.gate(DEFAULT, "exec").await, "block: guard says so");
}

#[tokio::test]
async fn whoever_reads_the_rules_shares_them() {
    let stage = Stage::new();
    let (admin, owner) = (of_default(CallerRole::Admin), of_default(CallerRole::Owner));
    stage.create(&admin, script("tenant", "a", "allow")).await;
    let before = stage.rule_cache.rules();
    stage.ok(&admin, "hooks.list", json!({"enabled": true})).await;
    stage.ok(&admin, "hooks.chain", json!({"event": "pre_tool_use"})).await;
    assert!(Arc::ptr_eq(&before, &stage.rule_cache.rules()));
    let id = stage.create(&owner, script("global", "b", "block")).await;
    assert_eq!((before.hooks.len(), stage.rule_cache.rules().hooks.len()), (1, 2), "who reads keeps what they have");
    // What only this process knows of its breakers is part of what is read.
    stage.store.break_down("the disk is full");
    for _ in 0..5 {
        stage.gate(ACME, "exec").await;
    }
    let trips: Vec<String> = stage.rule_cache.rules().trips.iter().map(|trip| trip.hook_id.to_string()).collect();
    assert_eq!(trips, [id]);
}

#[tokio::test]
async fn the_last_rules_stay_when_the_store_is_lost() {
    let stage = Stage::new();
    stage.create(&of_default(CallerRole::Admin), script("tenant", "guard", "block")).await;
    stage.store.break_down("the disk is gone");
    assert!(stage.rule_cache.refresh().is_err());
    assert!(stage.rule_cache.reload().is_err());
    assert_eq!(stage.gate(DEFAULT, "exec").await, "block: guard says so");
    assert_eq!(stage.gate(DEFAULT, "read").await, "allow");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_lost_is_logged_once_each_time() {
    const LINE: &str = "ERROR security.hook.resolve_error: the store is unavailable: the disk is gone; \
                        the rules from before stay in force";
    let (log, _listening) = Log::begin();
    let stage = Stage::new();
    let cancel = CancellationToken::new();
    let pass = async || {
        for _ in 0..50 {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    let story = async {
        for times in 1..3 {
            let before = stage.store.calls();
            stage.store.break_down("the disk is gone");
            pass().await;
            assert!(stage.store.calls() > before + 1, "it was looked more than once");
            assert_eq!(log.lines(), vec![LINE; times]);
            stage.store.mend();
            pass().await;
        }
        cancel.cancel();
    };
    tokio::join!(stage.rule_cache.clone().watch(cancel.clone()), story);
}

#[tokio::test]
async fn gates_are_shut_until_rules_could_be_read() {
    let stage = Stage::planned(Plan { is_down: true, ..Plan::default() });
    let shut = stage.gate(DEFAULT, "read").await;
    assert!(shut.starts_with("block: ") && shut.ends_with("is unavailable"), "{shut}");
    // Rules of files, or other agents, open nothing.
    stage.rule_cache.hold(Vec::new(), Vec::new());
    assert_eq!(stage.gate(DEFAULT, "read").await, shut);
    stage.rule_cache.remount();
    assert_eq!(stage.gate(DEFAULT, "read").await, shut);
    let no = stage.no(&of_default(CallerRole::Viewer), "hooks.list", json!({})).await;
    assert_eq!(no, "UNAVAILABLE the store is unavailable: the disk is gone");
    stage.store.mend();
    assert_eq!(stage.rule_cache.refresh(), Ok(true));
    assert_eq!(stage.gate(DEFAULT, "read").await, "allow");
}

#[tokio::test]
async fn what_is_wrong_with_a_row_shuts_its_gate() {
    let stage = Stage::new();
    let id = stage.create(&of_default(CallerRole::Admin), script("tenant", "guard", "allow")).await;
    let good = stage.row(&id);
    for (row, why) in [
        (Rule { matcher: "(".into(), ..good.clone() }, "could not evaluate its condition"),
        (Rule { if_expr: "1 +".into(), ..good.clone() }, "could not evaluate its condition"),
        (Rule { config: pintle_domain::json::Object::new(), ..good.clone() }, "failed: it "),
        (Rule { handler_type: pintle_domain::rule::HandlerType::Command, ..good.clone() }, "failed: it "),
    ] {
        stage.write(RuleChange::Update { hook: row.into(), if_version: None, action: "updated" });
        stage.rule_cache.refresh().unwrap();
        let shut = stage.gate(DEFAULT, "exec").await;
        assert!(shut.starts_with("block: ") && shut.contains(why), "{why}: {shut}");
    }
}

#[tokio::test]
async fn a_tenant_that_is_disabled_passes_no_gate_and_others_go_on() {
    let stage = Stage::new();
    let read = |disabled: Vec<TenantId>| {
        let rules = StoredRules { disabled, ..stage.store.rules().unwrap() };
        let agents: AgentNames = Arc::new(Vec::new);
        let (live, parts) = (stage.engine.live().clone(), stage.parts.clone());
        let (rule_cache, begun) = RuleCache::open_read(stage.store.clone(), live, parts, agents, Some(rules));
        begun.unwrap();
        rule_cache
    };
    let disabled = read(vec![TenantId::from(ACME)]);
    let refused = stage.gate(ACME, "exec").await;
    assert!(refused.starts_with("block: hook \"tenant\""), "{refused}");
    assert_eq!(stage.gate(DEFAULT, "exec").await, "allow");
    let rules = stage.engine.live().rules();
    let hook =
        rules.of(&TenantId::from(ACME)).iter().find(|it| it.hook.name.as_str() == "tenant").unwrap().hook.clone();
    let HookState::Broken(Fault::Unavailable { cause }) = &hook.state else { panic!("{hook:?}") };
    assert_eq!(cause.unredacted(), "the tenant is disabled");
    drop(disabled);
    let _enabled = read(Vec::new());
    assert_eq!(stage.gate(ACME, "exec").await, "allow");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_a_person_takes_as_it_is_opens_the_gates_of_a_running_program() {
    let stage = Stage::new();
    stage.create(&of_default(CallerRole::Admin), script("tenant", "guard", "allow")).await;
    stage.store.tell_steadily();
    stage.store.close_gates(Some("it is an older copy of itself"));
    stage.rule_cache.reload().unwrap();
    assert_eq!(stage.rule_cache.refresh(), Ok(false), "it is as shut as before");
    assert!(stage.gate(DEFAULT, "exec").await.ends_with("is unavailable"));
    assert_eq!(stage.rule_cache.why_shut().as_deref(), Some("it is an older copy of itself"));
    let cancel = CancellationToken::new();
    let story = async {
        stage.store.tell(true);
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        stage.store.close_gates(None);
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        assert_eq!(stage.rule_cache.why_shut(), None);
        assert_eq!(stage.gate(DEFAULT, "exec").await, "allow");
        cancel.cancel();
    };
    tokio::join!(stage.rule_cache.clone().watch(cancel.clone()), story);
}

#[tokio::test]
async fn an_older_store_is_read_as_it_is() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    stage.create(&admin, script("tenant", "guard", "block")).await;
    let older = stage.store.rules().unwrap();
    stage.create(&admin, script("tenant", "other", "allow")).await;
    stage.store.put_back(&older);
    stage.store.close_gates(Some("it is an older copy of itself"));
    assert_eq!(stage.rule_cache.refresh(), Ok(true));
    assert!(stage.gate(DEFAULT, "read").await.ends_with("is unavailable"));
    stage.store.close_gates(None);
    assert_eq!(stage.rule_cache.refresh(), Ok(true));
    assert_eq!(stage.gate(DEFAULT, "exec").await, "block: guard says so");
    assert_eq!(stage.rule_cache.rules().hooks.len(), 1);
}
