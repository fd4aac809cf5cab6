//! `pintle secrets rotate`: everything that is encrypted, taken to the key that encrypts now.

use clap::{Args, Subcommand};
use pintle_domain::rule::Rule;
use pintle_rules::record;
use pintle_store::Store;
use pintle_store::keyring::{ENV_KEYS, ENV_OLD_KEYS, KEY_FILE, Keyring, SealedPlace};
use pintle_store::rotation::SealedColumn;
use serde::Serialize;

use super::audit::failed;
use super::{Global, terminal};
use crate::clean::clean;
use crate::error::{CliError, FAILED};
use crate::operator;
use pintle_host::TABLE;
use pintle_host::host::load;
use pintle_host::host_rules::{RuleEnvironment, edition, keyring};

/// How many values one transaction rewrites: some milliseconds in which nobody else writes to a file.
const BATCH: usize = 500;

/// How often a hook is looked at that somebody changes at the same time: each look takes a moment, so more is a storm.
const TRIES: usize = 5;

/// Most values that do not open and are named; the others are counted.
const MAX_NAMED: usize = 50;

/// What can be done with secrets.
#[derive(Debug, Subcommand)]
pub enum SecretsCommand {
    /// Re-encrypt what is not under the current key yet; safe to interrupt and run again
    Rotate(RotateArgs),
}

/// Flags of `secrets rotate`.
#[derive(Debug, Args)]
pub struct RotateArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, command: SecretsCommand) -> Result<u8, CliError> {
    let SecretsCommand::Rotate(args) = command;
    operator::require()?;
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let keyring = keyring(&loaded.config, &env, edition(&loaded.config, &env)?)?;
    let Some(kid) = keyring.kid() else {
        return Err(CliError::failed("encryption key not configured")
            .hint(format!("set {} to the new key, such as to what `openssl rand -hex 32` prints", ENV_KEYS[0])));
    };
    let store = RuleEnvironment::of(&loaded.config, &env)?.open_store(&loaded.config)?;
    let mut rotation = Rotation { kid: kid.to_owned(), ..Rotation::default() };
    rotation.hooks(&*store, &keyring)?;
    rotation.details = rotation.column(&*store, &keyring, SealedColumn::Details)?;
    rotation.outputs = rotation.column(&*store, &keyring, SealedColumn::Outputs)?;
    rotation.jobs = rotation.column(&*store, &keyring, SealedColumn::Jobs)?;
    store.reseal_identities(&keyring).map_err(failed)?;
    terminal::say(&if args.json { rotation.json()? } else { rotation.plain() })?;
    if rotation.failed == 0 {
        if keyring.keeps_file() {
            let file = loaded.config.home.join(KEY_FILE);
            terminal::note(&format!(
                "{} still holds beside the new key, and without the variable it is the key; once every server, hook \
                 and command of this home has the variable, and no approval of before waits, remove it",
                clean(&file.display().to_string())
            ));
        }
        return Ok(0);
    }
    rotation.unopened.iter().for_each(|line| terminal::note(&clean(line)));
    let more = rotation.failed - rotation.unopened.len();
    if more > 0 {
        terminal::note(&format!("and {more} more"));
    }
    terminal::note(&format!("they stay as they are; with their key in {ENV_OLD_KEYS}, run this again"));
    Ok(FAILED)
}

/// What became of values of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Count {
    /// How many there are.
    seen: usize,
    /// How many of them were encrypted anew.
    rewritten: usize,
}

/// What a rotation came to.
#[derive(Debug, Default, Serialize)]
struct Rotation {
    /// The id of the key that encrypts now.
    kid: String,
    /// Secrets in the settings of hooks.
    hooks: Count,
    /// Details of faults.
    details: Count,
    /// What the programs of hooks wrote.
    outputs: Count,
    /// What is still to be sent to hooks.
    jobs: Count,
    /// How many values do not open.
    failed: usize,
    /// The first of these, and why.
    unopened: Vec<String>,
}

