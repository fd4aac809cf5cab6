//! Expressions and inputs that are made to cost much end in bounds, as faults; nothing panics.

use pintle_rules::condition::compile;
use proptest::prelude::*;

use super::{Event, exec};

const COST: &str = "fault: the condition costs more than 100000; look at fewer or smaller values";

/// The expression must end in an overrun of the cost or of the time.
#[track_caller]
fn overruns(event: &Event, expression: &str) {
    let said = event.say(expression);
    assert!(said == COST || said.contains("longer than 100 ms"), "{said} of {:.200}", expression);
}

fn list(items: usize) -> String {
    format!("[{}]", vec!["1"; items].join(","))
}

#[test]
fn nested_macros() {
    let ten = list(10);
    for name in ["all", "exists", "exists_one", "map", "filter"] {
        let inner = match name {
            "all" => "true",
            "map" => "1",
            _ => "false",
        };
        let mut bomb = inner.to_owned();
        for depth in 0..8 {
            bomb =
                format!("{ten}.{name}(v{depth}, {bomb}{})", if depth > 0 && name == "filter" { " == []" } else { "" });
            bomb = if name == "map" { format!("size({bomb})") } else { bomb };
        }
        bomb = match name {
            "map" => format!("{bomb} == 10"),
            "filter" => format!("{bomb} == []"),
            _ => bomb,
        };
        overruns(&exec(), &bomb);
    }
}

#[test]
fn an_overrun_is_absorbed_by_nothing() {
    let ten = list(10);
    let mut bomb = "false".to_owned();
    for depth in 0..8 {
        bomb = format!("{ten}.exists(v{depth}, {bomb})");
    }
    let event = exec();
    overruns(&event, &format!("{bomb} || true"));
    overruns(&event, &format!("{bomb} && false"));
    overruns(&event, &format!("[0, 1].exists(x, x == 0 ? {bomb} : true)"));
    overruns(&event, &format!("[0, 1].all(x, x == 0 ? {bomb} : false)"));
    let both = Event { raw: "bash", ..exec() };
    overruns(&both, &format!("tool_name == 'exec' ? {bomb} : true"));
}

#[test]
fn doubling() {
    let event = exec();
    let twice = |kind: &str, rounds: usize| {
        let mut bomb = format!("[{kind}]");
        for _ in 0..rounds {
            bomb.push_str(".map(a, a + a)");
        }
        bomb
    };
    for kind in ["'0123456789'", "b'0123456789'", "[1, 2, 3]", "tool_input.cmd", "tool_input.list"] {
        overruns(&event, &format!("{} == []", twice(kind, 80)));
    }
    // A list of itself twice, ever again, holds 2^80 items and 80 lists; comparing it walks all of them.
    let mut tree = "[1]".to_owned();
    for _ in 0..80 {
        tree.push_str(".map(a, [a, a])");
    }
    overruns(&event, &format!("{tree} == {tree}"));
    assert_eq!(event.say(&format!("size({tree}) == 1")), "true");
}

