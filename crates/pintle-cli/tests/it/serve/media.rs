//! Files that clients hand over.

use serde_json::{Value, json};

use super::http_client::{Answer, CHAT, MESSAGES, content, get, post, send};
use super::server::{Server, TOKEN, WITH_TOKEN};
use crate::run::scripted;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01";
const PNG_BASE64: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";

/// A model that says whether it was shown a picture.
const SEES: &str = r#"{"when": {"contains": "[image:"}, "text": "I see it.", "repeat": true},
                      {"when": {"anywhere": "[image:"}, "text": "I saw it.", "repeat": true},
                      {"text": "Nothing to see.", "repeat": true}"#;

fn upload(server: &Server, headers: &str, bytes: &[u8]) -> Answer {
    send(server, "POST /v1/media", headers, bytes)
}

#[test]
fn a_file_comes_back_as_it_was_and_runs_nowhere() {
    let server = Server::start(scripted(SEES, ""));
    let headers = "Content-Type: image/png\nContent-Disposition: attachment; filename=\"a b<.png\"\n";
    let kept = upload(&server, headers, PNG);
    let media = kept.json();
    assert_eq!(
        (kept.status, &media["content_type"], &media["size_bytes"]),
        (201, &json!("image/png"), &json!(PNG.len()))
    );
    let back = get(&server, &format!("/v1/media/{}", media["id"].as_str().unwrap()), "");
    assert_eq!((back.status, back.bytes.as_slice()), (200, PNG));
    for (name, value) in [
        ("content-type", "image/png"),
        ("content-disposition", "attachment; filename=\"a b_.png\""),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "sandbox"),
    ] {
        assert_eq!(back.header(name), Some(value), "{}", back.head);
    }
    assert_eq!(get(&server, "/v1/media/00000000000000000000000000000000", "").status, 404);
}

#[test]
fn what_is_not_what_it_says_is_not_taken() {
    let server = Server::start(scripted(SEES, "[gateway]\nmedia_quota_mb = 1\n"));
    for (kind, bytes, status, code) in [
        ("image/jpeg", PNG, 400, "invalid_request"),
        ("image/svg+xml", b"<svg/>", 415, "unsupported_media_type"),
        ("text/html", b"<p>", 415, "unsupported_media_type"),
        ("text/plain", b"<!doctype html><script>", 400, "invalid_request"),
    ] {
        let refused = upload(&server, &format!("Content-Type: {kind}\n"), bytes).refused();
        assert_eq!((refused.0, refused.1.as_str()), (status, code), "{kind}: {}", refused.2);
    }
    assert_eq!(upload(&server, "", PNG).status, 415);
    let large = [PNG, &vec![0; 1 << 20]].concat();
    let refused = upload(&server, "Content-Type: image/png\n", &large).refused();
    assert_eq!((refused.0, refused.1.as_str()), (507, "media_quota"), "{}", refused.2);
}

#[test]
fn pictures_in_both_dialects_reach_the_agent() {
    let server = Server::start(scripted(SEES, ""));
    let url = format!("data:image/png;base64,{PNG_BASE64}");
    let picture = json!({ "type": "image_url", "image_url": { "url": url } });
    let looks = |first: Value, then: &str| {
        json!({ "model": "main", "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "look" }, first] },
            { "role": "assistant", "content": "I see it." },
            { "role": "user", "content": then },
        ] })
    };
    let one = json!({ "model": "main", "messages": [
        { "role": "user", "content": [{ "type": "text", "text": "look" }, picture] },
    ] });
    assert_eq!(content(&post(&server, CHAT, "", &one)), "I see it.");
    assert_eq!(content(&post(&server, CHAT, "", &looks(picture, "and?"))), "I saw it.");
    let source = json!({ "type": "base64", "media_type": "image/png", "data": PNG_BASE64 });
    let body = json!({ "model": "main", "max_tokens": 9, "messages": [
        { "role": "user", "content": [{ "type": "image", "source": source }, { "type": "text", "text": "look" }] },
    ] });
    assert_eq!(post(&server, MESSAGES, "", &body).json()["content"][0]["text"], "I see it.");
    let lies = json!({ "type": "image_url", "image_url": { "url": format!("data:image/jpeg;base64,{PNG_BASE64}") } });
    let body = json!({ "model": "main", "messages": [{ "role": "user", "content": [lies] }] });
    assert_eq!(post(&server, CHAT, "", &body).status, 400);
    let far = json!({ "type": "image_url", "image_url": { "url": "https://example.org/x.png" } });
    let body = json!({ "model": "main", "messages": [{ "role": "user", "content": [far] }] });
    assert!(post(&server, CHAT, "", &body).refused().2.contains("nothing is fetched"), "of others");
}

#[test]
fn an_upload_is_its_users_until_a_session_takes_it_and_goes_with_that() {
    let server = Server::start(scripted(SEES, WITH_TOKEN));
    let as_user = |user: &str| format!("Authorization: Bearer {TOKEN}\nX-Pintle-User: {user}\n");
    let kept = upload(&server, &format!("{}Content-Type: image/png\n", as_user("anna")), PNG).json();
    let id = kept["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/media/{id}");
    assert_eq!(get(&server, &path, &as_user("ben")).status, 404);
    let key = "agent:main:ws:direct:trip";
    let (mut anna, mut ben) = (server.admin("anna"), server.admin("ben"));
    let with = json!({ "sessionKey": key, "message": "look", "media": [id] });
    assert_eq!(ben.refused("chat.send", with.clone()).0, "NOT_FOUND");
    assert_eq!(anna.done("chat.send", with)["content"], "I see it.");
    // A later turn of the session names it again; another session does not get it.
    let again = json!({ "sessionKey": key, "message": "once more", "media": [kept["reference"]] });
    assert_eq!(anna.done("chat.send", again)["content"], "I see it.");
    let elsewhere = json!({ "sessionKey": "agent:main:ws:direct:other", "message": "look", "media": [id] });
    assert_eq!(anna.refused("chat.send", elsewhere).0, "NOT_FOUND");
    assert_eq!(get(&server, &path, &as_user("anna")).status, 200);
    anna.done("sessions.delete", json!({ "key": key }));
    assert_eq!(get(&server, &path, &as_user("anna")).status, 404);
    // A conversation that the client keeps brings it each time.
    let kept = upload(&server, &format!("{}Content-Type: image/png\n", as_user("anna")), PNG).json();
    let part = json!({ "type": "image_url", "image_url": { "url": kept["reference"] } });
    let body = json!({ "model": "main", "messages": [{ "role": "user", "content": [part] }] });
    for _ in 0..2 {
        assert_eq!(content(&post(&server, CHAT, &as_user("anna"), &body)), "I see it.");
    }
    assert_eq!(post(&server, CHAT, &as_user("ben"), &body).status, 404);
}
