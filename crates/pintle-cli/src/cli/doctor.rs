//! `pintle doctor`: every guard proven through its real path, and everything else that has to work.

use std::collections::BTreeMap;
use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use clap::Args;
use jiff::Timestamp;
use pintle_domain::health::{CanaryRefusal, Health, Step};
use pintle_store::Store;
use serde::{Serialize, Serializer};

use super::command_line::complete;
use super::session::UNGUARDED;
use super::{Global, terminal};
use crate::clean::clean;
use crate::error::{CliError, FAILED};
use crate::table::{Table, out_columns, unglued};
use pintle_host::config::diagnostic::dotted;
use pintle_host::config::{Diagnostic, Env};
use pintle_host::host::{Host, load, open_store, unreadable};

mod canary;
mod guards;
mod meters;
mod records;
mod servers;
mod stored;
mod surroundings;

pub(super) use stored::unready;

const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();

/// Flags of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Also ask the models that judge for rules, which spends tokens
    #[arg(long)]
    judges: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
#[derive(Serialize)]
struct Check {
    /// What it is: `guard`, `hook`, `configuration`, `store`, `home`, `provider`, `mcp`, `tools`, `exec`,
    /// `rules`, `audit`, `budget`, `observers`, `keys`, `skill`, `files`.
    what: &'static str,
    /// Which one; empty where there is only one.
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    state: State,
    /// The step of the proof that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'static str>,
    #[serde(serialize_with = "unpadded")]
    message: String,
    /// The end of what a hook that does not work wrote on its standard error.
    #[serde(skip_serializing_if = "String::is_empty")]
    stderr: String,
    /// Whether a guard does not guard because of it.
    #[serde(skip)]
    guard: bool,
    /// Whether it is a guard that nobody asked, as one whose answer costs tokens.
    #[serde(skip)]
    is_unasked: bool,
    /// The diagnostic that it says, if it says one.
    #[serde(skip)]
    diagnostic: Option<Diagnostic>,
}

/// How it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// It works.
    Ok,
    /// It works, and there is something to know.
    Note,
    /// It does not work.
    Failed,
}

impl Check {
    fn new(what: &'static str, name: impl Into<String>, state: State, message: impl Into<String>) -> Self {
        Self {
            what,
            name: name.into(),
            state,
            step: None,
            message: message.into(),
            stderr: String::new(),
            guard: false,
            is_unasked: false,
            diagnostic: None,
        }
    }

    /// A hook that was proven, or what it did not pass.
    fn of_hook((what, name): (&'static str, &str), guard: bool, proven: Result<Proven, Health>) -> Self {
        match proven {
            Ok(Proven { answers, refusal: None }) => Self::new(what, name, State::Ok, answers),
            // It may have a list of what is allowed, and it may be broken: who reads why it refused can tell.
            Ok(Proven { answers, refusal: Some(refusal) }) => {
                Self::new(what, name, State::Note, format!("{} ({answers})", refusal.words()))
            }
            Err(Health::Disabled) => Self::new("hook", name, State::Note, "disabled"),
            Err(armed @ Health::Armed(_)) => Self::new(what, name, State::Ok, armed.words(Timestamp::now())),
            Err(Health::Unproven { step, why }) => {
                Self { step: Some(step.word()), guard, ..Self::new(what, name, State::Failed, why) }
            }
        }
    }
}

/// What proves a hook.
struct Proven {
    /// What it answered, stage by stage.
    answers: String,
    /// That it refused the canary, and what it said.
    refusal: Option<CanaryRefusal>,
}

/// A matcher that matches nothing is named where its hook is proven, with its place: the configuration says no more.
fn say_once(checks: &mut Vec<Check>) {
    let mut named = BTreeMap::new();
    checks.retain(|check| {
        let diagnostic = check.diagnostic.as_ref().filter(|found| found.path.ends_with(".matcher"));
        diagnostic.is_none_or(|found| named.insert(found.path.clone(), found.clone()).is_some())
    });
    for check in checks.iter_mut().filter(|check| check.step == Some(Step::Matcher.word())) {
        if let Some(found) = named.remove(&dotted(&["hooks", "processes", &check.name, "matcher"])) {
            check.message = format!("{} ({})", check.message, found.place);
        }
    }
    // Nobody proved their hooks.
    let left = named.into_values().map(|found| surroundings::diagnosed(&found));
    checks.splice(0..0, left.collect::<Vec<_>>());
}

/// A message as JSON has it: nothing in it keeps its width.
#[expect(clippy::ptr_arg, reason = "serde hands over the field as it is")]
fn unpadded<S: Serializer>(message: &String, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&unglued(message))
}

