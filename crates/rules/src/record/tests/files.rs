//! Files of rules.

use super::*;

fn read_file(world: &World, document: &Value) -> Vec<Result<Rule, String>> {
    let all = world.record_context(|record_context| file("rules.toml", document, record_context));
    all.into_iter().map(|read| read.map(|read| read.hook).map_err(|bad| bad.to_string())).collect()
}

fn named(name: &str) -> Value {
    with(&http(json!({})), json!({"name": name}))
}

#[test]
fn documents_have_three_forms() {
    let ids = |document: Value| {
        let hooks = read_file(&World::default(), &document);
        hooks.into_iter().map(|hook| hook.unwrap().id).collect::<Vec<_>>()
    };
    let (a, b) = (HookId::of_name("file/rules.toml/a"), HookId::of_name("file/rules.toml/b"));
    assert_eq!(ids(json!({"hook": [named("a"), named("b")]})), [a.clone(), b.clone()]);
    assert_eq!(ids(json!([named("b"), named("a")])), [b, a.clone()]);
    assert_eq!(ids(named("a")), [a]);
    assert_eq!(ids(json!({})), []);
    assert_eq!(ids(json!([])), []);
}

#[test]
fn other_documents_are_refused() {
    let refusal = |document: Value| {
        let all = read_file(&World::default(), &document);
        assert_eq!(all.len(), 1);
        all[0].clone().unwrap_err()
    };
    assert_eq!(refusal(json!("x")), "record 1: invalid request: missing config payload");
    assert_eq!(
        refusal(json!({"hook": named("a")})),
        "record 1: invalid request: invalid config: field \"hook\" must be an array: write each record as [[hook]]"
    );
    assert_eq!(
        refusal(json!({"hook": [named("a")], "enabled": true})),
        "record 1: invalid request: invalid config: unknown field \"enabled\" beside the tables [[hook]]; move it into one of them"
    );
    assert_eq!(
        refusal(json!({"hooks": [named("a")]})),
        "record 1: invalid request: invalid config: unknown field \"hooks\" (did you mean \"hook\"?)"
    );
}

#[test]
fn each_record_stands_for_itself() {
    let document = json!([
        named("a"),
        http(json!({})),
        5,
        named("a"),
        with(&named("b"), json!({"timeout": 1})),
        named("b"),
        named("c")
    ]);
    let all: Vec<String> = read_file(&World::default(), &document)
        .into_iter()
        .map(|read| read.map_or_else(|bad| bad, |hook| hook.name))
        .collect();
    assert_eq!(
        all,
        [
            "a",
            "record 2: name is required in files",
            "record 3: invalid request: missing config payload",
            "record 4 (\"a\"): duplicate name \"a\": record 1 of this file has it; give each its own",
            "record 5 (\"b\"): invalid request: invalid config: unknown field \"timeout\" (did you mean \"timeout_ms\"?)",
            "record 6 (\"b\"): duplicate name \"b\": record 5 of this file has it; give each its own",
            "c",
        ]
    );
    let full = World { held: 999, ..World::default() };
    let kept: Vec<bool> = read_file(&full, &json!([named("a"), named("b")])).iter().map(Result::is_ok).collect();
    assert_eq!(kept, [true, false]);
}

#[test]
fn files_name_tenants_and_agents() {
    let one = |world: &World, members: Value| read_file(world, &with(&named("a"), members)).remove(0);
    let standard = standard();
    assert_eq!(one(&standard, json!({})).unwrap().tenant_id, TenantId::default_tenant());
    assert_eq!(one(&standard, json!({"tenant": "acme"})).unwrap().tenant_id.as_str(), ACME);
    assert_eq!(
        one(&standard, json!({"tenant": "nobody"})).unwrap_err(),
        "record 1 (\"a\"): hook: tenant not found: \"nobody\""
    );
    assert_eq!(
        one(&standard, json!({"tenant": "global"})).unwrap_err(),
        "record 1 (\"a\"): hook: tenant scope requires a real tenant_id"
    );
    assert_eq!(
        one(&World::default(), json!({"tenant": "nobody"})).unwrap_err(),
        "record 1 (\"a\"): several tenants need edition standard"
    );
    let theirs = one(&standard, json!({"tenant": "acme", "tenant_id": DEFAULT_TENANT})).unwrap_err();
    assert_eq!(theirs, format!("record 1 (\"a\"): hook: tenant not found: {DEFAULT_TENANT}"));

    let agents = |members: Value| one(&standard, with(&json!({"scope": "agent"}), members)).map(|hook| hook.agent_ids);
    let [main, helper, acme] = [0, 1, 2].map(|at| standard.agent(at).to_owned());
    assert_eq!(agents(json!({"agent_ids": ["helper", main, "main"]})), Ok(vec![helper.clone(), main]));
    assert_eq!(agents(json!({"agent_id": "helper"})), Ok(vec![helper.clone()]));
    assert_eq!(agents(json!({"tenant": "acme", "agent_ids": ["main"]})), Ok(vec![acme]));
    assert_eq!(
        agents(json!({"agent_ids": ["helpr"]})),
        Err("record 1 (\"a\"): hook: agent not found: \"helpr\" (did you mean \"helper\"?)".into())
    );
    assert_eq!(
        agents(json!({"tenant": "acme", "agent_ids": [helper]})),
        Err(format!("record 1 (\"a\"): hook: agent not found: {helper}"))
    );
    // On the command line keys are taken, tenants are not.
    let cli = World { lang: Lang::Cli, ..World::default() };
    let record = with(&command(), json!({"scope": "agent", "agent_ids": ["helper"]}));
    assert_eq!(cli.hook(&record).agent_ids, [helper]);
    assert!(cli.refusal(&with(&command(), json!({"tenant": "acme"}))).contains("unknown field \"tenant\""));
}
