//! `pintle guard reconcile`: the calls that agents wrote down and that no hook was asked about.

use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use clap::Args;
use pintle_host::config::Env;
use serde_json::{Value, json};

use crate::clean::clean;
use crate::cli::session::UNGUARDED;
use crate::cli::{Global, terminal};
use crate::error::CliError;
use crate::guard::folders::Folders;
use crate::guard::host_files::moved_folders;
use crate::guard::installs::hosts;
use crate::guard::kept_sessions::kept;
use crate::guard::places::GuardPlaces;
use crate::guard::reconciling::{Reconciled, Unheard, disarmed, heard_with, reconcile, unheard};
use crate::guard::sessions::HostSession;
use crate::guard::working::Desk;
use crate::table::{folded, out_columns};
use crate::text::counted;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default();

/// How far in the rest of a line stands that does not fit.
const HANG: usize = 4;

/// Flags of `guard reconcile`.
#[derive(Debug, Args)]
pub struct ReconcileArgs {
    /// Only this session, by its name here or its id at the agent
    #[arg(long, value_name = "ID", conflicts_with = "last")]
    session: Option<String>,
    /// Only the newest session
    #[arg(long)]
    last: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ReconcileArgs {
    const fn is_all(&self) -> bool {
        self.session.is_none() && !self.last
    }
}

/// One session, and what its agent wrote down.
struct Row {
    session: HostSession,
    /// None where it is not known where the agent writes.
    read: Option<Result<Reconciled, String>>,
    /// What took its hooks away, if it still runs.
    disarmed: Option<String>,
}

impl Row {
    fn is_well(&self) -> bool {
        let is_whole = match &self.read {
            None => true,
            Some(Ok(read)) => read.gaps.is_empty(),
            Some(Err(_)) => false,
        };
        is_whole && self.disarmed.is_none()
    }
}

pub(super) fn run(global: &Global, args: &ReconcileArgs) -> Result<u8, CliError> {
    let env = Env::of_process()?;
    let places = GuardPlaces::of(&env, global.home.as_deref(), None)?;
    let all = kept(&places.folder)?;
    let rows: Vec<Row> = chosen(args, all.clone())?
        .into_iter()
        .map(|session| Row {
            read: reconcile(&session, &heard_with(&session, &all), (&env, &places)),
            disarmed: session.runs().then(|| disarmed(&session, &env, &places)).flatten().map(|gap| gap.text),
            session,
        })
        .collect();
    let unheard = if args.is_all() { unheard_of(&all, &env, &places)? } else { Vec::new() };
    if rows.is_empty() && unheard.is_empty() {
        return Err(CliError::usage("the guard knows no session yet"));
    }
    let text = match args.json {
        true => {
            let rows: Vec<Value> = rows.iter().map(row_json).collect();
            let of_file = |it: &Unheard| json!({"host": it.host, "file": it.file, "session": it.session, "calls": it.calls, "unread": it.unread});
            format!("{:#}\n", json!({"sessions": rows, "unheard": unheard.iter().map(of_file).collect::<Vec<_>>()}))
        }
        false => {
            let text: String = rows.iter().map(shown).chain(unheard.iter().map(shown_unheard)).collect();
            folded(&text, out_columns(), HANG)
        }
    };
    terminal::say(&text)?;
    if rows.iter().all(Row::is_well) && unheard.is_empty() {
        return Ok(0);
    }
    keep_in_record(global, &env, &places)?;
    Ok(UNGUARDED)
}

/// Has what got past the guard in the record. A daemon that runs does that by itself; else this is one for as long.
fn keep_in_record(global: &Global, env: &Env, places: &GuardPlaces) -> Result<(), CliError> {
    // A daemon that a hook starts meanwhile guards: the lock is its own, and so is what is kept from then on.
    let signature = places.signature();
    if places.is_guarded() {
        return Ok(());
    }
    let folders = Arc::new(Folders::new(env.clone(), global.config.clone(), global.home.clone()));
    let home = env.text("HOME").unwrap_or("/").to_owned();
    let desk = Desk::new(folders, places.clone(), (home, moved_folders(env))).beside_daemons(signature);
    terminal::runtime()?.block_on(async {
        desk.look_at_all(env).await;
        desk.close().await;
    });
    Ok(())
}

/// The conversations of all agents that no hook said anything of.
fn unheard_of(sessions: &[HostSession], env: &Env, places: &GuardPlaces) -> Result<Vec<Unheard>, CliError> {
    Ok(hosts(None)?.into_iter().flat_map(|host| unheard(host, sessions, (env, places))).collect())
}

/// The sessions that `args` mean, the newest last.
fn chosen(args: &ReconcileArgs, mut all: Vec<HostSession>) -> Result<Vec<HostSession>, CliError> {
    all.sort_by_key(|session| session.last);
    if let Some(id) = &args.session {
        let is_it = |session: &HostSession| {
            session.session == *id || session.session.split_once(':').is_some_and(|(_, own)| own == id)
        };
        all.retain(is_it);
        if all.is_empty() {
            return Err(CliError::usage(format!("the guard knows no session `{}`", clean(id)))
                .hint("without --session, all that it knows are shown"));
        }
    }
    if args.last {
        all = all.split_off(all.len().saturating_sub(1));
    }
    if all.is_empty() && args.last {
        return Err(CliError::usage("the guard knows no session yet"));
    }
    Ok(all)
}

fn row_json(row: &Row) -> Value {
    let (files, calls, unguarded, error) = match &row.read {
        None => (json!([]), Value::Null, json!([]), Value::Null),
        Some(Ok(read)) => {
            let gaps = read.gaps.iter().map(|gap| json!({"call": gap.call, "text": gap.text})).collect::<Vec<_>>();
            (json!(read.files), json!(read.calls), json!(gaps), Value::Null)
        }
        Some(Err(why)) => (json!([]), Value::Null, json!([]), json!(why)),
    };
    json!({
        "session": row.session.session, "host": row.session.host, "folder": row.session.folder, "files": files,
        "calls": calls, "unguarded": unguarded, "disarmed": row.disarmed, "error": error,
    })
}

fn shown_unheard(unheard: &Unheard) -> String {
    let (calls, file) = (counted(unheard.calls, "call"), clean(&unheard.place()));
    let mut text = format!("{BOLD}{}{BOLD:#}  {DIM}{file}{DIM:#}\n", unheard.host);
    if unheard.calls > 0 {
        text += &format!("  {BAD}{calls} without any hook{BAD:#}: the agent ran without its guard\n");
    }
    if let Some(why) = &unheard.unread {
        text += &format!("  {BAD}no hook said anything of it{BAD:#}, and {}\n", clean(why));
    }
    text
}

fn shown(row: &Row) -> String {
    let session = &row.session;
    let mut text = format!(
        "{BOLD}{}{BOLD:#}  {DIM}{}{DIM:#}\n",
        clean(&session.session),
        clean(&session.folder.display().to_string())
    );
    match &row.read {
        None => text += "  nothing is known of what this agent writes down\n",
        Some(Err(why)) => text += &format!("  {BAD}{}{BAD:#}\n", clean(why)),
        Some(Ok(read)) => {
            let calls = counted(read.calls, "call");
            let all = if read.gaps.is_empty() { ", each of them asked about" } else { "" };
            text += &format!("  {calls} written down{all}\n");
            for gap in &read.gaps {
                text += &format!("  {BAD}{}{BAD:#}\n", clean(&gap.text));
            }
        }
    }
    if let Some(why) = &row.disarmed {
        text += &format!("  {BAD}{}{BAD:#}\n", clean(why));
    }
    text
}
