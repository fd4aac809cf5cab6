//! Any bytes at all: the readers answer, and none of them allows what a hook blocked.

use pintle_domain::llm::LlmReply;
use pintle_domain::message::CallPart;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

fn cases(cases: u32) -> ProptestConfig {
    let (rng_seed, failure_persistence) = (RngSeed::Fixed(0), None);
    ProptestConfig { cases, rng_seed, failure_persistence, ..ProptestConfig::default() }
}

/// A member as text: mostly known ones, of right and wrong types.
fn member() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("decision"),
        Just("Decision"),
        Just("continue"),
        Just("CONTINUE"),
        Just("reason"),
        Just("additionalContext"),
        Just("updatedInput"),
        Just("decisio\\u006e"),
        Just("injection_detected"),
        Just("other"),
    ];
    let value = prop_oneof![
        Just("\"allow\"".to_owned()),
        Just("\"ask\"".to_owned()),
        Just("true".to_owned()),
        Just("null".to_owned()),
        Just("{}".to_owned()),
        Just("[[{\"decision\":\"allow\"}]]".to_owned()),
        "-?[1-9][0-9]{0,30}(e[0-9]{1,9})?",
        "\"[a-z{}:,\u{0080}-\u{00a0}\u{10000}]{0,8}\"",
    ];
    (name, value).prop_map(|(name, value)| format!("\"{name}\":{value}"))
}

/// An object with a refusal somewhere in it.
fn refusal() -> impl Strategy<Value = String> {
    let refusal = prop_oneof![
        Just("\"decision\":\"block\""),
        Just("\"continue\":false"),
        Just("\"DECISION\":\"block\""),
        Just("\"Continue\":false"),
    ];
    (prop::collection::vec(member(), 0..5), refusal, any::<prop::sample::Index>()).prop_map(
        |(mut members, refusal, at)| {
            members.insert(at.index(members.len() + 1), refusal.to_owned());
            format!("{{{}}}", members.join(","))
        },
    )
}

fn evaluated(arguments: &str) -> Result<HandlerReply, ReplyFault> {
    let mut answer: LlmReply = serde_json::from_str("{}").unwrap();
    answer.tool_calls.push(CallPart::new("1", DECIDE, arguments));
    decide(&answer, InjectionEffect::Ignore)
}

fn blocks_or_faults(answer: &Result<HandlerReply, ReplyFault>) -> bool {
    answer.as_ref().is_ok_and(|said| said.decision == Decision::Block) || answer.is_err()
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn a_refusal_never_allows(reply in refusal(), noise in "[a-z \n]{0,20}", strict: bool) {
        prop_assert!(blocks_or_faults(&body(reply.as_bytes(), strict).map(|body| body.said)), "{}", reply);
        let printed = format!("{noise}\n{reply}\n");
        for exit in [Exit::Code(0), Exit::Code(2), Exit::Code(1), Exit::Signal(9)] {
            prop_assert!(blocks_or_faults(&stdout(exit, printed.as_bytes(), b"")), "{:?} {}", exit, printed);
        }
        // A script's value has each member once, the last one; an evaluator knows no `continue`.
        if let Ok(value) = json::parse(&reply) {
            let refuses = value["decision"] == "block" || value["continue"] == false;
            prop_assert!(!refuses || blocks_or_faults(&script(&value)), "{}", reply);
        }
        let decides = reply.contains("\"decision\":\"block\"");
        prop_assert!(!decides || blocks_or_faults(&evaluated(&reply)), "{}", reply);
    }

    #[test]
    fn exit_code_two_never_allows(out in prop::collection::vec(any::<u8>(), 0..200), err in "\\PC{0,40}") {
        let said = stdout(Exit::Code(2), &out, err.as_bytes());
        prop_assert_eq!(said.map(|said| said.decision), Ok(Decision::Block));
    }

    #[test]
    fn any_bytes_are_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..100), reply in refusal(), at: prop::sample::Index) {
        // Bytes alone, and bytes in place of a reply's end.
        let begun = [reply.as_bytes().split_at(at.index(reply.len())).0, &bytes].concat();
        for text in [&bytes, &begun] {
            let read = body(text, true);
            prop_assert!(read.is_err() || read.is_ok_and(|read| !read.non_json));
            for exit in [Exit::Code(0), Exit::Code(-1), Exit::Signal(0)] {
                if let Err(fault) = stdout(exit, text, text) {
                    prop_assert!(!fault.to_string().chars().any(char::is_control), "{}", fault);
                }
            }
            if let Err(fault) = evaluated(&String::from_utf8_lossy(text)) {
                prop_assert!(fault.to_string().starts_with("evaluator_"), "{}", fault);
            }
        }
    }
}
