//! What a hook sends back unchanged stays the host's own.

use super::*;

/// A message with data that no hook sees, told apart by `mark`.
fn private(content: &str, mark: u8) -> Rendered<Message> {
    let private = ProviderData::of(vec![json!(mark)]);
    Rendered::new(Message { private, ..Message::text(Role::User, content) })
}

fn with_extra(extra: &str, mark: u8) -> Rendered<Message> {
    let mut call = CallPart::new("c", "t", "{}");
    call.extra_content = Some(serde_json::from_str(extra).unwrap());
    let private = ProviderData::of(vec![json!(mark)]);
    Rendered::new(Message { private, tool_calls: vec![call], ..Message::text(Role::Assistant, "") })
}

/// Which originals came back, by index; `None` for a new message.
fn taken(originals: &[Rendered<Message>], returned: &[String]) -> Vec<Option<usize>> {
    let mut asked = request();
    asked.request.messages = originals.to_vec();
    let result = format!(r#"{{"request":{{"messages":[{}]}}}}"#, returned.join(" , "));
    let Verdict::Modify(LlmPatch { messages: Some(messages), .. }) = heard(&asked, &result, false).unwrap().verdict
    else {
        panic!()
    };
    messages.iter().map(|message| originals.iter().position(|original| original.is(message))).collect()
}

#[test]
fn an_equal_message_is_the_hosts_own() {
    let text = |message: &Rendered<Message>| String::from_utf8(message.json().to_vec()).unwrap();
    let originals = [private("é\u{2028}", 0), private("same", 1), private("same", 2), private("last", 3)];
    let all: Vec<_> = originals.iter().map(text).collect();
    assert_eq!(taken(&originals, &all), [Some(0), Some(1), Some(2), Some(3)]);
    let python: Vec<_> = [r#"\u00e9\u2028"#, "same", "same", "last"]
        .map(|content| format!(r#"{{"content": "{content}", "role": "user"}}"#))
        .into();
    assert_eq!(taken(&originals, &python), [Some(0), Some(1), Some(2), Some(3)]);
    // The first untaken one in list order, whatever its place in the reply.
    let moved = [&all[3], &python[2], &all[1], &all[1], &all[0], &all[0]].map(Clone::clone);
    assert_eq!(taken(&originals, &moved), [Some(3), Some(1), Some(2), None, Some(0), None]);
    // One more member, or another case of a name, is another value.
    let other = [r#"{"role":"user","content":"last","media":[]}"#, r#"{"Role":"user","content":"last"}"#];
    assert_eq!(taken(&originals, &other.map(str::to_owned)), [None, None]);
}

#[test]
fn numbers_are_equal_if_they_denote_the_same_double() {
    let originals = [
        with_extra(r#"{"a":1.0,"b":[12345678901234567890]}"#, 0),
        with_extra(r#"{"a":1e400}"#, 1),
        with_extra(r#"{"a":-0}"#, 2),
    ];
    let spelled = |extra: &str| {
        format!(
            r#"{{"tool_calls":[{{"extra_content":{extra},"function":{{"arguments":"{{}}","name":"t"}},"type":"function","id":"c"}}],"content":"","role":"assistant"}}"#
        )
    };
    #[track_caller]
    fn check(originals: &[Rendered<Message>], returned: String, expected: Option<usize>) {
        assert_eq!(taken(originals, &[returned]), [expected]);
    }
    check(&originals, spelled(r#"{"b":[12345678901234567168.0],"a":1}"#), Some(0));
    check(&originals, spelled(r#"{"b":[12345678901234567890],"a":2}"#), None);
    check(&originals, spelled(r#"{"a":1e400}"#), Some(1));
    check(&originals, spelled(r#"{"a":1e401}"#), None);
    check(&originals, spelled(r#"{"a":0}"#), Some(2));
    check(&originals, spelled(r#"{"a":"0"}"#), None);
}

#[test]
fn an_equal_tool_is_the_hosts_own() {
    let mut asked = request();
    let digits: Value = serde_json::from_str(r#"{"maximum":1.00,"type":"object"}"#).unwrap();
    asked.request.tools.push(ToolDef::new("digits", "d", digits).into());
    let result = r#"{"request":{"tools":[
        {"function":{"parameters":{"type":"object","maximum":1},"name":"digits","description":"d"},"type":"function"},
        {"type":"function","function":{"name":"echo","description":"changed","parameters":{"type":"object"}}}]}}"#;
    let Verdict::Modify(LlmPatch { tools: Some(tools), .. }) = heard(&asked, result, true).unwrap().verdict else {
        panic!()
    };
    assert!(tools[0].is(&asked.request.tools[1]));
    assert_eq!(tools[1].get().function.description, "changed");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn what_is_sent_and_echoed_comes_back_as_it_was(
        contents in prop::collection::vec("(a|b|\\PC{0,5})", 0..6),
        order in prop::collection::vec(0_usize..6, 0..8),
    ) {
        let originals: Vec<_> = contents.iter().map(|content| private(content, 0)).collect();
        let returned: Vec<usize> = order.into_iter().filter(|at| *at < originals.len()).collect();
        let texts: Vec<_> = returned.iter().map(|at| format!("{:#}", json!(originals[*at].get()))).collect();
        let mut free: Vec<bool> = vec![true; originals.len()];
        let expected: Vec<Option<usize>> = returned
            .iter()
            .map(|at| {
                let found = (0..originals.len()).find(|i| free[*i] && contents[*i] == contents[*at])?;
                free[found] = false;
                Some(found)
            })
            .collect();
        prop_assert_eq!(taken(&originals, &texts), expected);
    }
}