#[test]
fn large_inputs() {
    let text = "a".repeat(4 << 20);
    let items = vec!["1"; 200_000].join(",");
    let (part, _) = text.split_at(64 << 10);
    let input = format!(r#"{{"text": "{text}", "part": "{part}", "list": [{items}]}}"#);
    let event = Event::tool("write_file", &input);
    // One look at a few megabytes is what conditions are for.
    for fine in [
        "size(tool_input.text) == 4194304",
        "!tool_input.text.contains('password')",
        "!tool_input.part.matches('(?i)b|c+')",
        "tool_input.text.startsWith('aaa') && tool_input.text.endsWith('aaa')",
        "tool_input.text != tool_name",
        "size(tool_input.list) == 200000",
        "size(tool_input) == 3",
    ] {
        assert_eq!(event.say(fine), "true", "{fine}");
    }
    for bomb in [
        "tool_input.list.all(x, x == 1)",
        "tool_input.list.map(x, x) == []",
        "2 in tool_input.list",
        "tool_input.list == tool_input.list",
        "tool_input == tool_input",
        "tool_input.list + tool_input.list + tool_input.list == []",
        "tool_input.text + tool_input.text == ''",
        "[1, 2, 3].all(x, tool_input.text.contains('b' + string(x)) || true)",
        "[1, 2, 3].all(x, size(tool_input.text) > x)",
        "[1, 2, 3].all(x, tool_input.text == tool_input.text)",
        "[1, 2, 3].all(x, tool_input.text <= tool_input.text)",
        "[1, 2, 3].exists(x, bytes(tool_input.text + 'x') == b'')",
        "[1, 2, 3].exists(x, int(tool_input.text) == x)",
        "[1, 2, 3].exists(x, {'a': 1}[tool_input.text] == x)",
        "tool_input.text.matches('[ab]*a[ab]{200}c')",
    ] {
        overruns(&event, bomb);
    }
    // Faults do not carry what they are about.
    for wrong in
        ["tool_input.list - 1 == 1", "tool_input.text - 1 == 1", "-tool_input.list == 1", "tool_input.list < 1"]
    {
        let said = event.say(wrong);
        assert!(said.starts_with("fault: found no matching overload") && said.len() < 200, "{said}");
    }
    let said = event.say("tool_input[tool_input.text] == 1");
    assert!(said.starts_with("fault: no such key: aaa") && said.len() < 200, "{said}");
}

#[test]
fn costly_patterns() {
    let text = "ab".repeat(500_000);
    let event = Event::tool("exec", &format!(r#"{{"cmd": "{text}"}}"#));
    for bomb in [
        r"tool_input.cmd.matches('[ab]*a[ab]{1000}c')",
        r"tool_input.cmd.matches('(([ab]{1,30}){1,30}){1,30}c')",
        r"tool_input.cmd.matches('(\\w+x?){3}c')",
        // Made while evaluating, a thousand times.
        "[1,2,3,4,5,6,7,8,9,10].all(x, [1,2,3,4,5,6,7,8,9,10].all(y, tool_name.matches('a' + string(x * y)) || true))",
    ] {
        let said = event.say(bomb);
        let refused = said.starts_with("refused: ") && said.contains("size limit");
        assert!(refused || said == COST || said.contains("100 ms"), "{said} of {bomb}");
    }
    // A pattern that fits a table takes one step per byte, however it looks.
    assert_eq!(event.say("tool_input.cmd.matches('(a|b|ab)*(a?b?)*c')"), "false");
    assert_eq!(event.say("tool_input.cmd.matches('a(ba)+b$')"), "true");
    let made = |pattern: &str| event.say(&format!("tool_name.matches('' + '{pattern}')"));
    assert!(made("(a{100}){100}").contains("exceeds size limit of 65536 bytes"), "{}", made("(a{100}){100}"));
    assert_eq!(
        made(&"a".repeat(1_025)),
        "fault: matches(): a pattern that is not a literal may have 1024 bytes, got 1025"
    );
    assert_eq!(made("^ex[a-f]c$"), "true");
}

#[test]
fn long_numbers() {
    let digits = "1".repeat(1 << 20);
    let event = Event::tool("exec", &format!(r#"{{"n": 0.{digits}, "m": 0.{}}}"#, "1".repeat(500)));
    assert_eq!(event.say("tool_input.n > 0"), "fault: a number of the input has too many digits");
    assert_eq!(event.say("tool_input.m > 0.1"), "true");
}

/// On a thread with half of the stack that a worker has.
fn on_a_small_stack(f: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(1 << 20).spawn_scoped(scope, f);
        thread.unwrap().join().unwrap();
    });
}

#[test]
fn deep_nesting() {
    on_a_small_stack(|| {
        let event = exec();
        let repeat = |open: &str, inner: &str, close: &str| {
            let times = (4_096 - inner.len()) / (open.len() + close.len());
            format!("{}{inner}{}", open.repeat(times), close.repeat(times))
        };
        for (open, inner, close) in [
            ("(", "true", ")"),
            ("!", "true", ""),
            ("-", "1", ""),
            ("!-", "true", ""),
            ("[", "1", "]"),
            ("{1:", "1", "}"),
            ("size(", "tool_name", ")"),
            ("(1+", "1", ")"),
            ("true?", "true", ":true"),
            ("true&&(", "true", ")"),
            ("true||(false&&(", "true", "))"),
            ("[1].all(x,", "true", ")"),
            ("[", "1", "][0]"),
            ("tool_input[", "1", "]"),
            ("has(", "tool_input.x", ")"),
            ("", "tool_input", ".a"),
            ("", "tool_input", "[0]"),
            ("", "tool_input", ".map(a,a)"),
            ("", "1", "+1"),
            ("", "1", "==1"),
            ("", "true", "&&true"),
            ("", "1", " in [1]"),
            ("", "true", "?true:true"),
            ("", "tool_name", ".size()"),
        ] {
            let bomb = repeat(open, inner, close);
            assert!(bomb.len() <= 4_096);
            let said = event.say(&bomb);
            assert!(said.len() < 10_000, "{said}");
            // As deep as it may be, and a little deeper.
            for times in [5, 15, 30, 45, 95] {
                drop(event.say(&format!("{}{inner}{}", open.repeat(times), close.repeat(times))));
            }
        }
    });
}

#[test]
fn deep_inputs() {
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let maps = format!("{}1{}", "{\"a\":".repeat(500), "}".repeat(500));
    let event = Event::tool("exec", &format!(r#"{{"a": {deep}, "b": {deep}, "m": {maps}, "n": {maps}}}"#));
    on_a_small_stack(|| {
        assert_eq!(event.say("tool_input.a == tool_input.b"), "true");
        assert_eq!(event.say("tool_input.m == tool_input.n"), "true");
        assert_eq!(event.say("tool_input.m == tool_input.a"), "false");
    });
}

#[test]
fn unicode() {
    let event = Event::tool("exec", r#"{"s": "日本語🦀e\u0301", "ß": 1}"#);
    for (expression, expected) in [
        ("size(tool_input.s) == 6", "true"),
        ("size(bytes(tool_input.s)) == 16", "true"),
        ("tool_input.s.contains('語🦀')", "true"),
        ("tool_input.s.startsWith('日')", "true"),
        ("tool_input.s.endsWith('\\u0301')", "true"),
        ("tool_input.s == '日本語🦀e\u{301}'", "true"),
        ("tool_input.s.matches('^\\\\p{Han}+.e.$')", "true"),
        ("tool_input['ß'] == 1", "true"),
        // A word boundary beside letters beyond ASCII is none that a table can judge.
        ("tool_input.s.matches('語\\\\b')", "true"),
        ("tool_input.s.matches('日\\\\b')", "false"),
        ("(tool_input.s + ' x').matches('\\\\bx\\\\b')", "true"),
        ("string(b'\\xff') == ''", "fault: string(): the bytes are not UTF-8"),
        ("string(bytes(tool_input.s)) == tool_input.s", "true"),
        ("'a' < '日'", "true"),
    ] {
        assert_eq!(event.say(expression), expected, "{expression}");
    }
    assert!(compile("日本 == 1").unwrap_err().starts_with("cel parse \"日本 == 1\": 1:1: "));
}

/// Words of which expressions are made, so that more than a few of them can be read.
const WORDS: &str = r#"tool_name tool_input depth shell .cmd .list .x [0] ['cmd'] ( ) [ ] { } , : ? && || ! - + * / % ==
    != < >= in 1 2u 0.5 1e308 9223372036854775807 'a' b'a' r'\d' true false null size( has( int( string( .matches(
    .contains( .all(x, .exists(x, .map(x, .filter(x, .exists_one(x, x dyn( type( double( uint( bytes( \ ' " // é 🦀 @ `"#;

fn piece() -> impl Strategy<Value = String> {
    let words: Vec<&str> = WORDS.split_whitespace().chain(["\n", "\0", " "]).collect();
    proptest::sample::select(words).prop_map(|word| format!("{word} "))
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,80}") {
        drop(exec().say(&text));
    }

    #[test]
    fn no_bytes_make_it_panic(text in proptest::collection::vec(any::<char>(), 0..60)) {
        drop(exec().say(&text.into_iter().collect::<String>()));
    }

    #[test]
    fn no_row_of_words_makes_it_panic(words in proptest::collection::vec(piece(), 1..24)) {
        drop(exec().say(&words.concat()));
    }
}
