//! The same turns without a gateway: the loop of the agent in a process of its own, over the same store and model, with
//! nobody behind it but a clock.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pintle_agent::{Conversation, TextRequest, TurnHandle, UserOutput};
use pintle_host::config::{Env, LoadOptions, load};
use pintle_host::host::Host;
use pintle_host::ready_agent::ReadyAgent;
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::clock;
use crate::figures::{Heard, Times};
use crate::load::{ROUND, TURNS_A_SESSION};
use crate::model::PIECES;
use crate::server::folders;

/// The rule of the gateway's tenants.
const RULE: &str = "[[hook]]\nname = 'passes'\nevent = 'pre_tool_use'\nhandler_type = 'script'\nscope = 'tenant'\n\
                    [hook.config]\nsource = \"function handle() { return { decision: 'allow' } }\"\n";

/// Has `turns` people talk `rounds` times each, in a process of `own`.
pub(crate) async fn talked(program: &Path, own: &Path, (turns, rounds): (usize, usize), model: &str) -> Result<Heard> {
    let home = tempfile::Builder::new().prefix("pintle-soak-").tempdir()?;
    folders(home.path(), model, "")?;
    let rule = home.path().join("rule.toml");
    fs::write(&rule, RULE)?;
    let (config, data) = (home.path().join("pintle.toml"), home.path().join("data"));
    let mut adding = Command::new(program);
    adding.env_clear().env("HOME", home.path()).args(["hooks", "add"]).arg(&rule);
    let added = adding.arg("-c").arg(&config).arg("--home").arg(&data).output().await?;
    ensure!(added.status.success(), "no rule could be added: {}", String::from_utf8_lossy(&added.stderr));
    let mut command = Command::new(own);
    command.arg("alone").arg(home.path()).args([turns.to_string(), rounds.to_string()]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true).output().await?;
    ensure!(output.status.success(), "the loop without a gateway ended: {}", output.status);
    read(&String::from_utf8(output.stdout)?).context("the loop without a gateway says what it heard")
}

/// What `alone` printed: a line each, how many turns, then the moments in nanoseconds.
fn read(text: &str) -> Option<Heard> {
    let mut lines = text.lines();
    let turns = lines.next()?.parse().ok()?;
    let mut times = || {
        let mut times = Times::default();
        for word in lines.next()?.split(' ').filter(|word| !word.is_empty()) {
            times.push(Duration::from_nanos(word.parse().ok()?));
        }
        Some(times)
    };
    let (starts, pieces) = (times()?, times()?);
    Some(Heard { turns, failed: Vec::new(), starts, pieces })
}

/// Is that process: works the turns and prints what was heard. Blocks.
///
/// # Errors
/// There is no such home, or a turn has no whole answer.
pub fn alone(home: &Path, turns: u32, rounds: usize) -> Result<()> {
    let heard = crate::threads::runtime()?.block_on(work(home, turns, rounds))?;
    let mut text = format!("{}\n", heard.turns);
    for times in [&heard.starts, &heard.pieces] {
        for time in times.all() {
            write!(text, "{} ", time.as_nanos())?;
        }
        text.push('\n');
    }
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

async fn work(home: &Path, turns: u32, rounds: usize) -> Result<Heard> {
    let vars = [("HOME".to_owned(), home.as_os_str().to_owned())].into();
    let env = Env { vars, cwd: home.join("here") };
    let (config, data) = (home.join("pintle.toml"), home.join("data"));
    let options = LoadOptions { config: Some(&config), home: Some(&data), ..LoadOptions::default() };
    let loaded = load(&env, &options)?;
    let host = Arc::new(Host::open(env, loaded, Vec::new())?);
    let agent = Arc::new(host.runner(None, None)?);
    let mut tasks = JoinSet::new();
    for number in 0..turns {
        let (host, agent) = (host.clone(), agent.clone());
        tasks.spawn(async move {
            tokio::time::sleep(ROUND * number / turns).await;
            person(&host, &agent, number, rounds).await
        });
    }
    let mut heard = Heard::default();
    while let Some(one) = tasks.join_next().await {
        heard.extend(one??);
    }
    host.close().await;
    Ok(heard)
}

/// Somebody who talks as the gateway's clients do.
async fn person(host: &Host, agent: &ReadyAgent, number: u32, rounds: usize) -> Result<Heard> {
    let mut heard = Heard::default();
    for round in 0..rounds {
        let at = clock::now();
        let key = format!("agent:main:ws:direct:user{number}-{}", round / TURNS_A_SESSION);
        let sessions = host.sessions.clone();
        let listener = Arc::new(Listener::default());
        let opened = tokio::task::spawn_blocking(move || Conversation::open(sessions, key.as_str())).await?;
        let mut conversation = opened?;
        let request = TextRequest::from("list, and tell");
        agent.turn(&mut conversation, request, listener.clone(), &TurnHandle::default()).await;
        tokio::task::spawn_blocking(move || drop(conversation)).await?;
        let noted = std::mem::take(&mut *listener.0.lock().unwrap_or_else(PoisonError::into_inner));
        ensure!(noted.pieces.count() == PIECES, "{} pieces of {PIECES}", noted.pieces.count());
        heard.turns += 1;
        heard.starts.push(noted.began.context("the turn began")?.saturating_sub(at));
        heard.pieces.extend(noted.pieces);
        tokio::time::sleep((at + ROUND).saturating_sub(clock::now())).await;
    }
    Ok(heard)
}

/// Looks at the clock.
#[derive(Default)]
struct Listener(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    began: Option<Duration>,
    pieces: Times,
}

impl UserOutput for Listener {
    fn streams(&self) -> bool {
        true
    }

    fn delta(&self, text: &str) {
        let now = clock::now();
        if let Some(written) = clock::read(text) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).pieces.push(now.saturating_sub(written));
        }
    }

    fn for_user(&self, _text: &str) {}

    fn started(&self, _text: &str, _sig: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).began = Some(clock::now());
    }

    /// As for a client: the session has the message by then.
    fn acknowledges(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_heard_is_read_as_it_was_printed() {
        let heard = read("2\n1 2 \n3 4 5 \n").unwrap();
        assert_eq!((heard.turns, heard.starts.count(), heard.pieces.count()), (2, 2, 3));
        assert_eq!(heard.pieces.at(1000), Duration::from_nanos(5));
        for bad in ["", "2\n", "2\n1\n", "x\n1\n2\n", "2\nx\n2\n"] {
            assert!(read(bad).is_none(), "{bad:?}");
        }
    }
}
