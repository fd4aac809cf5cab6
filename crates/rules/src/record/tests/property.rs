//! Records at random.

use proptest::prelude::*;

use super::*;

/// Any JSON, with numbers in all spellings.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop_oneof!["-?[1-9][0-9]{0,25}", "-?0", "[0-9]\\.[0-9]{1,4}", "[1-9]e[0-9]{1,4}"]
            .prop_map(|text| serde_json::from_str(&text).unwrap()),
        words(),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::vec((names(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Words that mean something somewhere, so that most rows are reached.
fn words() -> impl Strategy<Value = Value> {
    let known = [
        "pre_tool_use",
        "user_prompt_submit",
        "stop",
        "subagent_start",
        "command",
        "http",
        "prompt",
        "script",
        "global",
        "tenant",
        "agent",
        "block",
        "allow",
        "ask",
        "all",
        "faults",
        "off",
        "^exec$",
        "(",
        "depth == 0",
        MASK,
        "aes-gcm:AAAA",
        "https://a.example/",
        "http://127.0.0.1/",
        "whsec_eA==",
        "main",
        "helper",
        "ignore",
        "function handle() {}",
        "a\0b",
        SENTINEL_TENANT,
        DEFAULT_TENANT,
        ACME,
        "",
    ];
    proptest::sample::select(known.to_vec()).prop_map(Value::from)
}

fn names() -> impl Strategy<Value = String> {
    let known = [
        "event",
        "handler_type",
        "scope",
        "name",
        "config",
        "matcher",
        "if_expr",
        "timeout_ms",
        "on_timeout",
        "priority",
        "enabled",
        "agent_ids",
        "agent_id",
        "may_rewrite",
        "breaker",
        "on_trip",
        "metadata",
        "tenant_id",
        "tenant",
        "id",
        "version",
        "url",
        "headers",
        "secret_headers",
        "signing_secret",
        "strict",
        "command",
        "cwd",
        "prompt_template",
        "source",
        "Authorization",
        "hook",
    ];
    prop_oneof![8 => proptest::sample::select(known.to_vec()).prop_map(ToOwned::to_owned), 1 => ".{0,8}"]
}

/// A record that is mostly right, with anything over it.
fn records() -> impl Strategy<Value = Value> {
    let base = prop_oneof![
        Just(command()),
        Just(http(json!({"headers": {"Authorization": "x", "X-A": "y"}, "secret_headers": ["x-a"]}))),
        Just(prompt(json!({"max_invocations_per_turn": 7}))),
        Just(script("function handle() {}")),
    ];
    let over = proptest::collection::vec((names(), prop_oneof![words(), json()]), 0..3);
    (base, over).prop_map(|(base, over)| with(&base, Value::Object(over.into_iter().collect())))
}

fn worlds() -> impl Strategy<Value = World> {
    let langs = proptest::sample::select(vec![Lang::Api, Lang::Cli, Lang::File, Lang::Import]);
    (langs, any::<bool>(), proptest::sample::select(Edition::ALL.to_vec()))
        .prop_map(|(lang, is_master, edition)| World { lang, is_master, edition, ..World::default() })
}

/// A refusal says something, on one line.
fn settled<T>(result: Result<T, RecordError>) -> Result<(), TestCaseError> {
    let Err(refused) = result else { return Ok(()) };
    prop_assert!(!refused.message.is_empty() && !refused.message.contains('\n'), "{}", refused.message);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_global_rejects: 20_000,
        ..ProptestConfig::with_cases(1_000)
    })]

    #[test]
    fn no_json_brings_it_down(world in worlds(), record in json(), updates in json()) {
        settled(world.read(&record))?;
        for read in world.record_context(|record_context| file("f", &record, record_context)) {
            settled(read.map_err(|bad| bad.refused))?;
        }
        let current = World::default().hook(&command());
        settled(world.patch(&current, &updates))?;
        if let Value::Object(config) = record {
            let odd = Rule { config, handler_type: HandlerType::Http, ..current };
            prop_assert!(secrets(&odd).iter().all(|path| path.starts_with("config.")));
            settled(world.patch(&odd, &updates))?;
            settled(world.record_context(|record_context| check(&odd, record_context)))?;
            prop_assert_eq!(masked(&masked(&odd)), masked(&odd));
        }
    }

    #[test]
    fn nearly_right_records_are_settled(world in worlds(), record in records(), updates in records()) {
        settled(world.read(&record))?;
        let global = World { is_master: true, ..World::default() };
        if let Ok(read) = world.read(&record) {
            settled(global.patch(&read.hook, &updates))?;
        }
    }

    #[test]
    fn what_is_read_reads_back(world in worlds(), record in records()) {
        let Ok(read) = world.read(&record) else { return Err(TestCaseError::reject("it is refused")) };
        let row = pintle_domain::json::to_value(&read.hook).unwrap();
        // A row names its tenant by its id, and what is encrypted in it came by import.
        let theirs = world.lang == Lang::File && read.hook.scope != HookScope::Global;
        let tenant = if theirs { read.hook.tenant_id.clone() } else { world.tenant.clone() };
        let again = World { lang: Lang::Import, tenant, ..world };
        prop_assert_eq!(&again.read(&row).map_err(|refused| refused.message), &Ok(read.clone()));
        prop_assert_eq!(again.record_context(|record_context| check(&read.hook, record_context)), Ok(read.warnings));
        // A change to what is there already changes nothing.
        let owner = World { is_master: true, lang: Lang::Api, ..again };
        let same = json!({"name": read.hook.name, "config": masked(&read.hook).config});
        prop_assert_eq!(owner.patch(&read.hook, &same).map(|read| read.hook), Ok(read.hook));
    }
}
