//! `pintle skills explain`: what stands in the list of each model call of a turn, who put it there, and when it leaves.
//! Nothing is sent, no tool runs, and nothing is kept.

use pintle_agent::driver::rehearsal::{Rehearsal, RehearsedTurn};
use pintle_providers::scripted::Scripted;

use self::absent::AbsentHook;
use self::journal::FoundTurn;
use self::stage::Stage;
use self::wire::Wire;
use super::super::{Global, terminal};
use super::ExplainArgs;
use crate::clean::clean;
use crate::error::{CliError, FAILED};
use pintle_host::config::Loaded;
use pintle_host::conversations::open_sessions;
use pintle_host::host::{load, open_store};

mod absent;
mod body;
mod cost;
mod journal;
mod json;
mod plain;
mod row;
mod stage;
mod wire;

/// What the user says in a dry run, unless somebody says otherwise.
const MESSAGE: &str = "[the message of the user stands here]";

/// Everything that is shown.
struct Explained {
    agent: String,
    /// The turn and its session; none in a dry run.
    turn: Option<(String, String)>,
    went: RehearsedTurn,
    /// Hooks that stand in no list, and why.
    absent: Vec<AbsentHook>,
    wire: Option<Wire>,
    /// The body of each call.
    bodies: Vec<String>,
}

pub(super) fn run(global: &Global, args: &ExplainArgs) -> Result<u8, CliError> {
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    for line in loaded.diagnostics.iter().map(ToString::to_string).chain(loaded.left_out.iter().cloned()) {
        terminal::warn(&clean(&line));
    }
    let wire = args.wire.as_deref().map(|name| Wire::resolve(&env, &loaded.config, name)).transpose()?;
    let (stage, went, turn) = match (&args.turn, args.last) {
        (None, false) => dry(&loaded, args)?,
        (id, _) => replayed(&loaded, id.as_deref(), args.agent.as_deref())?,
    };
    stage.notes.iter().for_each(|note| terminal::note(&format!("note: {}", clean(note))));
    if went.skills.is_empty() {
        terminal::note("note: no texts of skills are in force in this turn");
    }
    let bodies = wire.as_ref().map(|wire| wire.bodies(&went, stage.settings.removal)).transpose()?.unwrap_or_default();
    let absent = absent::of(&went, |tool| stage.knows(&loaded.config, tool));
    let dry = turn.is_none();
    let explained = Explained { agent: stage.settings.id.to_string(), turn, went, absent, wire, bodies };
    let text = if args.json { json::text(&explained)? } else { plain::text(&explained, plain::columns()) };
    terminal::say(&text)?;
    let failed = explained.went.end.as_ref().and_then(|end| end.error.as_ref()).filter(|_| dry);
    if let Some((_, why)) = failed {
        terminal::note(&format!("the dry run ended early: {}", clean(why)));
    }
    Ok(if failed.is_some() { FAILED } else { 0 })
}

/// What is to be shown: the agent, the turn that was gone through, and which one that is.
type Shown = (Stage, RehearsedTurn, Option<(String, String)>);

fn dry(loaded: &Loaded, args: &ExplainArgs) -> Result<Shown, CliError> {
    let stage = Stage::of(loaded, loaded.config.agent(args.agent.as_deref())?)?;
    let script = match &args.script {
        Some(file) => Scripted::from_file(file),
        None => Scripted::from_json(&stage.script(), "of the dry run"),
    };
    let script = script.map_err(|error| CliError::usage(error.to_string()))?;
    let model = stage.settings.model.split_once('/').map_or(stage.settings.model.as_str(), |(_, model)| model);
    let rehearsal = Rehearsal::new(&stage.settings, stage.offered.clone(), stage.skills.clone());
    let message = args.message.as_deref().unwrap_or(MESSAGE);
    let went = rehearsal.play(message, |request| script.reply(model, request));
    Ok((stage, went, None))
}

fn replayed(loaded: &Loaded, id: Option<&str>, agent: Option<&str>) -> Result<Shown, CliError> {
    let config = &loaded.config;
    let store = open_store(config)?;
    let FoundTurn { row, recorded } = journal::find(&*open_sessions(config, &store)?, id, agent)?;
    let stage = match config.agents.get(&row.agent_id) {
        Some(agent) => Stage::of(loaded, agent)?.recorded(),
        None => Stage::gone(&row.agent_id),
    };
    let mut went = Rehearsal::new(&stage.settings, stage.offered.clone(), stage.skills.clone()).replay(&recorded);
    journal::note_rewriters(&*store, recorded.turn_id.as_str(), &mut went.calls)?;
    let mut stage = stage;
    if went.unknown > 0 {
        stage.notes.push(format!("the journal does not give the messages of {} more model calls", went.unknown));
    }
    let turn = (recorded.turn_id.to_string(), row.session_id);
    Ok((stage, went, Some(turn)))
}
