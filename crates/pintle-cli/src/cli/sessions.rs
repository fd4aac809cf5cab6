//! `pintle sessions`: stored conversations.

use std::num::NonZeroUsize;
use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use pintle_domain::approval::{Approval, ApprovalMode};
use pintle_domain::id::{SessionId, TenantId};
use pintle_domain::nearest::nearest;
use pintle_domain::session::Session;
use pintle_domain::store::{
    ApprovalQuery, SessionKey, SessionQuery, SessionRow, SessionStore, StoreError, TenantScope,
};
use pintle_store::Store;

use super::command_line::{again, complete};
use super::identity::tenant_named;
use super::session::{self, tenant};
use super::turn::{self, DisplayOptions, Task};
use super::{Global, session_config, terminal};
use crate::clean::{clean, prose};
use crate::error::{CliError, FAILED};
use crate::moment::moment_of;
use crate::table::{Table, glued, out_columns, wrapped};
use crate::text::{clip, counted};
use pintle_host::config::Loaded;
use pintle_host::conversations::open_sessions;
use pintle_host::host::{load, open_store};

mod show;

/// Among how many waiting calls those of a session are looked for: far more than a person leaves waiting.
const MAX_WAITING: usize = 1000;

/// Sessions that a person is shown at once.
const PAGE: usize = 50;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const NOTE: Style = AnsiColor::Yellow.on_default();

/// What can be done with sessions.
#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// The stored conversations, the one used last first
    List(ListArgs),
    /// What was said in one of them
    Show(ShowArgs),
    /// Resume where a call waits for a person, or where the process died
    Resume(ResumeArgs),
    /// Delete a conversation with its approvals and those of its sub-agents
    Delete(DeleteArgs),
}

/// Flags of `sessions list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Those of sub-agents, too
    #[arg(long)]
    all: bool,
    /// At most this many [default: 50, or all with --json]
    #[arg(long, value_name = "N")]
    limit: Option<NonZeroUsize>,
    /// Go on after this session, with those that were used before it
    #[arg(long, value_name = "KEY")]
    after: Option<String>,
    /// Those of this tenant [default: default]
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
    /// Print JSON, with those of sub-agents
    #[arg(long)]
    json: bool,
}

/// Flags of `sessions show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The session
    #[arg(value_name = "KEY")]
    key: String,
    /// The tenant that it is of [default: default]
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
    /// Show what the model thought, not only how much
    #[arg(long)]
    thinking: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Flags of `sessions resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The session
    #[arg(value_name = "KEY")]
    key: String,
    /// Print one event a line on stdout instead of the reply and the timeline
    #[arg(long)]
    json: bool,
    /// No timeline
    #[arg(short, long)]
    quiet: bool,
    /// Refuse to start when a guard is broken, down or untrusted
    #[arg(long)]
    strict: bool,
    /// Go on under another configuration than before, or with guards that are gone
    #[arg(long)]
    config_changed: bool,
}

/// Flags of `sessions delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// The session
    #[arg(value_name = "KEY")]
    key: String,
    /// The tenant that it is of [default: default]
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
}

pub(super) fn run(global: &Global, command: SessionsCommand) -> Result<u8, CliError> {
    match command {
        SessionsCommand::List(args) => list(global, &args),
        SessionsCommand::Show(args) => show(global, &args),
        SessionsCommand::Resume(args) => resume(global, &args),
        SessionsCommand::Delete(args) => delete(global, &args),
    }
}

fn list(global: &Global, args: &ListArgs) -> Result<u8, CliError> {
    let (rows, is_all) = page(global, args)?;
    let shown = || rows.iter().filter(|row| args.all || row.parent.is_none());
    let text = if args.json {
        json(&rows)?
    } else if args.after.is_some() && rows.is_empty() {
        "there are no more sessions\n".to_owned()
    } else if shown().next().is_none() {
        none(global, args)?
    } else {
        let mut table = Table::indented(0);
        shown().for_each(|row| line(&mut table, row));
        table.text(out_columns())
    };
    terminal::say(&text)?;
    if let Some(last) = rows.last().filter(|_| !is_all) {
        terminal::note(&format!("there are more: `{}`", again(&[("--after", Some(&last.session_id))])));
    }
    Ok(0)
}

