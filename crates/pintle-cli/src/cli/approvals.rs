//! `pintle approvals`: calls that wait for a person.

use std::io::{self, IsTerminal as _};

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use pintle_domain::approval::{Approval, ApprovalFlaw, ApprovalState, PersonAnswer};
use pintle_domain::json::Object;
use pintle_domain::store::{ApprovalQuery, StoreError, Tenant, TenantScope};
use pintle_domain::tool::CallPlace;
use pintle_store::Store;
use pintle_store::keyring::ENV_KEYS;
use similar::{ChangeTag, TextDiff};

use super::command_line::complete;
use super::identity::tenant_named;
use super::{Global, note_home, session_config, terminal};
use crate::clean::{clean, prose, spaced};
use crate::error::CliError;
use crate::moment::moment;
use crate::operator;
use crate::table::{folded, out_columns};
use crate::text::{clip, counted, whole};
use pintle_host::config::Loaded;
use pintle_host::conversations::open_sessions;
use pintle_host::host::load;
use pintle_host::host_rules::RuleEnvironment;

/// Most approvals that are listed: more than a person reads.
const MAX_LISTED: usize = 500;

/// Most approvals that are shown when a part of an id means several: as many as a person compares.
const MAX_CANDIDATES: usize = 5;

/// Most characters of the arguments that a listing on a terminal shows: about a line.
const MAX_SHOWN: usize = 100;

/// Longest note, in bytes: a paragraph; the model reads it.
pub(super) const MAX_NOTE_BYTES: usize = 4096;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();

/// What can be done with approvals.
#[derive(Debug, Subcommand)]
pub enum ApprovalsCommand {
    /// The calls that wait for a person
    List(ListArgs),
    /// One of them with every word of the call
    Show(ShowArgs),
    /// Let exactly this call run, once
    Approve(AnswerArgs),
    /// Refuse this call
    #[command(alias = "deny", alias = "reject")]
    Refuse(AnswerArgs),
}

