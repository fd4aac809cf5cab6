//! A command's exit and output.

use super::*;

#[test]
fn exit_codes_and_signals() {
    let block = br#"{"decision":"block","reason":"said on stdout","additionalContext":"c","updatedInput":{"a":1}}"#;
    let rows: [(Exit, &[u8], &[u8], Told); 14] = [
        (Exit::Code(0), b"", b"noise", Ok(deciding(Decision::Allow))),
        (Exit::Code(2), b"", b"", Ok(deciding(Decision::Block))),
        (Exit::Code(2), b"", b"  no\n\trm \x07here\n", Ok(because(Decision::Block, "no rm here"))),
        (Exit::Code(2), block, b"on stderr", Ok(because(Decision::Block, "said on stdout"))),
        (Exit::Code(2), br#"{"decision":"allow"}"#, b"why", Ok(because(Decision::Block, "why"))),
        (Exit::Code(2), br#"{"decision":"ask","reason":"r"}"#, b"why", Ok(because(Decision::Block, "r"))),
        (Exit::Code(2), br#"{"decision":7,"reason":"r"}"#, b"why", Ok(because(Decision::Block, "why"))),
        (Exit::Code(2), br#"{"decision":"#, b"why", Ok(because(Decision::Block, "why"))),
        (Exit::Code(2), b"just text", b"why", Ok(because(Decision::Block, "why"))),
        (Exit::Code(1), block, b"boom\n", fault("hook: command exited 1: boom")),
        (Exit::Code(127), b"", b"sh: 1: nope: not found\n", fault("hook: command exited 127: sh: 1: nope: not found")),
        (Exit::Code(3), b"", b" \n", fault("hook: command exited 3: (nothing on stderr)")),
        (Exit::Signal(9), block, b"x", fault("hook: command exited 137: killed by signal 9: x")),
        (Exit::Signal(15), b"", b"", fault("hook: command exited 143: killed by signal 15: (nothing on stderr)")),
    ];
    for (exit, out, err, expected) in rows {
        assert_eq!(told(stdout(exit, out, err)), expected, "{exit:?} {}", out.escape_ascii());
    }
}

#[test]
fn the_whole_output_else_its_last_line() {
    let broken = |why: &str| fault(&format!("reply: it begins with `{{` but is not JSON: {why}"));
    let unsaid = || {
        let warning = "what it prints is not a JSON object, which allows; exit code 2 blocks, and so does {\"decision\":\"block\"}";
        warned(HandlerReply::default(), [warning])
    };
    let rows: [(&str, Told); 20] = [
        ("all is well", Ok(unsaid())),
        (" \n ", Ok(deciding(Decision::Allow))),
        // JSON that is not an object is text.
        ("[1,2]", Ok(unsaid())),
        ("\"block\"", Ok(unsaid())),
        ("null", Ok(unsaid())),
        ("{\n  \"decision\": \"block\"\n}\n", Ok(deciding(Decision::Block))),
        ("checking…\n50 %\n{\"decision\":\"block\"}\n\n  \n", Ok(deciding(Decision::Block))),
        ("checking\r\n{\"decision\":\"block\"}\r\n", Ok(deciding(Decision::Block))),
        ("checking\n  {\"decision\":\"block\"}  ", Ok(deciding(Decision::Block))),
        ("{\"decision\":\"block\"}\ndone", broken("trailing characters at line 2 column 1")),
        ("{\"level\":\"info\"}\n{\"decision\":\"block\"}", Ok(deciding(Decision::Block))),
        (
            "{\"level\":\"info\"}\n{\"decision\":\"nope\"}",
            fault(r#"reply: decision must be one of "allow", "block", "ask", "defer", got "nope""#),
        ),
        ("checking\n{\"decision\":", broken("expected value at line 1 column 1")),
        ("{\"decision\":\"block\"", broken("EOF while parsing an object at line 1 column 19")),
        ("{not json}", broken("key must be a string at line 1 column 2")),
        // Over several lines after other text.
        ("checking\n{\n  \"decision\": \"block\",\n  \"x\": {\n  }\n}", Ok(deciding(Decision::Block))),
        ("fn main()\n{\n}\n", Ok(deciding(Decision::Allow))),
        ("fn main()\n{\n  run();\n}\n", Ok(unsaid())),
        ("done\n5", Ok(unsaid())),
        ("{\n5", broken("key must be a string at line 2 column 1")),
    ];
    for (text, expected) in rows {
        assert_eq!(printed(text), expected, "{text}");
    }
}

#[test]
fn bytes_that_are_no_text_hide_nothing() {
    let said = stdout(Exit::Code(0), b"\xff\xfd log\n{\"decision\":\"block\",\"reason\":\"caf\xe9\"}", b"");
    assert_eq!(told(said), Ok(because(Decision::Block, "caf\u{fffd}")));
    assert_eq!(told(stdout(Exit::Code(2), b"", b"caf\xe9")), Ok(because(Decision::Block, "caf\u{fffd}")));
}
