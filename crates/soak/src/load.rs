//! Clients that do nothing, and clients that talk.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::clock;
use crate::figures::Heard;
use crate::model::PIECES;
use crate::server::TOKEN;

/// Turns that one tenant may have at once. Source: the page of the gateway.
const TURNS_A_TENANT: usize = 50;

/// Connections that one key may have. Source: the page of the gateway.
const CONNECTIONS_A_KEY: usize = 200;

/// Clients that connect at once: more would measure how a server is stormed.
const AT_ONCE: usize = 16;

/// Between two messages of a client, at least: nobody may send more than twenty a minute.
pub(crate) const ROUND: Duration = Duration::from_millis(3300);

/// Turns of one conversation.
pub(crate) const TURNS_A_SESSION: usize = 10;

/// What clients say when they connect: tenants with members and a rule each, and keys for those who do nothing.
pub(crate) struct People {
    talking: Vec<Value>,
    idle: Vec<Value>,
}

impl People {
    /// Makes everybody who `turns` and `idle` need.
    pub(crate) async fn make(address: &str, turns: usize, idle: usize) -> Result<Self> {
        let owner = |tenant: &str| json!({ "token": TOKEN, "user_id": "system", "tenant_hint": tenant });
        let mut here = Client::connect(address, json!({ "token": TOKEN, "user_id": "system" })).await?;
        let mut all = Self { talking: Vec::new(), idle: Vec::new() };
        for first in (0..turns).step_by(TURNS_A_TENANT) {
            let tenant = format!("soak{first}");
            here.done("tenants.create", json!({ "slug": tenant, "name": tenant })).await?;
            let mut there = Client::connect(address, owner(&tenant)).await?;
            let rule = json!({
                "event": "pre_tool_use", "handler_type": "script", "scope": "tenant", "name": "passes",
                "config": { "source": "function handle() { return { decision: 'allow' } }" }
            });
            there.done("hooks.create", rule).await?;
            for number in first..turns.min(first + TURNS_A_TENANT) {
                let user = format!("user{number}");
                there.done("members.add", json!({ "userId": user, "role": "operator" })).await?;
                all.talking.push(json!({ "token": TOKEN, "user_id": user, "tenant_hint": tenant }));
            }
        }
        for first in (0..idle).step_by(CONNECTIONS_A_KEY) {
            let key = json!({ "name": "idle", "owner": format!("idle{first}"), "scopes": ["operator.write"] });
            let made = here.done("api_keys.create", key).await?;
            let count = CONNECTIONS_A_KEY.min(idle - first);
            all.idle.extend(std::iter::repeat_n(json!({ "token": made["key"] }), count));
        }
        Ok(all)
    }

    /// Those who talk, for a server that lets everybody in.
    pub(crate) fn anybody(turns: usize) -> Self {
        let talking = (0..turns).map(|number| json!({ "user_id": format!("user{number}") })).collect();
        Self { talking, idle: Vec::new() }
    }

    /// Connects those who do nothing: each only reads, and is counted in `open` for as long as it is let.
    pub(crate) async fn sit(
        &self,
        address: &str,
        (tasks, open): (&mut JoinSet<()>, &'static AtomicUsize),
    ) -> Result<()> {
        let connecting = stream::iter(&self.idle).map(|params| Client::connect(address, params.clone()));
        let mut connected = connecting.buffer_unordered(AT_ONCE);
        while let Some(mut client) = connected.try_next().await? {
            open.fetch_add(1, Ordering::Relaxed);
            tasks.spawn(async move {
                while let Ok(Some(_)) = client.text().await {}
                open.fetch_sub(1, Ordering::Relaxed);
            });
        }
        Ok(())
    }

    /// Lets everybody talk for `rounds` at least, and until `over`.
    pub(crate) async fn talk(&self, address: &str, talk: Talk) -> Result<Heard> {
        let connecting = stream::iter(&self.talking).map(|params| Client::connect(address, params.clone()));
        let clients: Vec<Client> = connecting.buffered(AT_ONCE).try_collect().await?;
        let mut tasks = JoinSet::new();
        let count = u32::try_from(clients.len())?;
        for (number, client) in (0_u32..).zip(clients) {
            let talk = talk.clone();
            tasks.spawn(async move {
                // They do not all speak in the same moment.
                tokio::time::sleep(ROUND * number / count).await;
                talk.rounds(client, number).await
            });
        }
        let mut heard = Heard::default();
        while let Some(one) = tasks.join_next().await {
            heard.extend(one?);
        }
        Ok(heard)
    }
}

/// How long is talked.
#[derive(Clone)]
pub(crate) struct Talk {
    pub(crate) rounds: usize,
    pub(crate) length: Duration,
    /// Whether the server stands still, or did a moment ago: what is heard then is not measured.
    pub(crate) stands: watch::Receiver<bool>,
}

impl Talk {
    async fn rounds(&self, mut client: Client, user: u32) -> Heard {
        let mut heard = Heard::default();
        let began = clock::now();
        for round in 0.. {
            if round >= self.rounds && clock::now() - began >= self.length {
                break;
            }
            let at = clock::now();
            let session = format!("agent:main:ws:direct:user{user}-{}", round / TURNS_A_SESSION);
            match self.turn(&mut client, &session, &mut heard).await {
                Ok(()) => heard.turns += 1,
                Err(error) => {
                    heard.failed.push(format!("{error:#}"));
                    break;
                }
            }
            tokio::time::sleep((at + ROUND).saturating_sub(clock::now())).await;
        }
        heard
    }

    async fn turn(&self, client: &mut Client, session: &str, heard: &mut Heard) -> Result<()> {
        let sent = clock::now();
        let params = json!({ "sessionKey": session, "message": "list, and tell", "stream": true });
        let stood = *self.stands.borrow();
        let id = client.ask("chat.send", params).await?;
        let mut pieces = 0;
        loop {
            let text = client.next().await?;
            let now = clock::now();
            let measured = !stood && !*self.stands.borrow();
            if text.contains("\"type\":\"chunk\"") {
                pieces += text.matches('@').count();
                let written = clock::read(&text).context("a piece carries its moment")?;
                if measured {
                    heard.pieces.push(now.saturating_sub(written));
                }
            } else if text.contains("\"run.started\"") && measured {
                heard.starts.push(now.saturating_sub(sent));
            } else if text.contains("\"type\":\"res\"") {
                let answer: Value = serde_json::from_str(&text)?;
                ensure!(answer["id"] == id, "another answer: {text}");
                ensure!(answer["ok"] == true, "{text}");
                let whole = answer["payload"]["content"].as_str().map(|it| it.matches('@').count());
                ensure!(whole == Some(PIECES) && pieces == PIECES, "{pieces} pieces, and {whole:?} in the answer");
                return Ok(());
            } else if text.contains("\"run.failed\"") {
                bail!("{text}");
            }
        }
    }
}