impl Rotation {
    fn hooks(&mut self, store: &dyn Store, keyring: &Keyring) -> Result<(), CliError> {
        for hook in store.rules().map_err(failed)?.hooks {
            self.hook(store, keyring, hook)?;
        }
        Ok(())
    }

    /// One hook. Whoever changes it meanwhile may do so, and it is looked at once more.
    fn hook(&mut self, store: &dyn Store, keyring: &Keyring, hook: Rule) -> Result<(), CliError> {
        let mut now = Some(hook);
        for _ in 0..TRIES {
            let Some(hook) = now else { return Ok(()) };
            let anew = anew(&hook, keyring);
            let fresh = anew.hook.config != hook.config;
            if !fresh || store.rotate_config(&hook, &anew.hook.config).map_err(failed)? {
                self.hooks.seen += anew.seen;
                self.hooks.rewritten += anew.rewritten;
                anew.unopened.into_iter().for_each(|line| self.cannot(line));
                return Ok(());
            }
            now = store.hook(&hook.id).map_err(failed)?;
        }
        let label = now.map(|hook| hook.label().to_owned()).unwrap_or_default();
        Err(CliError::failed(format!("hook \"{label}\" is changed all the time; run this again")))
    }

    fn column(&mut self, store: &dyn Store, keyring: &Keyring, what: SealedColumn) -> Result<Count, CliError> {
        let (mut count, mut after) = (Count::default(), None);
        loop {
            let batch = store.rotate(what, keyring, after.as_deref(), BATCH).map_err(failed)?;
            count.seen += batch.seen;
            count.rewritten += batch.rewritten;
            let name = match what {
                SealedColumn::Details => "the detail of execution",
                SealedColumn::Outputs => "the output of execution",
                SealedColumn::Jobs => "the payload of job",
            };
            batch.failed.into_iter().for_each(|lost| self.cannot(format!("{name} {}: {}", lost.id, lost.why)));
            after = batch.next;
            if after.is_none() {
                return Ok(count);
            }
        }
    }

    fn cannot(&mut self, line: String) {
        self.failed += 1;
        if self.unopened.len() < MAX_NAMED {
            self.unopened.push(line);
        }
    }

    fn json(&self) -> Result<String, CliError> {
        let text = serde_json::to_string_pretty(self).map_err(|error| CliError::failed(error.to_string()))?;
        Ok(format!("{text}\n"))
    }

    fn plain(&self) -> String {
        let row = |what: &str, count: Count| format!("{what:<20} {} of {} rewritten\n", count.rewritten, count.seen);
        let lost =
            if self.failed == 0 { String::new() } else { format!("{:<20} {}\n", "cannot be opened", self.failed) };
        format!(
            "{}{}{}{}{lost}key {} encrypts everything else\n",
            row("secrets of hooks", self.hooks),
            row("details of faults", self.details),
            row("outputs of hooks", self.outputs),
            row("events to be sent", self.jobs),
            self.kid,
        )
        .replace("everything else", if self.failed == 0 { "everything" } else { "everything else" })
    }
}

/// A hook whose secrets are under the current key, as far as they open.
struct Anew {
    hook: Rule,
    seen: usize,
    rewritten: usize,
    unopened: Vec<String>,
}

fn anew(hook: &Rule, keyring: &Keyring) -> Anew {
    let mut anew = Anew { hook: hook.clone(), seen: 0, rewritten: 0, unopened: Vec::new() };
    let Anew { hook: fresh, seen, rewritten, unopened } = &mut anew;
    let mapped = record::map_secrets(fresh, |path, text| {
        *seen += 1;
        let place = SealedPlace::new(TABLE, hook.id.as_str(), hook.tenant_id.as_str(), path);
        Ok::<_, std::convert::Infallible>(match keyring.reseal(&place, text) {
            Ok(None) => text.to_owned(),
            Ok(Some(sealed)) => {
                *rewritten += 1;
                sealed
            }
            Err(why) => {
                unopened.push(format!("{path} of hook \"{}\": {why}", hook.label()));
                text.to_owned()
            }
        })
    });
    match mapped {
        Ok(()) => anew,
        Err(never) => match never {},
    }
}