/// What is said where there are none: who else has some, if anybody.
fn none(global: &Global, args: &ListArgs) -> Result<String, CliError> {
    let Opened { store, sessions, .. } = opened(global)?;
    let listed = of_tenant(&*store, args.tenant.as_deref())?;
    let mut others = Vec::new();
    // The first is the owner of global rules, and nobody's tenant.
    for tenant in store.tenants().map_err(failed)?.into_iter().skip(1).filter(|tenant| tenant.id != listed) {
        let any = SessionQuery { after: None, children: false, limit: 1 };
        if !sessions.session_page(&tenant.id, &any).map_err(failed)?.is_empty() {
            others.push(format!("`pintle sessions list --tenant {}`", clean(&tenant.slug)));
        }
    }
    Ok(complete(&match others.is_empty() {
        true => "there are no sessions; `pintle run --session KEY` begins one\n".to_owned(),
        false => format!("this tenant has no sessions; others have some: {}\n", others.join(", ")),
    }))
}

/// The page that is wanted, and whether it goes to the end.
fn page(global: &Global, args: &ListArgs) -> Result<(Vec<SessionRow>, bool), CliError> {
    let Opened { store, sessions, .. } = opened(global)?;
    let tenant = of_tenant(&*store, args.tenant.as_deref())?;
    let limit = args.limit.map_or(if args.json { usize::MAX } else { PAGE }, NonZeroUsize::get);
    let query = SessionQuery {
        after: args.after.as_deref().map(SessionId::from),
        children: args.all || args.json,
        // One more than is shown tells whether there is one.
        limit: limit.saturating_add(1),
    };
    let mut rows = sessions.session_page(&tenant, &query).map_err(failed)?;
    if let Some(after) = args.after.as_deref().filter(|_| rows.is_empty()) {
        // Nothing comes after one that is not there.
        find(&*sessions, &tenant, after)?;
    }
    let is_all = rows.len() <= limit;
    rows.truncate(limit);
    Ok((rows, is_all))
}

/// A session in a listing: its key, which goes on with it, and below it what it is about.
fn line(table: &mut Table, row: &SessionRow) {
    let turns = counted(usize::try_from(row.turns).unwrap_or(usize::MAX), "turn");
    let state = state(row).map(|state| format!("  {NOTE}{state}{NOTE:#}")).unwrap_or_default();
    table.line(format!("{BOLD}{}{BOLD:#}{state}", clean(&row.session_id)), 2);
    let (agent, at) = (clean(&row.agent_id), glued(&clean(&moment_of(&row.updated_at))));
    let title = if row.settings.label.is_empty() { &row.title } else { &row.settings.label };
    table.line(format!("  {}  {DIM}agent {agent}, {turns}, {at}{DIM:#}", clip(title)), 4);
}

/// What there is to know of a session that is not simply done.
fn state(row: &SessionRow) -> Option<String> {
    match (&row.held_by, &row.open_turn, row.waiting) {
        (Some(holder), _, _) => Some(format!("in use by {}", clean(holder))),
        (None, Some(_), 1..) => Some("a call waits for a person".to_owned()),
        (None, Some(_), 0) => Some("its turn was left open".to_owned()),
        (None, None, _) => None,
    }
}

fn show(global: &Global, args: &ShowArgs) -> Result<u8, CliError> {
    let Opened { loaded, store, sessions } = opened(global)?;
    let tenant = of_tenant(&*store, args.tenant.as_deref())?;
    let row = find(&*sessions, &tenant, &args.key)?;
    let key = SessionKey { tenant: tenant.clone(), session: SessionId::from(args.key.as_str()) };
    let session = Session::fold(sessions.journal(&key).map_err(failed)?);
    let text = if args.json {
        let queue: Vec<&str> = session.queue().iter().map(pintle_domain::turn::WaitingMessage::text).collect();
        let messages: Vec<_> = session.said().collect();
        json(&pintle_domain::json::json!({ "session": row, "messages": messages, "queue": queue }))?
    } else {
        let waiting = store.approvals(&ApprovalQuery::waiting(TenantScope::All, MAX_WAITING)).map_err(failed)?;
        let of_it = |it: &Approval| it.session_id.as_str() == args.key && it.tenant_id == tenant;
        let waiting: Vec<Approval> = waiting.into_iter().filter(of_it).collect();
        let resume = session_config::resume_line(global, &loaded, &*sessions, &SessionId::from(args.key.as_str()));
        {
            let shown = show::Shown { row: &row, session: &session, waiting: &waiting, thinking: args.thinking };
            show::plain(&shown, &session::flags(global), &resume)
        }
    };
    terminal::say(&if args.json { text } else { wrapped(&text, out_columns()) })?;
    Ok(0)
}

