//! Asks the gateway for the rules of the team, again and again: one process of a home does, and all of them see what
//! came.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pintle_rules::team::{SignedStatement, TeamStatement};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::asking::{GatewayClient, Said};
use super::kept::{Contact, Pin};
use super::standing::{TeamStanding, explained, known};
use super::{FIRST_WORD, TeamKeeper};

/// How long the gateway is asked to wait for other rules: a connection that died unnoticed is noticed this much later.
const WAIT: Duration = Duration::from_secs(20);

/// The least time from one question to the next, whatever the gateway does.
const LEAST: Duration = Duration::from_millis(500);

/// The longest pause after a failure: what changed meanwhile counts within five seconds of the gateway's return.
const MOST: Duration = Duration::from_secs(4);

/// How often it is looked whether the process that asks is gone.
const TAKE_OVER: Duration = Duration::from_secs(2);

/// How much pauses differ from machine to machine, in milliseconds: not all come back at once.
const JITTER_MS: u128 = 250;

impl TeamKeeper {
    /// Asks and tells for all processes of this home until it is cancelled, as soon as no other one does.
    pub(crate) async fn follow(self: Arc<Self>, cancel: CancellationToken) {
        let Ok(from) = self.from.clone() else { return };
        let client = GatewayClient::new(from, self.env.clone());
        tokio::select! {
            () = cancel.cancelled() => {}
            () = self.follow_with(&client) => {}
        }
    }

    async fn follow_with(self: &Arc<Self>, client: &GatewayClient) {
        let mut told = false;
        let _turn = loop {
            match self.folder.turn() {
                Ok(Some(turn)) => break turn,
                // The other one asks, and its answers are seen.
                Ok(None) => {
                    self.heard.send_replace(true);
                }
                Err(error) if !told => {
                    told = true;
                    tracing::warn!("the rules of the team cannot be asked for: {error}");
                    self.heard.send_replace(true);
                }
                Err(_) => {}
            }
            sleep(TAKE_OVER).await;
        };
        tokio::join!(self.fetch(client), self.tell(client));
    }

    /// Waits until the gateway has said something, or is known to be away; not for long.
    pub(crate) async fn first_word(&self) {
        let mut heard = self.heard.subscribe();
        // Who takes longer is away for now.
        tokio::time::timeout(FIRST_WORD, heard.wait_for(|heard| *heard)).await.ok();
    }

    async fn fetch(self: &Arc<Self>, client: &GatewayClient) {
        let mut failures = 0_u32;
        loop {
            let began = Instant::now();
            let said = self.ask(client).await;
            let is_good = matches!(said, Some(Said::Good(..)));
            if let Some(said) = said {
                let keeper = self.clone();
                let from = client.from().clone();
                let kept = tokio::task::spawn_blocking(move || {
                    let kept = keeper.keep(&from, said);
                    keeper.look(false);
                    kept
                });
                if let Ok(Err(error)) = kept.await {
                    tracing::warn!("what the gateway of the team said cannot be kept: {error}");
                }
                self.heard.send_replace(true);
            }
            failures = if is_good { 0 } else { failures.saturating_add(1) };
            let pause = (LEAST * 2_u32.saturating_pow(failures.min(10))).min(MOST);
            let pause = if failures == 0 { LEAST } else { pause };
            let jitter = u64::try_from(Uuid::new_v4().as_u128() % JITTER_MS).unwrap_or_default();
            sleep_until(began + pause + Duration::from_millis(jitter)).await;
        }
    }

    /// One question; nothing where the files changed under it, so that it is put anew.
    async fn ask(self: &Arc<Self>, client: &GatewayClient) -> Option<Said> {
        let standing = self.standing_of_files().await?;
        let have = standing.digest().map(str::to_owned);
        let pin = self.folder.pin().ok().flatten();
        let known = known(client.from(), pin.as_ref());
        let asked = client.ask(&known, have.as_deref(), WAIT);
        tokio::pin!(asked);
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            // Whoever damaged what is kept waits for no other rules.
            if self.standing_of_files().await?.digest() != have.as_deref() {
                return None;
            }
            tokio::select! {
                said = &mut asked => return Some(said),
                () = changed => {}
            }
        }
    }

    async fn standing_of_files(&self) -> Option<TeamStanding> {
        let (from, folder) = (self.from.clone(), self.folder.clone());
        tokio::task::spawn_blocking(move || TeamStanding::of(&from, &folder)).await.ok()
    }

    /// Keeps what was said. Blocks.
    fn keep(&self, from: &crate::config::RulesFrom, said: Said) -> std::io::Result<()> {
        // One that is damaged is written anew.
        let before = self.folder.contact().unwrap_or_default();
        let before = if before.is_of(from.url.as_str()) { before } else { Contact::default() };
        let now = Timestamp::now();
        let contact = match said {
            Said::Good(signed, statement) => {
                self.keep_statement(from, &signed, &statement)?;
                Contact { confirmed: Some(now), ..Contact::default() }
            }
            Said::Bad(fault) => {
                let why = explained(&fault, self.folder.path());
                if before.refused.as_ref().is_none_or(|(_, before)| *before != why) {
                    tracing::error!("security.team_rules_refused: {} sent what is not believed: {why}", from.url);
                }
                let since = before.refused.as_ref().map_or(now, |(since, _)| *since);
                Contact { refused: Some((since, why)), away: None, turned_away: None, ..before }
            }
            Said::TurnedAway(why) => {
                if before.turned_away.as_ref().is_none_or(|(_, before)| *before != why) {
                    tracing::error!("the gateway of the team gives this machine no rules: {why}");
                }
                let since = before.turned_away.as_ref().map_or(now, |(since, _)| *since);
                Contact { turned_away: Some((since, why)), away: None, ..before }
            }
            Said::Away(why) => {
                if before.away.is_none() {
                    tracing::warn!("the rules of the team cannot be asked for: {why}");
                }
                let since = before.away.as_ref().map_or(now, |(since, _)| *since);
                Contact { away: Some((since, why)), ..before }
            }
        };
        self.folder.keep_contact(&Contact { from: Some(from.url.to_string()), ..contact })
    }

    fn keep_statement(
        &self,
        from: &crate::config::RulesFrom,
        signed: &SignedStatement,
        statement: &TeamStatement,
    ) -> std::io::Result<()> {
        if statement.rules.is_none() {
            return Ok(());
        }
        // A pin that is damaged trusted nothing that is known.
        let pin = self.folder.pin().ok().flatten().filter(|pin| pin.url == from.url.as_str());
        let now = Timestamp::now();
        // Rules before their pin: an end between the two leaves rules that are newer than what is known.
        self.folder.keep_rules(&signed.to_text())?;
        self.folder.keep_pin(&Pin {
            url: from.url.to_string(),
            signer: signed.signer.clone(),
            tenant: statement.tenant.clone(),
            version: statement.version,
            since: pin.as_ref().map_or(now, |pin| pin.since),
            machine: pin.map_or_else(|| Uuid::new_v4().to_string(), |pin| pin.machine),
        })
    }
}