/// The last line of `text` that says something.
fn last_line(text: &str) -> Option<String> {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

/// What `doctor` found.
#[derive(Serialize)]
struct Findings {
    checks: Vec<Check>,
    guards: Guards,
}

/// How many guards there are, and how many are proven.
#[derive(Clone, Copy, Serialize)]
struct Guards {
    armed: usize,
    /// Those that nobody asked: neither proven nor bad.
    #[serde(skip)]
    unasked: usize,
    total: usize,
}

pub(super) fn run(global: &Global, args: &DoctorArgs) -> Result<u8, CliError> {
    let (env, mut loaded) = match load(global.config.as_deref(), global.home.as_deref()) {
        Ok(loaded) => loaded,
        Err(error) => {
            // Whoever asked for JSON reads what is wrong there, too.
            if let Some(found) = unreadable(global.config.as_deref()).filter(|_| args.json) {
                let checks = vec![Check::new("configuration", "", State::Failed, found.to_string())];
                let findings = Findings { checks, guards: Guards { armed: 0, unasked: 0, total: 0 } };
                terminal::say(&findings.json()?)?;
            }
            return Err(error.into());
        }
    };
    let mut checks = surroundings::configuration(&env, &loaded);
    checks.extend(surroundings::token(&env, &loaded));
    checks.extend(surroundings::skills(&loaded));
    // Before any key is read.
    let mended = pintle_host::links::mended(&loaded.config.home);
    checks.extend(mended.into_iter().map(|line| Check::new("home", "", State::Note, line)));
    let store = open_store(&loaded.config);
    if store.is_err() {
        // The guards are proven all the same.
        loaded.config.keep_nothing();
    }
    let found = terminal::runtime()?.block_on(async {
        let host = Host::open(env.clone(), loaded, Vec::new())?;
        host.start_servers(&host.loaded.config);
        let found = examine(&host, (&env, args), store).await;
        host.close().await;
        Ok::<_, CliError>(found)
    })?;
    checks.extend(found);
    say_once(&mut checks);
    let of_guards = || checks.iter().filter(|check| check.what == "guard");
    let unasked = of_guards().filter(|check| check.is_unasked).count();
    let armed = of_guards().filter(|check| check.state != State::Failed && !check.is_unasked).count();
    let findings = Findings { guards: Guards { armed, unasked, total: of_guards().count() }, checks };
    terminal::say(&if args.json { findings.json()? } else { findings.plain(global.verbose > 0, out_columns()) })?;
    Ok(findings.code())
}

/// Everything that takes a running host.
async fn examine(
    host: &Host,
    (env, args): (&Env, &DoctorArgs),
    store: Result<Arc<dyn Store>, pintle_host::HostError>,
) -> Vec<Check> {
    // Guards may be about the tools of MCP servers, so those come first.
    let servers = servers::reach(host).await;
    let (mut checks, canaries) = guards::prove(host, args.judges).await;
    checks.extend(guards::shadows(host));
    checks.extend(records::rules(host));
    let config = &host.loaded.config;
    let chains = store.as_ref().ok().map(|store| records::audit(config, &**store));
    let nodes = store.as_ref().ok().map(|store| records::nodes(config, env, &**store)).unwrap_or_default();
    let identities = records::identities(config, env);
    let shared = store.as_ref().ok().and_then(|store| surroundings::shared(config, &**store));
    let meters = store.as_ref().ok().map(|store| meters::meters(host, &**store)).unwrap_or_default();
    checks.push(surroundings::store(host, store, canaries).await);
    checks.extend(chains);
    checks.extend(identities);
    checks.extend(shared);
    checks.extend(nodes);
    checks.extend(meters);
    checks.push(records::encryption(config, env));
    checks.extend(surroundings::home(host, env));
    checks.extend(surroundings::providers(host, env).await);
    checks.extend(servers);
    checks.extend(surroundings::exec(host));
    checks.push(surroundings::files(host));
    checks
}

impl Findings {
    /// A guard comes first: it is what `doctor` is asked for.
    fn code(&self) -> u8 {
        let failed = || self.checks.iter().filter(|check| check.state == State::Failed);
        match (failed().any(|check| check.guard), failed().next()) {
            (true, _) => UNGUARDED,
            (false, Some(_)) => FAILED,
            (false, None) => 0,
        }
    }

    fn json(&self) -> Result<String, CliError> {
        let text = serde_json::to_string_pretty(self).map_err(|error| CliError::failed(error.to_string()))?;
        Ok(format!("{text}\n"))
    }

    /// A row for each check; what MCP servers that do not work wrote on their standard error, with `whole` also what such
    /// hooks did.
    fn plain(&self, whole: bool, columns: usize) -> String {
        let mut table = Table::indented(0);
        for check in &self.checks {
            let (style, mark) = match check.state {
                State::Ok => (GOOD, '✓'),
                State::Note => (NOTE, '!'),
                State::Failed => (BAD, '✗'),
            };
            let how = if check.what == "guard" { "unproven" } else { "failed" };
            let step = check.step.map(|step| format!("{how} at {step}: ")).unwrap_or_default();
            table.row([
                format!("{style}{mark}{style:#} {}", check.what),
                format!("{BOLD}{}{BOLD:#}", clean(&check.name)),
                complete(&format!("{step}{}", clean(&check.message))),
            ]);
            for line in check.stderr.lines().filter(|_| whole || check.what == "mcp") {
                table.line(format!("    {}", clean(line)), 6);
            }
        }
        let Guards { armed, unasked, total } = self.guards;
        let style = match (armed == total, armed + unasked == total) {
            (true, _) => GOOD,
            (false, true) => NOTE,
            (false, false) => BAD,
        };
        let not_asked = if unasked == 0 { String::new() } else { format!(", not asked {unasked}") };
        format!("{}\n{style}guards armed {armed}/{total}{not_asked}{style:#}\n", table.text(columns))
    }
}
