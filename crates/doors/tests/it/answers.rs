//! What a client reads, by what the model wanted and what was ruled.

use pintle_doors::answer::DenyMode;
use proptest::prelude::*;

use crate::played::{Played, Read, Wire, play, read, whole};

type Calls<'a> = &'a [(&'a str, &'a str, &'a str)];

/// Text, calls, whether it ends, and how often the model was asked.
type Heard<'a> = (&'a str, &'a [(&'a str, &'a str)], bool, u64);

const ARGUMENTS: &str = "{\"n\":1.50}";

fn rounds(wire: Wire, rounds: &[(&str, Calls<'_>)]) -> Vec<String> {
    let written = |(place, (text, calls)): (usize, &(&str, Calls<'_>))| wire.written(&format!("r{place}"), text, calls);
    rounds.iter().enumerate().map(written).collect()
}

/// What stands between the texts of two rounds.
fn between(wire: Wire) -> &'static str {
    match wire.vendor() {
        pintle_doors::Wire::OpenAi => "\n\n",
        pintle_doors::Wire::Anthropic | pintle_doors::Wire::Gemini | pintle_doors::Wire::Responses => "",
    }
}

/// How an answer ends: with calls, or without.
fn stops(wire: Wire) -> (&'static str, &'static str) {
    match wire.vendor() {
        pintle_doors::Wire::Anthropic => ("tool_use", "end_turn"),
        pintle_doors::Wire::OpenAi => ("tool_calls", "stop"),
        pintle_doors::Wire::Responses | pintle_doors::Wire::Gemini => ("", ""),
    }
}

fn check(mode: DenyMode, all: &[(&str, Calls<'_>)], expected: Heard<'_>) {
    for wire in Wire::ALL {
        let played = play(wire, mode, &rounds(wire, all), whole);
        let found = read(wire, &played.sent);
        let (text, calls, is_over, count) = expected;
        let text = text.replace('|', between(wire));
        let calls: Vec<_> = calls
            .iter()
            .map(|(id, arguments)| {
                let (id, name) = id.split_once(' ').unwrap();
                (id.to_owned(), name.to_owned(), (*arguments).to_owned())
            })
            .collect();
        let stop = if is_over { stops(wire).1 } else { stops(wire).0 };
        let expected = Read { id: "r0".into(), text, calls, stop: stop.into(), tokens: (10 * count, 5 * count) };
        assert_eq!(found, expected, "{wire:?}");
        assert_eq!(played.went_on.len() as u64, count - 1, "{wire:?}");
        let is_kept = played.exchange.is_some();
        let hides = count > 1
            || (mode == DenyMode::Answer
                && !expected.calls.is_empty()
                && all.last().unwrap().1.len() > expected.calls.len());
        assert_eq!(is_kept, hides, "{wire:?}");
    }
}

#[test]
fn a_client_reads_what_may_go_on() {
    use DenyMode::{Answer, Text};
    let refused = |name: &str| format!("[The call of `{name}` was refused and did not run: not here]");
    let no: (&str, &str, &str) = ("a", "no1", ARGUMENTS);
    let yes = ("b", "yes", ARGUMENTS);
    let change = ("c", "change", ARGUMENTS);
    let changed = "{\"n\":1.50,\"safe\":true}";
    // Text only, and calls that may run.
    check(Answer, &[("Hello", &[])], ("Hello", &[], true, 1));
    check(Answer, &[("Hello", &[yes])], ("Hello", &[("b yes", ARGUMENTS)], false, 1));
    check(Answer, &[("", &[change, yes])], ("", &[("c change", changed), ("b yes", ARGUMENTS)], false, 1));
    // Refused beside others.
    check(Answer, &[("Hi", &[no, yes])], ("Hi", &[("b yes", ARGUMENTS)], false, 1));
    check(Answer, &[("", &[yes, no])], ("", &[("b yes", ARGUMENTS)], false, 1));
    check(Text, &[("", &[yes, no])], (&refused("no1"), &[("b yes", ARGUMENTS)], false, 1));
    // All refused: the door answers.
    check(Answer, &[("Hi", &[no]), ("Bye", &[])], ("Hi|Bye", &[], true, 2));
    check(Answer, &[("", &[no]), ("", &[yes])], ("", &[("b yes", ARGUMENTS)], false, 2));
    check(Answer, &[("1", &[no]), ("2", &[no]), ("3", &[change])], ("1|2|3", &[("c change", changed)], false, 3));
    check(Answer, &[("1", &[no]), ("2", &[no, yes])], ("1|2", &[("b yes", ARGUMENTS)], false, 2));
    // Not for ever.
    let end = format!("1|2|3|4|{}", refused("no1"));
    check(Answer, &[("1", &[no]), ("2", &[no]), ("3", &[no]), ("4", &[no])], (&end, &[], true, 4));
    // A sentence in its place.
    check(Text, &[("", &[no])], (&refused("no1"), &[], true, 1));
    let stopped = "Hi|[The call of `stop` was refused and did not run: enough]";
    check(Answer, &[("Hi", &[("s", "stop", ARGUMENTS)])], (stopped, &[], true, 1));
}

#[test]
fn arguments_that_cannot_be_read_are_refused_and_told() {
    for wire in Wire::ALL {
        // These have arguments that are no text.
        if matches!(wire, Wire::AnthropicWhole | Wire::GeminiStream | Wire::GeminiWhole) {
            continue;
        }
        for written in ["{\"n\":1", "[1]", "{\"n\":1,\"n\":2}"] {
            let played = play(wire, DenyMode::Answer, &[wire.written("r0", "Hi", &[("a", "yes", written)])], whole);
            assert_eq!(played.unread, ["yes"], "{wire:?} {written}");
            let found = read(wire, &played.sent);
            assert!(found.calls.is_empty() && found.text.contains("was refused"), "{wire:?} {found:?}");
        }
    }
}

#[test]
fn what_nobody_refused_leaves_in_the_same_bytes() {
    for wire in Wire::ALL {
        for calls in [&[][..], &[("a", "yes", ARGUMENTS)], &[("a", "yes", "{}"), ("b", "also", ARGUMENTS)]] {
            let written = wire.written("r0", "Some text", calls);
            let played = play(wire, DenyMode::Answer, std::slice::from_ref(&written), whole);
            assert_eq!(played, Played { sent: written, ..Played::default() }, "{wire:?}");
        }
    }
}

#[test]
fn signed_thoughts_are_not_merged() {
    let wire = Wire::AnthropicStream;
    let written = wire.written("r0", "", &[("a", "no", "{}")]);
    let thought = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":7,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"x\"}}\n\n";
    let (start, rest) = written.split_at(written.find("event: content_block_start").unwrap());
    let played = play(wire, DenyMode::Answer, &[format!("{start}{thought}{rest}")], whole);
    assert!(played.went_on.is_empty() && played.exchange.is_none());
    assert!(read(wire, &played.sent).text.contains("was refused"), "{}", played.sent);
}

#[test]
fn a_call_that_is_cut_off_goes_no_further() {
    for wire in Wire::ALL {
        let written = wire.written("r0", "Hi", &[("a", "yes", ARGUMENTS)]);
        for end in 0..written.len() {
            if !written.is_char_boundary(end) {
                continue;
            }
            let played = play(wire, DenyMode::Answer, &[written[..end].to_owned()], whole);
            if played.broken.is_some() {
                // Where each call has an end of its own, one that is whole was ruled on before the rest was missing.
                let is_whole =
                    wire == Wire::AnthropicStream && written[..end].contains("content_block_stop\",\"index\":1}");
                assert!(is_whole || !played.sent.contains("yes"), "{wire:?} {end}: {}", played.sent);
            }
        }
    }
}

#[test]
fn what_the_door_cannot_read_goes_no_further() {
    for (wire, answer) in [
        (Wire::OpenAiStream, "data: {\"choices\":[{\"index\":0,\"delta\":{\"function_call\":{\"name\":\"x\"}}}]}\n\n"),
        (Wire::OpenAiStream, "data: {\"choices\":[],\"choices\":[]}\n\n"),
        (Wire::OpenAiWhole, "{\"choices\":[{\"message\":{\"function_call\":{\"name\":\"x\"}}}]}"),
        (
            Wire::AnthropicStream,
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"new_tool_use\"}}\n\n",
        ),
        (Wire::AnthropicWhole, "{\"content\":[{\"type\":\"new_tool_use\"}]}"),
        (Wire::AnthropicWhole, "{\"content\":[{\"type\":\"tool_use_v2\"}]}"),
        (Wire::AnthropicWhole, "<html>"),
        (Wire::AnthropicStream, "data: <html>\n\n"),
    ] {
        let played = play(wire, DenyMode::Answer, &[answer.to_owned()], whole);
        assert!(played.broken.is_some(), "{wire:?} {answer}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn bytes_may_arrive_in_any_pieces(
        cuts in prop::collection::vec(0..3000_usize, 0..6),
        names in prop::collection::vec(prop::sample::select(vec!["no", "yes", "change", "stop"]), 0..4),
        text in "[a-z\u{e9}\u{1f600}]{0,6}",
        is_text in any::<bool>(),
    ) {
        let mode = if is_text { DenyMode::Text } else { DenyMode::Answer };
        let ids: Vec<String> = (0..names.len()).map(|n| format!("c{n}")).collect();
        let calls: Vec<_> = names.iter().zip(&ids).map(|(name, id)| (id.as_str(), *name, ARGUMENTS)).collect();
        let text: String = text.chars().flat_map(|c| [c, c]).collect();
        let text = if text.is_char_boundary(text.len() / 2) { text } else { String::new() };
        for wire in Wire::ALL {
            let all = rounds(wire, &[(&text, &calls), (&text, &calls), (&text, &calls), (&text, &calls)]);
            let cut = |bytes: &[u8]| {
                let mut at: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
                at.extend([0, bytes.len()]);
                at.sort_unstable();
                at.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect()
            };
            let single = |bytes: &[u8]| bytes.iter().map(|byte| vec![*byte]).collect();
            let expected = play(wire, mode, &all, whole);
            prop_assert_eq!(&play(wire, mode, &all, cut), &expected);
            prop_assert_eq!(&play(wire, mode, &all, single), &expected);
            // Nothing that was refused can be read.
            let found = read(wire, &expected.sent);
            prop_assert!(found.calls.iter().all(|(_, name, _)| name == "yes" || name == "change"));
        }
    }
}
