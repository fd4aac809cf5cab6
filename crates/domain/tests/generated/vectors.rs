//! What a front end keeps: the vectors that every reducer must agree with.

use pintle_domain::history::{FrontEnd, FrontEndEvent, HistoryMessage};
use pintle_domain::json::{Value, json};
use pintle_domain::skill::Voice;

use crate::check;

/// Random sequences beside those that were written by hand: enough that each pair of neighbouring events is among them.
const RANDOM: u64 = 120;

/// The longest random sequence.
const MAX_EVENTS: usize = 40;

fn text(event: &Value, key: &str) -> String {
    event[key].as_str().unwrap_or_default().to_owned()
}

fn given(event: &Value, key: &str) -> Option<String> {
    event[key].as_str().map(str::to_owned)
}

fn hook(event: &Value) -> FrontEndEvent {
    let role = if event["role"] == "user" { Voice::User } else { Voice::System };
    let (skill, sig) = (given(event, "skill"), given(event, "sig"));
    FrontEndEvent::Hook { name: text(event, "name"), role, content: text(event, "content"), skill, sig }
}

/// What comes of `events`: what was played, and the history.
fn play(start: &Value, events: &[Value]) -> (Vec<Option<String>>, Vec<HistoryMessage>) {
    let mut front = FrontEnd::with(pintle_domain::json::from_value(start.clone()).unwrap());
    let mut played = Vec::new();
    for event in events {
        match event["type"].as_str().unwrap() {
            "asked" => front.asked(text(event, "text"), given(event, "sig")),
            "text" => front.hear(FrontEndEvent::Text(text(event, "content"))),
            "hook" => front.hear(hook(event)),
            "play" => played.push(front.play_next()),
            "flush" => front.flush(),
            "stop" => front.stop(),
            "clear" => front.clear(),
            "take_back" => {
                let place = event["place"].as_u64().unwrap();
                front.take_back(usize::try_from(place).unwrap(), event["its_message"] == true);
            }
            other => panic!("unknown event {other}"),
        }
    }
    (played, front.history().to_vec())
}

/// One vector, on one line.
fn vector(name: &str, start: &Value, events: &[Value]) -> String {
    let (played, history) = play(start, events);
    json!({"name": name, "start": start, "events": events, "played": played, "history": history}).to_string()
}

fn tone(sig: &str) -> Value {
    json!({"type": "hook", "name": "tone", "role": "system", "content": "be kind", "skill": "alpha",
           "timing": "after_user_input", "id": "#1", "sig": sig, "sessionKey": "s", "runId": "r", "seq": 7})
}

/// Sequences that were written by hand: those of the reference.
fn worked() -> Vec<String> {
    let say = |content: &str| json!({"type": "text", "content": content});
    let just = |word: &str| json!({"type": word});
    let ask = |text: &str, sig: &str| json!({"type": "asked", "text": text, "sig": sig});
    let (play, flush) = (|| just("play"), || just("flush"));
    let plain_hook = json!({"type": "hook", "name": "check", "role": "user", "content": "check"});
    let kept = json!([
        {"role": "user", "content": "one", "_sig": "s1"},
        {"role": "user", "content": "check", "_hook": "check"},
        {"role": "assistant", "content": "1", "tool_calls":
            [{"id": "c1", "type": "function", "function": {"name": "exec", "arguments": "{}"}}]},
        {"role": "tool", "content": "done", "tool_call_id": "c1"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": "2"},
    ]);
    let back = |place: usize, its: bool| json!({"type": "take_back", "place": place, "its_message": its});
    let none = json!([]);
    let order = [ask("hi", "s"), tone("t"), say("hel"), say("lo"), plain_hook.clone(), say(""), say("you")];
    let order = [&order[..], &[play(), play(), play(), play(), play(), play(), play(), play(), flush()]].concat();
    let stopped = [ask("hi", ""), say("a"), tone(""), say("b"), plain_hook, play(), play(), just("stop"), play()];
    let late = [ask("hi", "s"), say("a"), say("b"), play(), ask("more", "t"), play(), flush()];
    let cleared = [say("a"), play(), just("clear"), play(), flush()];
    let rounds = [say("a"), play(), flush(), say("b"), play(), flush(), flush()];
    let mut vectors = vec![
        vector("a hook keeps its place between texts", &none, &order),
        vector("what was not played before a stop is lost", &none, &stopped),
        vector("what was played is history before the next request", &none, &late),
        vector("a conversation that was cleared is gone", &kept, &cleared),
        vector("each round is a message of its own", &none, &rounds),
        vector(
            "other alphabets",
            &none,
            &[ask("日本 \u{2028}", "s"), say("é\u{301}"), say("😀"), play(), play(), flush()],
        ),
    ];
    for place in 0..7 {
        vectors.push(vector("a request that is made again", &kept, &[back(place, false)]));
        vectors.push(vector("a request that is deleted", &kept, &[back(place, true)]));
    }
    vectors
}

/// A random event. A history of its own grows while a sequence is played, so places beyond it are drawn, too.
fn event(dice: &mut fastrand::Rng) -> Value {
    let word = |dice: &mut fastrand::Rng| ["", "a", "b ", "ç", "\n"][dice.usize(0..5)];
    match dice.u8(0..20) {
        0 | 1 => json!({"type": "asked", "text": word(dice), "sig": word(dice)}),
        2 => json!({"type": "asked", "text": word(dice)}),
        3..=6 => json!({"type": "text", "content": word(dice)}),
        7 => tone(word(dice)),
        8 => json!({"type": "hook", "name": "check", "role": "user", "content": word(dice), "skill": word(dice)}),
        9..=14 => json!({"type": "play"}),
        15 | 16 => json!({"type": "flush"}),
        17 => json!({"type": "stop"}),
        18 if dice.u8(0..4) == 0 => json!({"type": "clear"}),
        _ => json!({"type": "take_back", "place": dice.usize(0..8), "its_message": dice.bool()}),
    }
}

fn vectors() -> String {
    let random = (0..RANDOM).map(|seed| {
        let mut dice = fastrand::Rng::with_seed(seed);
        let events: Vec<Value> = (0..dice.usize(1..=MAX_EVENTS)).map(|_| event(&mut dice)).collect();
        vector(&format!("random {seed}"), &json!([]), &events)
    });
    let all: Vec<String> = worked().into_iter().chain(random).collect();
    format!("{{\"vectors\": [\n{}\n]}}\n", all.join(",\n"))
}

#[test]
fn the_vectors_are_what_the_reducer_makes_of_them() {
    check("clients/typescript/test/vectors.json", &vectors());
}
