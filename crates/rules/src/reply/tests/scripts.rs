//! What a script returns.

use super::*;

#[test]
fn a_return_value() {
    let rows: [(Value, Told); 24] = [
        (json!({"decision": "allow"}), Ok(deciding(Decision::Allow))),
        (json!({"decision": "block", "reason": "no"}), Ok(because(Decision::Block, "no"))),
        (json!({"decision": "ask"}), Ok(deciding(Decision::Ask))),
        (json!({"decision": "defer"}), Ok(deciding(Decision::Defer))),
        (
            json!({"decision": "allow", "reason": null, "updatedInput": null, "additionalContext": null}),
            Ok(deciding(Decision::Allow)),
        ),
        (
            json!({"decision": "allow", "updatedInput": {"toolInput": {"a": 1}}, "additionalContext": "c", "x": 1}),
            Ok(HandlerReply {
                context: Some("c".into()),
                updated_input: Some(object(json!({"toolInput": {"a": 1}}))),
                ..HandlerReply::default()
            }),
        ),
        (json!({"decision": "allow", "continue": false}), Ok(deciding(Decision::Block))),
        (json!({"decision": "allow", "continue": true}), Ok(deciding(Decision::Allow))),
        (json!(null), fault("script return: must be object with decision")),
        (json!("block"), fault("script return: must be object with decision")),
        (json!(["block"]), fault("script return: must be object with decision")),
        (json!(false), fault("script return: must be object with decision")),
        (json!(0), fault("script return: must be object with decision")),
        (json!({}), fault("script return: missing decision field")),
        (json!({"decision": null}), fault("script return: missing decision field")),
        (json!({"decision": 1}), fault("script return: decision must be string")),
        (json!({"decision": ["block"]}), fault("script return: decision must be string")),
        (json!({"decision": "x"}), fault(r#"script return: invalid decision "x""#)),
        (json!({"decision": "Block\u{1b}"}), fault(r#"script return: invalid decision "Block""#)),
        (json!({"decision": "allow", "reason": 1}), fault("script return: reason must be a string, got a number")),
        (json!({"decision": "block", "reason": {}}), fault("script return: reason must be a string, got an object")),
        (
            json!({"decision": "allow", "updatedInput": []}),
            fault("script return: updatedInput must be an object, got an array"),
        ),
        (
            json!({"decision": "allow", "additionalContext": true}),
            fault("script return: additionalContext must be a string, got a boolean"),
        ),
        (
            json!({"decision": "allow", "continue": "no"}),
            fault("script return: continue must be a boolean, got a string"),
        ),
    ];
    for (value, expected) in rows {
        assert_eq!(told(script(&value)), expected, "{value}");
    }
}
