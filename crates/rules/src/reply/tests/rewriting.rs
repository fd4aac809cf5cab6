//! The shapes of `updatedInput`.

use super::*;

type Changed = Result<Option<Rewrite>, String>;

fn parsed(text: &str) -> Object {
    object(json::parse(text).unwrap())
}

fn input(text: &str) -> Changed {
    Ok(Some(Rewrite::Input(parsed(text))))
}

fn prompt(text: &str) -> Changed {
    Ok(Some(Rewrite::Prompt(text.into())))
}

fn wrong(why: &str) -> Changed {
    Err(format!("updatedInput: {why}"))
}

fn check(current: CurrentInput<'_>, shape: InputShape, rows: &[(&str, Changed)]) {
    for (updated, expected) in rows {
        let changed = rewrite(Some(parsed(updated)), current, shape).map_err(|fault| fault.to_string());
        assert_eq!(changed, *expected, "{updated} for {current:?}");
    }
    assert_eq!(rewrite(None, current, shape), Ok(None));
    assert_eq!(rewrite(Some(Object::new()), current, shape), Ok(None));
}

#[test]
fn the_whole_input_of_a_tool() {
    let current = parsed(r#"{"cmd":"ls","n":1.0,"deep":{"a":[1,{"b":2,"c":3}]},"big":1e999}"#);
    check(
        CurrentInput::Input(&current),
        InputShape::Whole,
        &[
            (r#"{"cmd":"ls -l"}"#, input(r#"{"cmd":"ls -l"}"#)),
            (r#"{"toolInput":{"cmd":"x"}}"#, input(r#"{"toolInput":{"cmd":"x"}}"#)),
            (r#"{"cmd":null}"#, input(r#"{"cmd":null}"#)),
            // Members in another order, numbers in another spelling.
            (r#"{"big":1e999,"deep":{"a":[1e0,{"c":3,"b":2.0}]},"n":1,"cmd":"ls"}"#, Ok(None)),
            (
                r#"{"big":1e998,"deep":{"a":[1,{"b":2,"c":3}]},"n":1.0,"cmd":"ls"}"#,
                input(r#"{"big":1e998,"deep":{"a":[1,{"b":2,"c":3}]},"n":1.0,"cmd":"ls"}"#),
            ),
            (
                r#"{"cmd":"ls","n":1.0,"deep":{"a":[1,{"b":2,"c":3}]},"big":1e999,"more":null}"#,
                input(r#"{"cmd":"ls","n":1.0,"deep":{"a":[1,{"b":2,"c":3}]},"big":1e999,"more":null}"#),
            ),
        ],
    );
}

#[test]
fn the_prompt_of_a_reply() {
    let exactly = r#"must be exactly {"rawInput":"…"} at `user_prompt_submit`, got the member"#;
    check(
        CurrentInput::Prompt("hello"),
        InputShape::Whole,
        &[
            (r#"{"rawInput":"bye"}"#, prompt("bye")),
            (r#"{"rawInput":""}"#, prompt("")),
            (r#"{"rawInput":"hello"}"#, Ok(None)),
            (r#"{"rawInput":null}"#, wrong("rawInput must be a string, got null")),
            (r#"{"rawInput":["bye"]}"#, wrong("rawInput must be a string, got an array")),
            (r#"{"rawInput":"bye","x":1}"#, wrong(&format!(r#"{exactly} "x""#))),
            (r#"{"RawInput\n":"bye"}"#, wrong(&format!(r#"{exactly} "RawInput""#))),
        ],
    );
}

#[test]
fn what_a_script_lays_over_an_input() {
    let current = parsed(r#"{"cmd":"ls","env":{"A":"1"},"n":2}"#);
    check(
        CurrentInput::Input(&current),
        InputShape::Parts,
        &[
            (r#"{"toolInput":{"cmd":"ls -l"}}"#, input(r#"{"cmd":"ls -l","env":{"A":"1"},"n":2}"#)),
            // Only top-level keys are laid over; what is within is replaced.
            (
                r#"{"toolInput":{"env":{"B":"2"},"new":null}}"#,
                input(r#"{"cmd":"ls","env":{"B":"2"},"n":2,"new":null}"#),
            ),
            (r#"{"toolInput":{"n":2.0}}"#, Ok(None)),
            (r#"{"toolInput":{}}"#, Ok(None)),
            (r#"{"toolInput":null,"rawInput":null}"#, Ok(None)),
            (r#"{"rawInput":"other"}"#, Ok(None)),
            (r#"{"toolInput":{"n":3},"rawInput":"other"}"#, input(r#"{"cmd":"ls","env":{"A":"1"},"n":3}"#)),
            (r#"{"toolInput":"ls"}"#, wrong("toolInput must be an object, got a string")),
            (r#"{"rawInput":5}"#, wrong("rawInput must be a string, got a number")),
            (r#"{"cmd":"ls"}"#, wrong(r#"must be {toolInput?, rawInput?}, got the member "cmd""#)),
        ],
    );
}

#[test]
fn what_a_script_makes_of_a_prompt() {
    check(
        CurrentInput::Prompt("hello"),
        InputShape::Parts,
        &[
            (r#"{"rawInput":"bye"}"#, prompt("bye")),
            (r#"{"rawInput":"bye","toolInput":{"a":1}}"#, prompt("bye")),
            (r#"{"rawInput":"hello"}"#, Ok(None)),
            (r#"{"rawInput":null}"#, Ok(None)),
            (r#"{"toolInput":{"a":1}}"#, Ok(None)),
            (r#"{"rawInput":{}}"#, wrong("rawInput must be a string, got an object")),
            (r#"{"x":1}"#, wrong(r#"must be {toolInput?, rawInput?}, got the member "x""#)),
        ],
    );
}

#[test]
fn at_other_events_all_is_dropped() {
    for shape in [InputShape::Whole, InputShape::Parts] {
        check(CurrentInput::Nothing, shape, &[(r#"{"cmd":"x"}"#, Ok(None)), (r#"{"rawInput":5}"#, Ok(None))]);
    }
}
