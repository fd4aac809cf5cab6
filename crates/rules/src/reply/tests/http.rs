//! The body of a response.

use super::*;

fn read(text: &str, strict: bool) -> Result<BodyReply, String> {
    body(text.as_bytes(), strict).map_err(|fault| fault.to_string())
}

#[test]
fn what_is_no_json_allows_unless_strict() {
    let passed = Ok(BodyReply { said: HandlerReply::default(), non_json: true });
    let rows = [
        ("", "reply: must be a JSON object, got nothing (the hook is `strict`)"),
        (" \r\n", "reply: must be a JSON object, got nothing (the hook is `strict`)"),
        ("OK", "reply: must be JSON (the hook is `strict`): expected value at line 1 column 1"),
        ("<html>", "reply: must be JSON (the hook is `strict`): expected value at line 1 column 1"),
        (
            r#"{"decision":"block""#,
            "reply: must be JSON (the hook is `strict`): EOF while parsing an object at line 1 column 19",
        ),
        ("{} {}", "reply: must be JSON (the hook is `strict`): trailing characters at line 1 column 4"),
    ];
    for (text, strictly) in rows {
        assert_eq!(read(text, false), passed, "{text}");
        assert_eq!(read(text, true), Err(strictly.to_owned()), "{text}");
    }
}

#[test]
fn json_must_be_an_object() {
    for (text, kind) in [
        ("null", "null"),
        ("true", "a boolean"),
        ("5", "a number"),
        ("\"allow\"", "a string"),
        ("[{\"decision\":\"block\"}]", "an array"),
    ] {
        for strict in [false, true] {
            assert_eq!(read(text, strict), Err(format!("reply: must be a JSON object, got {kind}")), "{text}");
        }
    }
}

#[test]
fn an_object_is_a_reply_strict_or_not() {
    for strict in [false, true] {
        let expected = BodyReply { said: because(Decision::Block, "r"), non_json: false };
        assert_eq!(read(r#" {"decision":"block","reason":"r","other":1} "#, strict), Ok(expected));
        assert_eq!(read("{}", strict), Ok(BodyReply::default()));
    }
}

#[test]
fn json_beyond_what_is_read_is_no_plain_text() {
    let deep = format!(r#"{{"decision":"block","x":{}{}}}"#, "[".repeat(600), "]".repeat(600));
    assert_eq!(read(&deep, false), Err("reply: nested deeper than 512 levels".into()));
    assert_eq!(printed(&deep), fault("reply: nested deeper than 512 levels"));
    let lone = r#"{"decision":"block","reason":"\ud800"}"#;
    assert!(read(lone, false).unwrap_err().starts_with("reply: "), "{:?}", read(lone, false));
}
