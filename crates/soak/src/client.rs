//! A client of the WebSocket.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

/// How long a client waits for a frame that has to come.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Client {
    socket: WebSocketStream<TcpStream>,
    last: u64,
}

impl Client {
    /// A client who is let in as `params` of `connect` say.
    pub(crate) async fn connect(address: &str, params: Value) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (socket, _) = client_async(format!("ws://{address}/ws"), stream).await?;
        let mut client = Self { socket, last: 0 };
        client.done("connect", params).await?;
        Ok(client)
    }

    /// Asks for something; the id of the request.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Result<String> {
        self.last += 1;
        let id = self.last.to_string();
        let request = json!({ "type": "req", "id": id, "method": method, "params": params });
        self.socket.send(Message::text(request.to_string())).await?;
        Ok(id)
    }

    /// The next text that comes; nothing where the server closed.
    pub(crate) async fn text(&mut self) -> Result<Option<String>> {
        loop {
            let Some(message) = self.socket.next().await else { return Ok(None) };
            match message? {
                Message::Text(text) => return Ok(Some(text.to_string())),
                Message::Ping(_) | Message::Pong(_) => {}
                Message::Close(_) => return Ok(None),
                Message::Binary(_) | Message::Frame(_) => bail!("the server sent what is not text"),
            }
        }
    }

    /// The next text, which has to come.
    pub(crate) async fn next(&mut self) -> Result<String> {
        timeout(PATIENCE, self.text()).await.context("nothing came for a minute")??.context("the server closed")
    }

    /// The payload of something that is done.
    pub(crate) async fn done(&mut self, method: &str, params: Value) -> Result<Value> {
        let id = self.ask(method, params).await?;
        loop {
            let frame: Value = serde_json::from_str(&self.next().await?)?;
            if frame["type"] == "res" && frame["id"] == id {
                ensure!(frame["ok"] == true, "{method}: {frame}");
                return Ok(frame["payload"].clone());
            }
        }
    }
}