/// Flags of `approvals list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Those that were answered, used, void or expired, too
    #[arg(long)]
    all: bool,
    /// Only those of this tenant
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Flags of `approvals show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The approval, or the beginning or the end of its id
    #[arg(value_name = "ID")]
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Flags of `approvals approve` and `approvals refuse`.
#[derive(Debug, Args)]
pub struct AnswerArgs {
    /// The approval, or the beginning or the end of its id
    #[arg(value_name = "ID")]
    id: String,
    /// What the agent is to know; the model reads it when the call is refused
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
}

pub(super) fn run(global: &Global, command: ApprovalsCommand) -> Result<u8, CliError> {
    match command {
        ApprovalsCommand::List(args) => list(global, &args),
        ApprovalsCommand::Show(args) => show(global, &args),
        ApprovalsCommand::Approve(args) => answer(global, &args, true),
        ApprovalsCommand::Refuse(args) => answer(global, &args, false),
    }
}

fn list(global: &Global, args: &ListArgs) -> Result<u8, CliError> {
    let (_, store) = opened(global)?;
    let now = jiff::Timestamp::now();
    let tenants = store.tenants().map_err(failed)?;
    let scope = match args.tenant.as_deref() {
        Some(slug) => TenantScope::One(tenant_named(&tenants, Some(slug))?.id.clone()),
        None => TenantScope::All,
    };
    let mut found = store
        .approvals(&ApprovalQuery { waiting_only: !args.all, ..ApprovalQuery::newest(scope, MAX_LISTED) })
        .map_err(failed)?;
    note_other_key(&mut found);
    // What stands as open and was altered is listed, so that nobody looks for it in vain.
    let listed = |approval: &Approval| approval.is_altered() || approval.state_at(now) == ApprovalState::Waiting;
    found.retain(|approval| args.all || listed(approval));
    let flaws: Vec<Option<ApprovalFlaw>> = found.iter().map(|it| it.flaw().filter(|_| it.is_altered())).collect();
    found.iter_mut().for_each(|approval| approval.state = approval.state_at(now));
    let text = match (args.json, found.is_empty()) {
        (true, _) => serde_json::to_string_pretty(&found).map_err(|error| CliError::failed(error.to_string()))? + "\n",
        (false, true) if args.all => "there are no approvals\n".to_owned(),
        (false, true) => "nothing waits for a person\n".to_owned(),
        (false, false) => {
            let lines = found.iter().zip(flaws).map(|(approval, flaw)| line(approval, flaw, &tenants));
            folded(&lines.collect::<String>(), out_columns(), 4)
        }
    };
    terminal::say(&text)?;
    Ok(0)
}

fn show(global: &Global, args: &ShowArgs) -> Result<u8, CliError> {
    let (_, store) = opened(global)?;
    let mut approval = find(&*store, &args.id)?;
    note_other_key(std::slice::from_mut(&mut approval));
    let flaw = approval.flaw().filter(|_| approval.is_altered());
    approval.state = approval.state_at(jiff::Timestamp::now());
    if args.json {
        let json = serde_json::to_string_pretty(&approval).map_err(|error| CliError::failed(error.to_string()))?;
        terminal::say(&(json + "\n"))?;
        return Ok(0);
    }
    let by = flaw.map_or_else(|| answered(&approval), |flaw| format!(": {flaw}"));
    let (style, state) = (style_of(approval.state), approval.state.word());
    terminal::say(&format!("{}  {style}{state}{style:#}{by}\n", shown_whole(&approval)))?;
    Ok(0)
}

/// Says once that another key sealed what is to be shown. Nobody can tell here whether it holds, and so nothing is said
/// of each.
fn note_other_key(found: &mut [Approval]) {
    let mut is_other = false;
    for approval in found.iter_mut().filter(|approval| approval.flaw == Some(ApprovalFlaw::OtherKey)) {
        approval.flaw = None;
        is_other = true;
    }
    if is_other {
        terminal::note(&format!(
            "the key here differs from the one that sealed these questions, so nobody can answer or use them from here; \
             set `{}`, or put the file with the key back, as it is where they were asked",
            ENV_KEYS[0]
        ));
    }
}

/// An approval in a listing: three lines. Where there are several `tenants`, it says whose it is.
fn line(approval: &Approval, flaw: Option<ApprovalFlaw>, tenants: &[Tenant]) -> String {
    // The first one of a store owns global rules, and is nobody's.
    let own = tenants.iter().find(|tenant| tenants.len() > 2 && tenant.id == approval.tenant_id);
    let own = own.map(|tenant| format!("tenant {}, ", clean(&tenant.slug))).unwrap_or_default();
    let (style, state) = (style_of(approval.state), approval.state.word());
    let by = flaw.map_or_else(|| answered(approval), |flaw| format!(": {flaw}"));
    let session = clean(approval.session_id.as_str());
    format!(
        "{BOLD}{}{BOLD:#}  {style}{state}{style:#}{by}\n  {} {}\n  {DIM}{}: {}; {own}agent {}, session {session}, asked {}{DIM:#}\n",
        clean(&approval.id),
        clean(&approval.tool),
        listed_arguments(approval, io::stdout().is_terminal()),
        clean(approval.by.as_str()),
        whole(&approval.reason),
        clean(approval.agent_id.as_str()),
        moment(approval.asked_at),
    )
}

/// The arguments on a line. Only on a terminal they are cut, and then it says how much is left out.
fn listed_arguments(approval: &Approval, on_terminal: bool) -> String {
    let shown = spaced(&compact(&approval.arguments));
    match shown.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) if on_terminal => {
            let left_out = counted(shown[end..].chars().count(), "more character");
            let whole = complete(&format!("`pintle approvals show {}`", clean(&approval.id)));
            format!("{}… {left_out}: {whole}", &shown[..end])
        }
        Some(_) | None => shown,
    }
}

/// Who answered and what they noted; what came of it says only that it was once approved.
fn answered(approval: &Approval) -> String {
    let Some(by) = &approval.answered_by else { return String::new() };
    let word = match approval.state {
        ApprovalState::Waiting | ApprovalState::Approved | ApprovalState::Refused => "",
        ApprovalState::Used | ApprovalState::Void | ApprovalState::Expired => ", approved",
    };
    let note = Some(&approval.note).filter(|note| !note.is_empty());
    let note = note.map(|note| format!(": {}", clean(&clip(note)))).unwrap_or_default();
    format!("{word} by {}{note}", clean(by))
}

fn style_of(state: ApprovalState) -> Style {
    match state {
        ApprovalState::Waiting => NOTE,
        ApprovalState::Approved | ApprovalState::Used => GOOD,
        ApprovalState::Refused => BAD,
        ApprovalState::Void | ApprovalState::Expired => DIM,
    }
}

fn answer(global: &Global, args: &AnswerArgs, approve: bool) -> Result<u8, CliError> {
    operator::require()?;
    if args.note.len() > MAX_NOTE_BYTES {
        return Err(CliError::usage(format!("--note is longer than {MAX_NOTE_BYTES} bytes")));
    }
    let (loaded, store) = opened(global)?;
    let now = jiff::Timestamp::now();
    let approval = find(&*store, &args.id)?;
    terminal::say(&shown_whole(&approval))?;
    let said = PersonAnswer::of(person(), approve, args.note.clone());
    let answered = store.answer_shown(&approval, said, now).map_err(failed)?;
    let outcome = match approve {
        true => {
            format!("{GOOD}approved{GOOD:#}: exactly this call may run, once, until {}", moment(answered.expires_at))
        }
        false => format!("{BAD}refused{BAD:#}: this call does not run, and the agent is told"),
    };
    let sessions = open_sessions(&loaded.config, &store)?;
    let resume = session_config::resume_line(global, &loaded, &*sessions, &answered.session_id);
    let of_server = session_config::is_of_server(&*sessions, &answered.tenant_id, &answered.session_id);
    let goes_on = match (answered.usable_seconds, of_server) {
        // A coding agent under guard waits for the answer, or makes the call again.
        (Some(_), _) if approve => {
            "\nif it still waits, it runs now; else have the agent make the same call again".to_owned()
        }
        // Nothing goes on, and the outcome says so.
        (Some(_), _) => String::new(),
        (None, true) => format!("\na running server goes on by itself; without one: {resume}"),
        (None, false) => format!("\nto go on: {resume}"),
    };
    terminal::tell(&format!("{outcome}{goes_on}\n"))?;
    Ok(0)
}

/// The approval whose id is `id`, or begins or ends with it.
fn find(store: &dyn Store, id: &str) -> Result<Approval, CliError> {
    if id.is_empty() {
        return Err(CliError::usage("ID is empty").hint("`pintle approvals list` shows what waits"));
    }
    if let Some(exact) = store.approval(&TenantScope::All, id).map_err(failed)? {
        return Ok(exact);
    }
    let all = store.approvals(&ApprovalQuery::newest(TenantScope::All, usize::MAX)).map_err(failed)?;
    // Ids begin with the time: those of months begin alike, and whoever names one means what waits.
    let meant = all.into_iter().filter(|approval| approval.id.starts_with(id) || approval.id.ends_with(id));
    let now = jiff::Timestamp::now();
    let waits = |approval: &Approval| approval.state_at(now) == ApprovalState::Waiting;
    let (waiting, over): (Vec<Approval>, Vec<Approval>) = meant.partition(waits);
    let mut begun = if waiting.is_empty() { over } else { waiting };
    match (begun.pop(), begun.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => {
            Err(CliError::usage(format!("there is no approval `{id}`"))
                .hint("`pintle approvals list` shows what waits"))
        }
        (Some(newest), false) => {
            let several = begun.iter().rev().take(MAX_CANDIDATES - 1);
            let error =
                CliError::usage(format!("{} approvals have ids that begin or end with `{id}`", begun.len() + 1));
            Err(std::iter::once(&newest).chain(several).fold(error, |error, one| error.hint(candidate(one))))
        }
    }
}

/// An approval as one of several that may be meant.
fn candidate(approval: &Approval) -> String {
    format!("{}  {}  {} {}", approval.id, approval.state.word(), approval.tool, clip(&compact(&approval.arguments)))
}

/// Everything that a person has to know before they answer.
pub(super) fn shown_whole(approval: &Approval) -> String {
    let mut text = format!("{BOLD}{}{BOLD:#}\n", clean(&approval.id));
    let mut row = |name: &str, value: &str| text.push_str(&format!("  {name:<8} {}\n", clean(value)));
    row("tool", &approval.tool);
    row("agent", approval.agent_id.as_str());
    row("session", approval.session_id.as_str());
    row("asks", approval.by.as_str());
    row("why", &approval.reason);
    match &approval.place {
        Some(CallPlace { workspace, shell, server }) => {
            workspace.iter().for_each(|folder| row("in", folder));
            shell.iter().for_each(|shell| row("shell", shell));
            server.iter().for_each(|server| row("server", &format!("{}: {}", server.name, server.runs)));
        }
        None => row("in", "any folder or server that the configuration names by then; an older version asked"),
    }
    row("until", &moment(approval.expires_at));
    if let Some(why) = &approval.again_because {
        text.push_str(&format!("  {NOTE}asked again: {}{NOTE:#}\n", clean(why)));
    }
    let now = pretty(&approval.arguments);
    match &approval.changed_from {
        None => now.lines().for_each(|line| text.push_str(&format!("    {}\n", spaced(line)))),
        Some(before) => {
            text.push_str(&format!("  {NOTE}changed since it was asked about before:{NOTE:#}\n"));
            let before = pretty(before);
            for change in TextDiff::from_lines(&before, &now).iter_all_changes() {
                let (mark, style) = match change.tag() {
                    ChangeTag::Equal => (' ', Style::new()),
                    ChangeTag::Delete => ('-', BAD),
                    ChangeTag::Insert => ('+', GOOD),
                };
                text.push_str(&format!("  {style}{mark} {}{style:#}\n", spaced(change.value().trim_end_matches('\n'))));
            }
        }
    }
    text
}

/// The arguments as one line.
fn compact(arguments: &Object) -> String {
    serde_json::to_string(arguments).unwrap_or_default()
}

/// The arguments on lines of their own.
fn pretty(arguments: &Object) -> String {
    serde_json::to_string_pretty(arguments).unwrap_or_default()
}

/// Who answers: the user of this process.
pub(super) fn person() -> String {
    let uid = nix::unistd::getuid();
    match nix::unistd::User::from_uid(uid) {
        Ok(Some(user)) => user.name,
        Ok(None) | Err(_) => format!("user {uid}"),
    }
}

fn opened(global: &Global) -> Result<(Loaded, std::sync::Arc<dyn Store>), CliError> {
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    note_home(global, (&env, &loaded.config));
    // What was asked and said is sealed with a key of the host.
    let store = RuleEnvironment::of(&loaded.config, &env)?.open_store(&loaded.config)?;
    Ok((loaded, store))
}

fn failed(error: StoreError) -> CliError {
    CliError::failed(prose(&error.to_string()))
}