fn resume(global: &Global, args: &ResumeArgs) -> Result<u8, CliError> {
    let shown = DisplayOptions::new(args.json, args.quiet, false);
    terminal::runtime()?.block_on(async {
        let mut host = session::open(global, shown.watchers(global))?;
        let row = find(&*host.sessions, &tenant(), &args.key)?;
        host.ask_in(ApprovalMode::Resume, None);
        session::servers(&host, Some(&row.agent_id)).await?;
        let member = host.runner(Some(&row.agent_id), None)?;
        let by = session::WorkedBy { agent: &member.settings().id, agent_changed: false };
        let conversation = session::conversation(&host, Some(&args.key), by)?;
        let mut conversation = session_config::continued(&host, conversation, args.config_changed)?;
        let guards = session::ready(&host, args.strict).await?;
        session::say_head(args.quiet || args.json, &guards);
        match turn::work(global, &shown, (&host, &member), &mut conversation, Task::GoOn).await? {
            Some(code) => Ok(code),
            None => {
                let key = session::word(&args.key);
                terminal::note(&format!("nothing is open in session {key}: its last turn is over"));
                Ok(FAILED)
            }
        }
    })
}

fn delete(global: &Global, args: &DeleteArgs) -> Result<u8, CliError> {
    let Opened { store, sessions, .. } = opened(global)?;
    let tenant = of_tenant(&*store, args.tenant.as_deref())?;
    find(&*sessions, &tenant, &args.key)?;
    match sessions.delete(&SessionKey { tenant, session: SessionId::from(args.key.as_str()) }) {
        Ok(true) => {
            terminal::note(&format!("deleted session {}", session::word(&args.key)));
            Ok(0)
        }
        Ok(false) => Err(CliError::failed(format!("session \"{}\" was deleted meanwhile", args.key))),
        Err(StoreError::Conflict(why)) => {
            Err(CliError::failed(why).hint("end that program first; nothing was deleted"))
        }
        Err(error) => Err(failed(error)),
    }
}

/// The id of the tenant with this slug or id.
fn of_tenant(store: &dyn Store, named: Option<&str>) -> Result<TenantId, CliError> {
    match named {
        None => Ok(tenant()),
        Some(named) => Ok(tenant_named(&store.tenants().map_err(failed)?, Some(named))?.id.clone()),
    }
}

/// The session of `tenant` under `key`.
fn find(sessions: &dyn SessionStore, tenant: &TenantId, key: &str) -> Result<SessionRow, CliError> {
    let rows = sessions.sessions(tenant).map_err(failed)?;
    if let Some(row) = rows.iter().find(|row| row.session_id == key) {
        return Ok(row.clone());
    }
    let near = nearest(key, rows.iter().map(|row| row.session_id.as_str()));
    let near = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
    Err(CliError::usage(format!("there is no session \"{key}\"{near}")).hint("`pintle sessions list` shows them"))
}

fn json(value: &impl serde::Serialize) -> Result<String, CliError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| CliError::failed(error.to_string()))?;
    Ok(format!("{text}\n"))
}

/// The store, and where conversations are.
struct Opened {
    loaded: Loaded,
    store: Arc<dyn Store>,
    sessions: Arc<dyn SessionStore>,
}

fn opened(global: &Global) -> Result<Opened, CliError> {
    let (_, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let store = open_store(&loaded.config)?;
    let sessions = open_sessions(&loaded.config, &store)?;
    Ok(Opened { loaded, store, sessions })
}

fn failed(error: StoreError) -> CliError {
    CliError::failed(prose(&error.to_string()))
}
