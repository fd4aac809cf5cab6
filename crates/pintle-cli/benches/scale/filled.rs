//! A home of the program whose store was used for long.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;

use anyhow::{Context as _, ensure};
use pintle_domain::id::{CallId, EventId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::record::EventRecord;
use pintle_host::config::{Env, LoadOptions, load};
use pintle_host::host_rules::RuleEnvironment;
use pintle_store::Store;
use pintle_testkit::conformance::audit::cleared;
use tempfile::TempDir;

use crate::conversations::append;

const CONFIG: &str = r#"
[agents.main]
model = "scripted/m"
workspace = "workspace"

[providers.scripted]
kind = "scripted"
script = "replies.json"
"#;
const REPLIES: &str = r#"{ "replies": [{ "text": "Nobody asked." }] }"#;
/// Calls of one turn.
const TURN_CALLS: usize = 20;
/// Turns of one session.
const SESSION_TURNS: usize = 5;
/// Events that are kept at once.
const BATCH: usize = 1000;

/// A home, and its store as the program opens it.
pub(crate) struct Filled {
    pub(crate) home: TempDir,
    pub(crate) store: Arc<dyn Store>,
    /// The decisions about calls that are kept: each is one event, and one entry of the audit chain.
    pub(crate) calls: usize,
    /// The sessions that are kept, of one turn each.
    pub(crate) sessions: usize,
}

impl Filled {
    /// One with nothing in it.
    pub(crate) fn empty() -> anyhow::Result<Self> {
        let home = tempfile::tempdir()?;
        fs::create_dir(home.path().join("workspace"))?;
        fs::write(home.path().join("replies.json"), REPLIES)?;
        let file = home.path().join("pintle.toml");
        fs::write(&file, CONFIG)?;
        let vars = vec![("HOME".to_owned(), home.path().as_os_str().to_owned())];
        let env = Env { vars: vars.into_iter().collect(), cwd: home.path().to_owned() };
        let data = home.path().join("data");
        let options = LoadOptions { config: Some(&file), home: Some(&data), ..LoadOptions::default() };
        let loaded = load(&env, &options).map_err(said)?;
        ensure!(loaded.diagnostics.is_empty(), "the configuration: {:?}", loaded.diagnostics);
        let store =
            RuleEnvironment::of(&loaded.config, &env).map_err(said)?.open_store(&loaded.config).map_err(said)?;
        Ok(Self { home, store, calls: 0, sessions: 0 })
    }

    /// The file of its store.
    pub(crate) fn file(&self) -> PathBuf {
        self.home.path().join("data/pintle.db")
    }

    /// Keeps decisions until there are so many.
    pub(crate) fn grow(&mut self, calls: usize) -> anyhow::Result<()> {
        let decision = cleared().pop().context("a call that may run leaves a decision")?;
        let (say, hear) = channel();
        let mut turn = TurnId::fresh();
        while self.calls < calls {
            let number = BATCH.min(calls - self.calls);
            let events: Vec<EventRecord> = (self.calls..self.calls + number)
                .map(|at| {
                    if at % TURN_CALLS == 0 {
                        turn = TurnId::fresh();
                    }
                    let session = format!("cli:{}", at / TURN_CALLS / SESSION_TURNS);
                    let who = Identity::top("main", &session, turn.clone());
                    let call = CallId::from(format!("call_{at:08}").as_str());
                    let at = jiff::Timestamp::now();
                    EventRecord { event_id: EventId::fresh(), at, who: who.for_call(&call), ..decision.clone() }
                })
                .collect();
            let say = say.clone();
            self.store.keep(events, Box::new(move |how| drop(say.send(how))));
            hear.recv().context("the store forgot to say")??;
            self.calls += number;
        }
        Ok(())
    }

    /// Keeps sessions until there are so many.
    pub(crate) fn open_sessions(&mut self, sessions: usize) -> anyhow::Result<()> {
        while self.sessions < sessions {
            append(&*self.store, self.sessions, 0)?;
            self.sessions += 1;
        }
        Ok(())
    }
}

fn said(error: pintle_host::HostError) -> anyhow::Error {
    anyhow::Error::msg(error.message)
}
