//! The builtin `pii-redactor`, as it is shipped, in the sandbox in which it runs.

use pintle_domain::json::{Value, json};
use pintle_rules::builtin::builtins;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use regex::Regex;

use crate::guards::{run, run_in, sandbox};

/// How many random texts are tried.
const CASES: usize = 400;

fn source() -> &'static str {
    builtins().into_iter().find(|builtin| builtin.id == "pii-redactor").expect("it is shipped").source
}

/// What becomes of each of `texts`, all in one run.
fn redacted(texts: &[String]) -> Vec<String> {
    let renamed = source().replace("function handle(event)", "function one(event)");
    let batch = format!(
        "{renamed}\nfunction handle(event) {{ return {{ all: event.texts.map((text) => {{\
         const {{ decision, updatedInput }} = one({{ rawInput: text, toolInput: null }});\
         if (decision !== 'allow' || updatedInput?.rawInput === text) throw new Error('no change is told as one');\
         return updatedInput ? updatedInput.rawInput : text; }}) }}; }}"
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(run_in(&sandbox(), &batch, &json!({ "texts": texts })));
    answer["all"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[test]
fn addresses_and_numbers_are_replaced_and_nothing_else() {
    let cases = [
        ("write to bob@example.com, please", "write to [REDACTED_EMAIL], please"),
        ("<Bob.B+x@mail.example.co.uk>.", "<[REDACTED_EMAIL]>."),
        ("müller@exämple.de; иван@пример.рф", "[REDACTED_EMAIL]; [REDACTED_EMAIL]"),
        ("\"bob b\"@example.com", "[REDACTED_EMAIL]"),
        ("a@xn--e1afmkfd.xn--p1ai!", "[REDACTED_EMAIL]!"),
        ("a@b.com,c@d.org@e.net", "[REDACTED_EMAIL],[REDACTED_EMAIL]@e.net"),
        ("+4915112345678 or 15551234567", "[REDACTED_PHONE] or [REDACTED_PHONE]"),
        ("12345678 123456789012345", "[REDACTED_PHONE] [REDACTED_PHONE]"),
        ("tel:+12345678;", "tel:[REDACTED_PHONE];"),
        ("mail bob@x.de or call 4912345678", "mail [REDACTED_EMAIL] or call [REDACTED_PHONE]"),
        ("12345678@x.com", "[REDACTED_EMAIL]"),
    ];
    let kept = [
        "",
        "nothing here",
        "1234567",
        "1234567890123456",
        "012345678",
        "++12345678 12345678+",
        "root@localhost a@b @ @x.de x@",
        "git@github:a/b 10.0.0.1",
        "[REDACTED_EMAIL] [REDACTED_PHONE]",
    ];
    let texts: Vec<String> = cases.iter().map(|(text, _)| *text).chain(kept).map(str::to_owned).collect();
    let expected: Vec<String> = cases.iter().map(|(_, clean)| *clean).chain(kept).map(str::to_owned).collect();
    assert_eq!(redacted(&texts), expected);
}

#[test]
fn only_its_fields_are_looked_at() {
    let answer = |event: Value| run(source(), &event);
    let clean = json!({"decision": "allow"});
    assert_eq!(answer(json!({"rawInput": "hello", "toolInput": null})), clean);
    assert_eq!(answer(json!({"rawInput": "", "toolInput": {"path": "bob@example.com", "command": "ls"}})), clean);
    let changed = answer(json!({
        "rawInput": "",
        "toolInput": {
            "path": "bob@example.com",
            "command": "mail bob@example.com",
            "query": "plain",
            "content": [{"to": "+4915112345678", "n": 15_551_234_567_u64}],
        },
    }));
    let fields =
        json!({"command": "mail [REDACTED_EMAIL]", "content": [{"to": "[REDACTED_PHONE]", "n": 15_551_234_567_u64}]});
    assert_eq!(changed, json!({"decision": "allow", "updatedInput": {"toolInput": fields}}));
    let prompt = answer(json!({"rawInput": "a@example.com", "toolInput": null}));
    assert_eq!(prompt, json!({"decision": "allow", "updatedInput": {"rawInput": "[REDACTED_EMAIL]"}}));
}

/// Parts of a text, each with what becomes of it. No part ends or begins with what could belong to another.
fn part() -> impl Strategy<Value = (String, String)> {
    let plain = "[ ,;:!?()\"'äß\n\t|]{1,4}[a-z ]{0,9}[ ,;:()\n|]{1,3}".prop_map(|text| (text.clone(), text));
    let short = "[ (]0?[0-9]{1,7}[ )]".prop_map(|text| (text.clone(), text));
    let long = " [1-9][0-9]{15,20} ".prop_map(|text| (text.clone(), text));
    let mark = prop_oneof![Just(" @ "), Just(" x@ "), Just(" a@b "), Just("\n@\n")]
        .prop_map(|text| (text.into(), text.into()));
    let address = "[a-z0-9][a-z0-9._%+-]{0,12}@([a-z0-9]([a-z0-9-]{0,5}[a-z0-9])?[.]){1,3}[a-z]{2,6}"
        .prop_map(|text| (format!(" {text} "), " [REDACTED_EMAIL] ".to_owned()));
    let number = "[+]?[1-9][0-9]{7,14}".prop_map(|text| (format!(" {text} "), " [REDACTED_PHONE] ".to_owned()));
    prop_oneof![3 => plain, 1 => short, 1 => long, 1 => mark, 2 => address, 2 => number]
}

fn random<T: std::fmt::Debug>(strategy: &impl Strategy<Value = T>) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..CASES).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

#[test]
fn injected_ones_are_gone_and_all_else_is_unchanged() {
    let texts: Vec<(String, String)> = random(&prop::collection::vec(part(), 0..12))
        .into_iter()
        .map(|parts| {
            (parts.iter().map(|(own, _)| own.as_str()).collect(), parts.iter().map(|(_, own)| own.as_str()).collect())
        })
        .collect();
    let once = redacted(&texts.iter().map(|(text, _)| text.clone()).collect::<Vec<_>>());
    for ((text, expected), got) in texts.iter().zip(&once) {
        assert_eq!(got, expected, "{text:?}");
    }
    assert_eq!(redacted(&once), once, "a second run changes nothing");
}

/// Texts of the letters that the rules are about, next to each other in every way.
#[test]
fn whatever_the_text_none_is_left_and_a_second_run_changes_nothing() {
    let texts =
        random(&"[a1+@.\"% é-]{0,40}|([0-9]{1,9}[+@. ]?){0,8}|(a@b[.]de|\"|[+]49|123456789|[REDACTED_PHONE]|@){0,9}");
    let once = redacted(&texts);
    let address = Regex::new(r"[\p{L}\p{N}._%+-]@(?:[\p{L}\p{N}-]+\.)+\p{L}{2,}").unwrap();
    let number = Regex::new(r"(?:^|[^0-9+])\+?[1-9][0-9]{7,14}(?:[^0-9+]|$)").unwrap();
    for (text, got) in texts.iter().zip(&once) {
        assert!(!address.is_match(got) && !number.is_match(got), "{text:?} became {got:?}");
    }
    assert_eq!(redacted(&once), once);
    assert!(once.iter().zip(&texts).filter(|(got, text)| got != text).count() > CASES / 10, "few texts had anything");
}

/// Long texts are no way past it, and take no more than their length is worth.
#[test]
fn long_texts_are_read_whole() {
    let texts = [
        "a".repeat(1 << 19),
        format!("{}@", "a.".repeat(1 << 18)),
        "@".repeat(1 << 19),
        "a@".repeat(1 << 17),
        format!("x@{}", "a.".repeat(1 << 18)),
        "1".repeat(1 << 19),
    ];
    for text in texts {
        assert_eq!(redacted(std::slice::from_ref(&text)), std::slice::from_ref(&text), "{}…", &text[..20]);
    }
    let hidden = format!("{} bob@example.com {}", "a@".repeat(1 << 16), "1+".repeat(1 << 16));
    let shown = hidden.replace("bob@example.com", "[REDACTED_EMAIL]");
    assert_eq!(redacted(&[hidden]), [shown]);
}
