//! `&&` and `||` drop what is wrong with one part where another decides, in either order.

use super::{Event, check};

const WRONG: &str = "tool_input.x == 1";
const FAULT: &str = "fault: no such key: x; test it with has() first";

#[test]
fn both_operators_in_either_order() {
    let event = Event::tool("exec", r#"{"a": true, "s": "text"}"#);
    let parts = [("true", Some(true)), ("false", Some(false)), (WRONG, None)];
    for (a, left) in parts {
        for (b, right) in parts {
            let and = match (left, right) {
                (Some(false), _) | (_, Some(false)) => "false",
                (Some(true), Some(true)) => "true",
                _ => FAULT,
            };
            let or = match (left, right) {
                (Some(true), _) | (_, Some(true)) => "true",
                (Some(false), Some(false)) => "false",
                _ => FAULT,
            };
            check(&event, &[(&format!("{a} && {b}"), and), (&format!("{a} || {b}"), or)]);
            // Three parts, of which any may be the one that decides.
            for (c, third) in parts {
                let all = [left, right, third];
                let decided = |by: bool| all.contains(&Some(by));
                let faulty = all.contains(&None);
                let and = if decided(false) {
                    "false"
                } else if faulty {
                    FAULT
                } else {
                    "true"
                };
                let or = if decided(true) {
                    "true"
                } else if faulty {
                    FAULT
                } else {
                    "false"
                };
                check(&event, &[(&format!("{a} && {b} && {c}"), and), (&format!("{a} || {b} || {c}"), or)]);
            }
        }
    }
}

#[test]
fn what_is_no_bool_is_dropped_too() {
    check(
        &Event::tool("exec", r#"{"a": true, "s": "text"}"#),
        &[
            ("tool_input.s && false", "false"),
            ("false && tool_input.s", "false"),
            ("tool_input.s || true", "true"),
            ("tool_input.s && true", "fault: found no matching overload for '_&&_' applied to '(string)'"),
            ("true && tool_input.s", "fault: found no matching overload for '_&&_' applied to '(string)'"),
            ("tool_input.s || false", "fault: found no matching overload for '_||_' applied to '(string)'"),
        ],
    );
}

#[test]
fn a_guard_may_stand_on_either_side() {
    let other = Event::tool("read_file", r#"{"path": "/x"}"#);
    check(
        &other,
        &[
            (r#"size(tool_input.cmd) > 80 && tool_name == "exec""#, "false"),
            (r#"tool_name == "exec" && size(tool_input.cmd) > 80"#, "false"),
            (r#"tool_input.cmd == "ls" || tool_name == "read_file""#, "true"),
            (r#"!(size(tool_input.cmd) > 80 && tool_name == "exec")"#, "true"),
            (r#"(tool_input.cmd == "x" && tool_name == "exec") || has(tool_input.path)"#, "true"),
        ],
    );
}

#[test]
fn all_and_exists_drop_as_their_operators_do() {
    check(
        &Event::tool("exec", r#"{"list": [1, "a", {"k": 2}]}"#),
        &[
            ("tool_input.list.exists(x, x.k == 2)", "true"),
            (
                "tool_input.list.exists(x, x.k == 3)",
                "fault: found no matching overload for '_._' applied to '(double, string)'",
            ),
            ("tool_input.list.all(x, x.k == 3)", "false"),
            (
                "tool_input.list.all(x, x.k == 2)",
                "fault: found no matching overload for '_._' applied to '(double, string)'",
            ),
            ("[1, 0].exists(x, 1 / x == 1)", "true"),
            ("[0, 1].exists(x, 1 / x == 1)", "true"),
            ("[0, 1].all(x, 1 / x == 2)", "false"),
            ("[].all(x, 1 / x == 2)", "true"),
            ("[].exists(x, 1 / x == 2)", "false"),
            // These three need every item.
            ("[0, 1].exists_one(x, 1 / x == 1)", "fault: division by zero"),
            ("[0, 1].map(x, 1 / x) == [1]", "fault: division by zero"),
            ("[0, 1].filter(x, 1 / x == 1) == [1]", "fault: division by zero"),
            // The ternary looks at one branch only, and needs its test.
            ("true ? true : 1 / 0 == 1", "true"),
            ("false ? 1 / 0 == 1 : true", "true"),
            ("1 / 0 == 1 ? true : true", "fault: division by zero"),
        ],
    );
}
