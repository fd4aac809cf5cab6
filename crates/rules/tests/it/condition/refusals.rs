//! What is no condition is refused with the words of the page, when it is compiled.

use pintle_rules::condition::compile;

#[track_caller]
fn refused(rows: &[(&str, &str)]) {
    let wrong: Vec<String> = rows
        .iter()
        .map(|(expression, expected)| (expression, expected, compile(expression).map(|_| ()).unwrap_err()))
        .filter(|(_, expected, got)| *expected != got)
        .map(|(expression, expected, got)| format!("{expression}\n  expected {expected}\n  got      {got}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each row's message after `cel parse "E": `.
#[track_caller]
fn unread(rows: &[(&str, &str)]) {
    for (expression, why) in rows {
        refused(&[(expression, &format!("cel parse {expression:?}: {why}"))]);
    }
}

#[test]
fn what_is_no_bool() {
    refused(&[
        ("1", "expression must be bool, got int"),
        ("1u + 2u", "expression must be bool, got uint"),
        ("-1.5", "expression must be bool, got double"),
        ("tool_name", "expression must be bool, got string"),
        ("tool_name + '!'", "expression must be bool, got string"),
        ("size(tool_name)", "expression must be bool, got int"),
        ("depth + 1", "expression must be bool, got int"),
        ("b'x'", "expression must be bool, got bytes"),
        ("null", "expression must be bool, got null_type"),
        ("[1, 2]", "expression must be bool, got list(int)"),
        ("[1, 'a']", "expression must be bool, got list(dyn)"),
        ("{'a': 1}", "expression must be bool, got map(string, int)"),
        ("tool_input", "expression must be bool, got map(string, dyn)"),
        ("type(tool_input.x)", "expression must be bool, got type"),
        ("int", "expression must be bool, got type"),
        ("[1].map(x, x > 0)", "expression must be bool, got list(bool)"),
        ("first_prompt ? 1 : 2", "expression must be bool, got int"),
        ("[1, 2][0]", "expression must be bool, got int"),
        ("string(tool_input.x)", "expression must be bool, got string"),
    ]);
    for unknown in ["tool_input.x", "first_prompt ? tool_input.x : true", "[true, 1][0]", "dyn(1)", "tool_input['a']"] {
        assert!(compile(unknown).is_ok(), "{unknown} is seen when it is there");
    }
}

#[test]
fn what_cannot_be_read() {
    unread(&[
        ("tool_name ==", "1:13: Syntax error: mismatched input '<EOF>' expecting expression"),
        ("", "1:1: Syntax error: mismatched input '<EOF>' expecting expression"),
        ("tool_name = 'x'", "1:11: Syntax error: mismatched input '=' expecting <EOF>"),
    ]);
    for broken in
        ["(", ")", "a b", "'", "1 +", "[1", "{1:", "has()", "has(tool_name)", "x.all(1, true)", "$", "@x", "\u{0}"]
    {
        let why = compile(broken).unwrap_err();
        assert!(why.starts_with(&format!("cel parse {broken:?}: ")) && !why.contains('\n'), "{why}");
    }
}

#[test]
fn names_that_there_are_not() {
    unread(&[
        ("tool_nam == 'x'", "unknown variable `tool_nam` (did you mean `tool_name`?)"),
        ("toolinput.x == 1", "unknown variable `toolinput` (did you mean `tool_input`?)"),
        (
            "command == 'x'",
            "unknown variable `command`; known are tool_name, tool_input, depth, event, agent_id, session_id, \
             raw_input, raw_tool_name, first_prompt, shell",
        ),
        ("tool_input.list.exists(item, itm == 1)", "unknown variable `itm` (did you mean `item`?)"),
        (
            "[1].exists(x, true) && x == 1",
            "unknown variable `x`; known are tool_name, tool_input, depth, event, \
             agent_id, session_id, raw_input, raw_tool_name, first_prompt, shell",
        ),
        ("tool_name.startWith('x')", "unknown function `startWith` (did you mean `startsWith`?)"),
        (
            "tool_name.lowerAscii() == 'x'",
            "unknown function `lowerAscii`; known are size, contains, startsWith, \
             endsWith, matches, int, uint, double, string, bytes, bool, type, dyn, has, all, exists, exists_one, map, filter",
        ),
        ("contains(tool_name, 'x')", "`contains` is called as text.contains(text)"),
        ("tool_name.size('x') == 1", "`size` is called as size(value)"),
        ("[1].all(x)", "`all` is called as list.all(name, condition)"),
        (
            "timestamp('2026-01-01T00:00:00Z') == timestamp('2026-01-01T00:00:00Z')",
            "`timestamp` is not available: no variable of a condition is a time",
        ),
        ("shell.write == []", "unknown member of `shell` `write` (did you mean `writes`?)"),
        ("Foo{a: 1} == 1", "`Foo{…}`: only maps can be made, as in {\"a\": 1}"),
        (
            "cel.bind(x, 1, x == 1)",
            "unknown function `bind`; known are size, contains, startsWith, endsWith, matches, \
             int, uint, double, string, bytes, bool, type, dyn, has, all, exists, exists_one, map, filter",
        ),
    ]);
    // No name that the evaluation uses itself can be written.
    for inner in ["@in(1, [1])", "@result", "__tick(true)", "_&&_", "@not_strictly_false(true)", "_+_(1, 2) == 3"] {
        assert!(compile(inner).unwrap_err().starts_with("cel parse "), "{inner}");
    }
}

#[test]
fn types_that_do_not_fit() {
    let overload = |rest: &str| format!("found no matching overload for {rest}");
    unread(&[
        ("1 + 1.0 == 2.0", &overload("'_+_' applied to '(int, double)'")),
        ("tool_name + 1 == 'x'", &overload("'_+_' applied to '(string, int)'")),
        ("tool_name == 1", &overload("'_==_' applied to '(string, int)'")),
        ("tool_name != null", &overload("'_!=_' applied to '(string, null_type)'")),
        ("tool_name < 1", &overload("'_<_' applied to '(string, int)'")),
        ("[1] < [2]", &overload("'_<_' applied to '(list(int), list(int))'")),
        ("!depth", &overload("'!_' applied to '(int)'")),
        ("-tool_name == 'x'", &overload("'-_' applied to '(string)'")),
        ("tool_name && true", &overload("'_&&_' applied to '(string)'")),
        ("true || 1", &overload("'_||_' applied to '(int)'")),
        ("depth ? true : false", &overload("'_?_:_' applied to '(int, bool, bool)'")),
        ("size(depth) == 1", &overload("'size' applied to '(int)'")),
        ("depth.contains('x')", &overload("'contains' applied to '(int, string)'")),
        ("tool_name.matches(1)", &overload("'matches' applied to '(string, int)'")),
        ("1 in tool_input", &overload("'@in' applied to '(int, map(string, dyn))'")),
        ("1 in ['a']", &overload("'@in' applied to '(int, list(string))'")),
        ("1 in 2", &overload("'@in' applied to '(int, int)'")),
        ("tool_input[1] == 1", &overload("'_[_]' applied to '(map(string, dyn), int)'")),
        ("[1]['a'] == 1", &overload("'_[_]' applied to '(list(int), string)'")),
        ("1.5 % 1.5 == 0.0", &overload("'_%_' applied to '(double, double)'")),
        ("bool(1)", &overload("'bool' applied to '(int)'")),
        ("tool_name.x == 1", "type 'string' has no members, so there is no `x` in it"),
        ("tool_name.all(x, true)", "a value of type 'string' cannot be walked by a macro"),
        ("[1].all(x, x)", &overload("'all()' applied to '(int)'")),
        ("{[1]: 2} == {}", "a map cannot have a key of type 'list(int)'"),
        ("['a'].exists(x, x == 1)", &overload("'_==_' applied to '(string, int)'")),
    ]);
}

#[test]
fn patterns_that_do_not_compile() {
    unread(&[
        ("tool_name.matches('a(')", "matches(): pattern \"a(\": unclosed group"),
        (
            "tool_name.matches('(a{1000}){1000}')",
            "matches(): pattern \"(a{1000}){1000}\": Compiled regex exceeds size limit of 1048576 bytes.",
        ),
    ]);
    assert!(compile(r"tool_name.matches('(?=a)')").unwrap_err().contains("look-around"));
    assert!(compile(r"tool_name.matches('(a)\\1')").unwrap_err().contains("backreferences"));
}

#[test]
fn what_is_too_large() {
    let long = format!("tool_name == '{}'", "x".repeat(5_000));
    let why = compile(&long).unwrap_err();
    assert!(why.starts_with("cel parse \"tool_name == 'xxx") && why.len() < 200, "{why}");
    assert!(why.ends_with("longer than 4096 bytes (got 5015)"), "{why}");
    let fits = format!("tool_name == '{}'", "x".repeat(4_081));
    assert_eq!(fits.len(), 4_096);
    assert!(compile(&fits).is_ok());

    let sum = |terms: usize| format!("depth{} > 0", "+1".repeat(terms));
    assert!(compile(&sum(90)).is_ok());
    assert!(compile(&sum(2_000)).unwrap_err().ends_with("nested deeper than 100 levels; split it into several hooks"));
    let many = format!("[{}] == []", vec!["1"; 2_000].join(","));
    assert!(compile(&many).unwrap_err().ends_with("more than 2000 steps; split it into several hooks"));
    // A chain of `||` is one level, however long it is.
    assert!(compile(&vec!["depth==1"; 400].join("||")).is_ok());
}
