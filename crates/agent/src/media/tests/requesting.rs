//! Media in requests to models.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_domain::json::Rendered;
use pintle_domain::message::{Message, Role};

use super::*;

fn with_media(message: Message, media: &[&str]) -> Rendered<Message> {
    Rendered::new(Message { media: media.iter().map(|entry| (*entry).to_owned()).collect(), ..message })
}

fn url(bytes: &[u8], content_type: &str) -> String {
    format!("data:{content_type};base64,{}", STANDARD.encode(bytes))
}

/// Text and media of each message, folders left out.
fn outline(bench: &Bench, messages: &[Rendered<Message>]) -> Vec<(String, Vec<String>)> {
    let folder = format!("{}/media/", bench.root.path().canonicalize().unwrap().display());
    let short = |text: &str| {
        let mut parts = text.split(&folder);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + &part[33..])
    };
    messages.iter().map(|m| (short(&m.get().content), m.get().media.clone())).collect()
}

#[test]
fn images_of_this_turn_go_along() {
    let bench = Bench::new();
    let turn = bench.turn("t", "s");
    let png = turn.add(NewMedia { file_name: "a.png", ..plain(PNG) }).unwrap();
    let txt = turn.add(NewMedia { file_name: "b.txt", ..plain(b"text") }).unwrap();
    let lie = turn.add(NewMedia { file_name: "c.png", content_type: Some("image/png"), ..plain(b"no image") }).unwrap();
    let foreign = bench.turn("t", "other").add(plain(PNG)).unwrap();
    let messages = [
        Rendered::new(Message::text(Role::System, "be good")),
        with_media(Message::tool("c0", "old"), &[&png]),
        with_media(Message::text(Role::User, "look"), &[&png]),
        with_media(Message::tool("c1", "new"), &[&txt, &png, "https://h/x.png", &lie]),
        with_media(Message::tool("c2", ""), &[&foreign, "media://x"]),
        with_media(Message::tool("c3", "direct"), &["data:image/png;base64,AA=="]),
    ];
    let sent = turn.in_request(&messages, 2, MAX_MEDIUM_BYTES);
    let none: Vec<String> = Vec::new();
    let expected = [
        ("be good".to_owned(), none.clone()),
        ("old\n[image:a.png]".into(), none.clone()),
        ("look\n[image:a.png]".into(), vec![url(PNG, "image/png")]),
        (
            "new\n[file:b.txt]\n[image:a.png]\n[image:c.png]".into(),
            vec![url(PNG, "image/png"), "https://h/x.png".into()],
        ),
        (format!("media unavailable: {foreign}: {UNKNOWN}\nmedia unavailable: media://x: {UNKNOWN}"), none),
        ("direct".into(), vec!["data:image/png;base64,AA==".into()]),
    ];
    assert_eq!(outline(&bench, &sent), expected);
    assert!(sent[0].is(&messages[0]) && sent[5].is(&messages[5]));
    assert_eq!((sent[3].get().role, sent[3].get().tool_call_id.as_str()), (Role::Tool, "c1"));
    // What stands there already is not said twice.
    let again = [with_media(Message::tool("c1", &*sent[3].get().content), &[&txt, &png])];
    assert_eq!(turn.in_request(&again, 0, MAX_MEDIUM_BYTES)[0].get().content, sent[3].get().content);
}

#[test]
fn an_image_above_the_agents_limit_is_text_only() {
    let bench = Bench::new();
    let turn = bench.turn("t", "s");
    let png = turn.add(NewMedia { file_name: "a.png", ..plain(PNG) }).unwrap();
    let messages = [with_media(Message::tool("c1", "x"), &[&png])];
    let media = |limit: u64| turn.in_request(&messages, 0, limit)[0].get().media.len();
    assert_eq!((media(PNG.len() as u64), media(PNG.len() as u64 - 1), media(0)), (1, 0, 0));
}

#[test]
fn the_latest_images_have_room_first() {
    let bench = Bench::new();
    let turn = bench.turn("t", "s");
    let half = MAX_MEDIUM_BYTES as usize * 3 / 4;
    let image = [PNG, &vec![0; half - PNG.len()]].concat();
    let reference = turn.add(NewMedia { file_name: "a.png", ..plain(&image) }).unwrap();
    let messages = ["c1", "c2", "c3"].map(|id| with_media(Message::tool(id, ""), &[&reference]));
    let sent = turn.in_request(&messages, 0, MAX_MEDIUM_BYTES);
    let media: Vec<_> = sent.iter().map(|message| message.get().media.len()).collect();
    assert_eq!(media, [0, 1, 1]);
    assert!(sent.iter().all(|message| message.get().content.starts_with("[image:/")));
}

#[test]
fn a_changed_file_is_named_and_not_sent() {
    let bench = Bench::new();
    let turn = bench.turn("t", "s");
    let png = turn.add(NewMedia { file_name: "a.png", ..plain(PNG) }).unwrap();
    fs::write(turn.resolve(&png).unwrap().path, [PNG, b"x"].concat()).unwrap();
    let sent = turn.in_request(&[with_media(Message::tool("c1", "x"), &[&png])], 0, MAX_MEDIUM_BYTES);
    let said = format!("x\nmedia unavailable: {png}: its file was changed after it was stored");
    assert_eq!(outline(&bench, &sent), [(said, Vec::new())]);
}

#[test]
fn not_a_bit_changes_on_the_way() {
    let bench = Bench::new();
    let (turn, dir) = (bench.turn("t", "s"), bench.hook());
    let bytes: Vec<u8> = PNG.iter().copied().chain((0..=255).cycle().take(100_003)).collect();
    let reference =
        turn.import(&MediaOrigin { dir: Some(&dir), hides: None, source: "h" }, &bench.file("a.png", &bytes)).unwrap();
    let file = turn.resolve(&reference).unwrap();
    let copy = fs::read(turn.deliver(&reference, &bench.root.path().join("out")).unwrap()).unwrap();
    let sent = turn.in_request(&[with_media(Message::tool("c1", ""), &[&reference])], 0, MAX_MEDIUM_BYTES);
    let back = turn.import(&MediaOrigin { dir: None, hides: None, source: "h" }, &sent[0].get().media[0]).unwrap();
    let hashes = [sha256(&bytes), file.sha256, sha256(&copy), turn.resolve(&back).unwrap().sha256];
    assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
}

#[test]
fn a_turn_is_found_again_behind_its_hooks() {
    let text = |role, text: &str| Rendered::new(Message::text(role, text));
    let before = [
        text(Role::System, "s"),
        text(Role::User, "old"),
        text(Role::User, "new"),
        text(Role::Assistant, "calls"),
        Rendered::new(Message::tool("c1", "x")),
    ];
    let check = |after: &[&Rendered<Message>], expected: usize| {
        let after: Vec<_> = after.iter().map(|message| (*message).clone()).collect();
        assert_eq!(first_of_turn(&before, 2, &after), expected);
    };
    let [system, old, new, calls, tool] = &before;
    let (added, edited) = (text(Role::System, "added"), text(Role::User, "edited"));
    check(&[system, old, new, calls, tool], 2);
    check(&[system, &added, &added, old, new, calls, tool], 4);
    check(&[new, calls, tool], 0);
    check(&[system, old, &edited, calls, tool], 3);
    let cut = Rendered::new(Message::tool("c1", "cut"));
    check(&[system, old, &edited, &cut], 3);
    check(&[system, old, &edited], 3);
    check(&[], 0);
    assert_eq!(first_of_turn(&before, 9, &before), 5);
}
