//! A server that does nothing but pass the pieces of a model on as frames: the least that anybody could pay.

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::get;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};

/// Serves at a free port until the process ends; tells where by `listens`.
pub(crate) async fn serve(model: String, listens: impl FnOnce(&str)) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    listens(&listener.local_addr()?.to_string());
    let app = Router::new().route(
        "/ws",
        get(move |upgrade: WebSocketUpgrade| async move {
            upgrade.on_upgrade(move |socket| async move {
                // A client that goes is not a fault.
                drop(converse(socket, &model).await);
            })
        }),
    );
    Ok(axum::serve(listener, app).await?)
}

async fn converse(mut socket: WebSocket, model: &str) -> Result<()> {
    let mut seq = 0;
    while let Some(Message::Text(text)) = socket.recv().await.transpose()? {
        let request: Value = serde_json::from_str(&text)?;
        let mut content = String::new();
        if request["method"] == "chat.send" {
            tell(&mut socket, &mut seq, "run.started", &json!({ "message": request["params"]["message"] })).await?;
            let prompt = json!({ "role": "user", "content": request["params"]["message"] });
            let mut calls = Pieces::ask(model, &json!([prompt])).await?;
            while calls.next().await?.is_some() {}
            let messages = json!([prompt, { "role": "tool", "content": "src" }]);
            let mut pieces = Pieces::ask(model, &messages).await?;
            while let Some(piece) = pieces.next().await? {
                content.push_str(&piece);
                tell(&mut socket, &mut seq, "chunk", &json!({ "content": piece })).await?;
            }
            tell(&mut socket, &mut seq, "run.completed", &json!({ "content": content })).await?;
        }
        let answer = json!({ "type": "res", "id": request["id"], "ok": true, "payload": { "content": content } });
        socket.send(Message::Text(answer.to_string().into())).await?;
    }
    Ok(())
}

async fn tell(socket: &mut WebSocket, seq: &mut u64, kind: &str, payload: &Value) -> Result<()> {
    *seq += 1;
    let id = "0193a5b0-7000-7000-8000-00000000beef";
    let event = json!({
        "type": kind, "agentId": "main", "runId": id, "sessionKey": "agent:main:ws:direct:somebody-1",
        "payload": payload, "userId": "somebody", "channel": "ws", "chatId": "somebody-1"
    });
    let frame = json!({ "type": "event", "event": "agent", "payload": event, "seq": seq });
    Ok(socket.send(Message::Text(frame.to_string().into())).await?)
}

/// The pieces of an answer, as they come.
struct Pieces(Lines<BufReader<TcpStream>>);

impl Pieces {
    async fn ask(model: &str, messages: &Value) -> Result<Self> {
        let body = json!({ "model": "m", "stream": true, "messages": messages }).to_string();
        let mut stream = TcpStream::connect(model).await?;
        stream.set_nodelay(true)?;
        let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                    Content-Type: application/json\r\n";
        stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
        Ok(Self(BufReader::new(stream).lines()))
    }

    async fn next(&mut self) -> Result<Option<String>> {
        while let Some(line) = self.0.next_line().await? {
            // Each event is a chunk of its own, so its line is whole.
            let Some(data) = line.strip_prefix("data: ").filter(|data| *data != "[DONE]") else { continue };
            let event: Value = serde_json::from_str(data).context("the model writes JSON")?;
            if let Some(text) = event["choices"][0]["delta"]["content"].as_str() {
                return Ok(Some(text.to_owned()));
            }
        }
        Ok(None)
    }
}
