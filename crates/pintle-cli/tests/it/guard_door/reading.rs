//! The model door: what only reads, and the ids of what it answers itself.

use super::models::guarded;

#[test]
fn what_only_reads_goes_to_the_vendor_and_back() {
    let guarded = guarded("");
    for (line, body, at) in [
        ("GET /door/openai/v1/models/m:1", "", "/models/m:1"),
        ("GET /door/anthropic/v1/models?limit=1", "", "/v1/models?limit=1"),
        ("GET /door/anthropic/v1/models/m", "", "/v1/models/m"),
        ("GET /door/gemini/v1beta/models/m-1.5", "", "/v1beta/models/m-1.5"),
        ("GET /door/gemini/v1/models/m-1.5", "", "/v1/models/m-1.5"),
        ("POST /door/openai/v1/responses/input_tokens", r#"{"model":"m","input":"hi"}"#, "/responses/input_tokens"),
    ] {
        let (status, _, answer) = guarded.send(line, "", body);
        assert_eq!(status, 200, "{line} {answer}");
        assert_eq!(guarded.vendor.came().pop().unwrap().path, at);
    }
    let before = guarded.vendor.came().len();
    for id in ["..", "%2e%2e", "a%2fb"] {
        for vendor in ["openai/v1", "gemini/v1beta"] {
            let (status, _, answer) = guarded.send(&format!("GET /door/{vendor}/models/{id}"), "", "");
            assert_eq!(status, 404, "{vendor} {id} {answer}");
        }
    }
    let (status, head, _) = guarded.send("GET /door/gemini/v1beta/models/m:countTokens", "", "");
    assert!(status == 405 && head.contains("\r\nallow: post"), "{head}");
    assert_eq!(guarded.vendor.came().len(), before);
}

#[test]
fn what_the_door_refuses_has_an_id() {
    let guarded = guarded("");
    let (status, head, _) = guarded.send("GET /door/anthropic/v1/x", "", "");
    assert_eq!(status, 404);
    assert!(head.contains("\r\nrequest-id: ") && head.contains("\r\nx-request-id: "), "{head}");
    let (status, head, _) = guarded.send("GET /door/openai/v1/x", "", "");
    assert!(status == 404 && head.contains("\r\nx-request-id: ") && !head.contains("\r\nrequest-id: "), "{head}");
}
