//! The evaluation of the crate that parses the expressions agrees, where it is right.

use std::cell::Cell;

use cel::parser::PrattParser;
use cel::{Context, Value as Cel};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::Event;

/// What the crate says: the bool, or nothing where it is a fault.
fn twin(input: &pintle_domain::json::Value, expression: &str) -> Option<bool> {
    let tree = PrattParser::new().parse(expression).unwrap();
    let mut context = Context::default();
    context.add_variable("tool_name", "exec").unwrap();
    context.add_variable("depth", 1_i64).unwrap();
    context.add_variable_from_value("tool_input", lift(input));
    match context.resolve(&tree) {
        Ok(Cel::Bool(holds)) => Some(holds),
        Ok(_) | Err(_) => None,
    }
}

/// As the engine's page has it: numbers of JSON are doubles.
fn lift(json: &pintle_domain::json::Value) -> Cel {
    match json {
        pintle_domain::json::Value::Null => Cel::Null,
        pintle_domain::json::Value::Bool(it) => Cel::Bool(*it),
        pintle_domain::json::Value::Number(it) => Cel::Float(it.as_f64().unwrap()),
        pintle_domain::json::Value::String(it) => Cel::from(it.as_str()),
        pintle_domain::json::Value::Array(all) => Cel::List(all.iter().map(lift).collect::<Vec<_>>().into()),
        pintle_domain::json::Value::Object(all) => {
            let all: std::collections::HashMap<String, Cel> = all.iter().map(|(k, v)| (k.clone(), lift(v))).collect();
            Cel::Map(all.into())
        }
    }
}

/// The crate adds a map to a list, as its keys; CEL knows no such sum.
fn deviates(expression: &str) -> bool {
    expression.contains(" + ") && ["tool_input)", "tool_input.m)", "{"].iter().any(|map| expression.contains(map))
}

fn atom() -> impl Strategy<Value = String> {
    proptest::sample::select(vec![
        "1",
        "2",
        "3u",
        "0",
        "-1",
        "0.5",
        "2.0",
        "'a'",
        "'exec'",
        "'ab'",
        "true",
        "false",
        "null",
        "[1, 2]",
        "['a']",
        "{'a': 1}",
        "tool_name",
        "depth",
        "tool_input",
        "tool_input.s",
        "tool_input.n",
        "tool_input.l",
        "tool_input.m",
        "tool_input.t",
        "tool_input.missing",
        "b'ab'",
    ])
    .prop_map(|it| format!("dyn({it})"))
}

fn expression() -> impl Strategy<Value = String> {
    atom().prop_recursive(3, 12, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        let operators = vec!["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "&&", "||", " in "];
        prop_oneof![
            4 => (two.clone(), proptest::sample::select(operators)).prop_map(|((a, b), op)| format!("({a} {op} {b})")),
            1 => inner.clone().prop_map(|a| format!("(!{a})")),
            1 => inner.clone().prop_map(|a| format!("size({a})")),
            1 => inner.clone().prop_map(|a| format!("type({a})")),
            1 => two.clone().prop_map(|(a, b)| format!("{a}.contains({b})")),
            1 => two.clone().prop_map(|(a, b)| format!("{a}.startsWith({b})")),
            1 => two.clone().prop_map(|(a, b)| format!("{a}[{b}]")),
            1 => inner.clone().prop_map(|a| format!("{a}.s")),
            1 => inner.clone().prop_map(|a| format!("has({a}.s)")),
            1 => (two.clone(), inner.clone()).prop_map(|((a, b), c)| format!("({a} ? {b} : {c})")),
            1 => two.clone().prop_map(|(a, b)| format!("{a}.exists(x, x == {b})")),
            1 => two.clone().prop_map(|(a, b)| format!("{a}.all(x, x != {b})")),
            1 => two.clone().prop_map(|(a, b)| format!("size({a}.map(x, {b}))")),
            1 => two.prop_map(|(a, b)| format!("{a}.exists_one(x, x == {b})")),
        ]
        // Every part is unknown until it is there, so neither side refuses it early.
        .prop_map(|it| format!("dyn({it})"))
    })
}

/// Comparisons, joined as people join them: more of these hold or do not than of any expression.
fn joined() -> impl Strategy<Value = String> {
    let operators = proptest::sample::select(vec!["==", "!=", "<", ">=", " in "]);
    let one = prop_oneof![
        (atom(), atom(), operators).prop_map(|(a, b, op)| format!("({a} {op} {b})")),
        (expression(), atom()).prop_map(|(a, b)| format!("({a} == {b})")),
        expression(),
    ];
    one.prop_recursive(3, 12, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            two.clone().prop_map(|(a, b)| format!("dyn({a} && {b})")),
            two.clone().prop_map(|(a, b)| format!("dyn({a} || {b})")),
            inner.clone().prop_map(|a| format!("dyn(!dyn({a}))")),
            (two, inner).prop_map(|((a, b), c)| format!("dyn({a} ? {b} : {c})")),
        ]
    })
}

#[test]
fn the_crate_agrees() {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let (holds, faults) = (Cell::new(0), Cell::new(0));
    let event = Event::tool("exec", r#"{"s": "abc", "n": 2, "l": [1, "a", true], "m": {"s": 1}, "t": true}"#);
    let outcome = runner.run(&joined(), |tree| {
        let expression = format!("{tree} == true");
        let ours = match event.say(&expression).as_str() {
            "true" => Some(true),
            "false" => Some(false),
            fault if fault.starts_with("fault: ") => None,
            refused => return Err(TestCaseError::fail(refused.to_owned())),
        };
        if deviates(&expression) {
            return Ok(());
        }
        let seen = if ours.is_some() { &holds } else { &faults };
        seen.set(seen.get() + 1);
        prop_assert_eq!(ours, twin(event.input.as_ref().unwrap(), &expression), "{}", expression);
        Ok(())
    });
    assert_eq!(outcome, Ok(()));
    // Both kinds of outcome are met often enough to mean something.
    assert!(holds.get() > 100 && faults.get() > 100, "{holds:?} {faults:?}");
}
