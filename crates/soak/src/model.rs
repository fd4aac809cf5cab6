//! A model that calls one tool and then writes an answer piece by piece, each with the moment at which it was written.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use crate::clock;

/// Pieces of an answer. Source: what is promised of a soaked server.
pub(crate) const PIECES: usize = 50;

/// Between two of them: twenty a second.
const EVERY: Duration = Duration::from_millis(50);

/// Starts it; where it listens.
pub(crate) async fn start(tasks: &TaskTracker) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let app = Router::new().route("/v1/chat/completions", post(answer));
    // It ends with the runtime.
    tasks.spawn(async move { drop(axum::serve(listener, app).await) });
    Ok(address)
}

async fn answer(request: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&request).unwrap_or_default();
    let last = request["messages"].as_array().and_then(|all| all.last()).map(|it| it["role"].clone());
    let body = if last == Some(json!("tool")) {
        let pieces = stream::unfold(0, |number| async move {
            if number == PIECES {
                return None;
            }
            tokio::time::sleep(EVERY).await;
            Some((event(&json!({ "content": clock::stamp() }), &Value::Null), number + 1))
        });
        let end = stream::once(async { format!("{}data: [DONE]\n\n", event(&json!({}), &json!("stop"))) });
        Body::from_stream(pieces.chain(end).map(|text| Ok::<_, Infallible>(Bytes::from(text))))
    } else {
        let call = json!({
            "index": 0, "id": "call_1", "type": "function",
            "function": { "name": "list_dir", "arguments": "{\"path\":\".\"}" }
        });
        let calls = event(&json!({ "role": "assistant", "tool_calls": [call] }), &Value::Null);
        Body::from(format!("{calls}{}data: [DONE]\n\n", event(&json!({}), &json!("tool_calls"))))
    };
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn event(delta: &Value, finish: &Value) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    let chunk =
        json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice] });
    format!("data: {chunk}\n\n")
}
