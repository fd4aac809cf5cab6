//! The command line: what can be typed, and which file does it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use pintle_host::config::{Config, Env};

use crate::clean::clean;
use crate::error::CliError;
use crate::operator;

mod approvals;
mod audit;
mod budget;
mod chat;
mod command_line;
mod completions;
mod demo;
mod doctor;
mod exec;
mod exposure;
mod guard;
mod hook;
mod hooks;
mod identity;
mod import;
mod init;
mod keys;
mod live;
mod mcp;
mod members;
mod message;
mod question;
mod run;
mod schema;
mod script;
mod secrets;
mod serve;
mod session;
mod session_config;
mod sessions;
mod skills;
mod stops;
mod store;
mod tenants;
mod terminal;
mod trust;
mod turn;
mod webhooks;
mod why;

/// The engine on which AI agents' hooks turn.
#[derive(Debug, Parser)]
#[command(name = "pintle", version, arg_required_else_help = true, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// Read this configuration file and no other
    #[arg(short, long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where state lives: sessions, records, files, what was trusted [default: $PINTLE_HOME or the XDG data folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Show more: hooks that were skipped, ids, logs of children; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// When to colour: always, never, or auto: on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN", hide_possible_values = true)]
    pub color: Color,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// One whole agent turn through hooks, offline and without a key
    Demo(demo::DemoArgs),
    /// Run one message to its end: the reply to stdout, the timeline to stderr
    Run(run::RunArgs),
    /// A conversation in the terminal
    Chat(chat::ChatArgs),
    /// List, show, test, check and write hooks
    #[command(subcommand)]
    Hooks(hooks::HooksCommand),
    /// List, check and explain skills: instructions for a model, and texts that go in at fixed points
    #[command(subcommand)]
    Skills(skills::SkillsCommand),
    /// Which hooks ran at an event, which were skipped, and exactly why
    Why(why::WhyArgs),
    /// List, approve and refuse calls that wait for a person
    #[command(subcommand)]
    Approvals(approvals::ApprovalsCommand),
    /// List, show, resume and delete stored conversations
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    /// The record of what hooks did: show, export and verify it
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Restore a store that was lost or replaced, or accept it as it is
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// What tenants may spend on hooks that ask a model
    #[command(subcommand)]
    Budget(budget::BudgetCommand),
    /// Re-encrypt stored values with the current key
    #[command(subcommand)]
    Secrets(secrets::SecretsCommand),
    /// Import hooks from another program
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// Serve an agent's built-in tools to an MCP client, behind its hooks; or stand before an MCP server: `mcp proxy`
    Mcp(mcp::McpArgs),
    /// Serve agents and rules over WebSocket and HTTP
    Serve(serve::ServeArgs),
    /// Guard the coding agents that people already use: their hooks ask this program
    #[command(subcommand)]
    Guard(guard::GuardCommand),
    /// What a coding agent may start for each of its events, in an entry of your own: it asks the guard and prints the ruling
    Hook(hook::HookArgs),
    /// Create, list and revoke API keys for programs that use the gateway
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// List and change who belongs to a tenant, and what they may do there
    #[command(subcommand)]
    Members(members::MembersCommand),
    /// Create, list, disable and enable tenants
    #[command(subcommand)]
    Tenants(tenants::TenantsCommand),
    /// List webhook endpoints and undelivered events, and retry them
    #[command(subcommand)]
    Webhooks(webhooks::WebhooksCommand),
    /// Check every hook, provider and store through its real path
    Doctor(doctor::DoctorArgs),
    /// Show what a found configuration would run, and accept it
    Trust(trust::TrustArgs),
    /// Write a first configuration
    Init(init::InitArgs),
    /// Print the JSON Schema of the configuration
    Schema,
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
    /// Print the version
    Version,
    /// Runs a command of the `exec` tool behind its confinement
    #[command(name = "__exec", hide = true)]
    Exec(exec::ExecArgs),
}

impl Command {
    /// How it uses the log: some tell of everything that hooks do wrong by themselves.
    fn logs(&self) -> terminal::LogUse {
        let tells = matches!(self, Self::Doctor(_) | Self::Skills(_) | Self::Hooks(hooks::HooksCommand::Test(_)));
        match (tells, matches!(self, Self::Serve(_) | Self::Guard(guard::GuardCommand::Serve(_)))) {
            (true, _) => terminal::LogUse::Quiet,
            (false, true) => terminal::LogUse::Service,
            (false, false) => terminal::LogUse::Usual,
        }
    }
}

/// Runs the command and says how it ended.
pub fn main() -> ExitCode {
    if let Some(code) = script::serve() {
        return code;
    }
    // What clap says of flags that do not fit, and help, are coloured as it was asked for, too.
    asked_color(std::env::args_os()).into_iter().for_each(terminal::set_color);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = terminal::usage(&error);
            if let Some(word) = meant_hooks(std::env::args_os()).filter(|_| error.use_stderr()) {
                terminal::note(&format!("did you mean `pintle hooks {word}`?"));
            }
            return code;
        }
    };
    command_line::keep(&cli.global);
    operator::keep_home(cli.global.home.as_deref());
    terminal::prepare(&cli.global, cli.command.logs());
    if let Err(error) = pintle_process::raise_open_files() {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
    if let Err(error) = stops::outlive_file_limits() {
        tracing::debug!(%error, "a limit of the size of files ends the program");
    }
    match dispatch(cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            terminal::complain(&error);
            ExitCode::from(error.code)
        }
    }
}

/// What `--color` says among `words`, whatever the rest of them says.
fn asked_color(words: impl Iterator<Item = OsString>) -> Option<Color> {
    let mut words = words.take_while(|word| word != "--").filter_map(|word| word.into_string().ok());
    let mut found = None;
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('=').map(str::to_owned),
            None => None,
        };
        found = value.and_then(|value| Color::from_str(&value, false).ok()).or(found);
    }
    found
}

/// The word behind `hook` that is a command of `hooks`.
fn meant_hooks(words: impl Iterator<Item = OsString>) -> Option<String> {
    let word = words.skip_while(|word| word != "hook").nth(1)?.into_string().ok()?;
    let command = Cli::command();
    command.find_subcommand("hooks")?.find_subcommand(&word)?;
    Some(word)
}

/// Says that a home that somebody named is not there: whoever mistyped it would take an empty one for theirs.
fn note_home(global: &Global, (env, config): (&Env, &Config)) {
    let is_named = global.home.is_some() || env.text("PINTLE_HOME").is_some();
    let Some(file) = config.store_url.strip_prefix("sqlite://").filter(|_| is_named) else { return };
    let is_absent = |path: &Path| path.metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    if is_absent(&config.home) && is_absent(&config.home.join(file)) {
        let home = clean(&config.home.display().to_string());
        terminal::note(&format!("the home {home} was not there, so it is empty; `--home` and `PINTLE_HOME` name it"));
    }
}

fn dispatch(cli: Cli) -> Result<u8, CliError> {
    let Cli { global, command } = cli;
    match command {
        Command::Demo(args) => demo::run(&global, &args),
        Command::Run(args) => run::run(&global, args),
        Command::Chat(args) => chat::run(&global, &args),
        Command::Hooks(command) => hooks::run(&global, command),
        Command::Skills(command) => skills::run(&global, command),
        Command::Why(args) => why::run(&global, &args),
        Command::Approvals(command) => approvals::run(&global, command),
        Command::Sessions(command) => sessions::run(&global, command),
        Command::Audit(command) => audit::run(&global, command),
        Command::Store(command) => store::run(&global, command),
        Command::Budget(command) => budget::run(&global, command),
        Command::Secrets(command) => secrets::run(&global, command),
        Command::Import(command) => import::run(&global, command),
        Command::Mcp(args) => mcp::run(&global, &args),
        Command::Serve(args) => serve::run(&global, &args),
        Command::Guard(command) => guard::run(&global, &command),
        Command::Hook(args) => hook::run(&global, args),
        Command::Keys(command) => keys::run(&global, command),
        Command::Members(command) => members::run(&global, command),
        Command::Tenants(command) => tenants::run(&global, command),
        Command::Webhooks(command) => webhooks::run(&global, command),
        Command::Doctor(args) => doctor::run(&global, &args),
        Command::Trust(args) => trust::run(&global, &args),
        Command::Init(args) => init::run(&global, &args),
        Command::Schema => schema::run(),
        Command::Completions(args) => completions::run(&args),
        Command::Version => terminal::say(&format!("pintle {}\n", env!("CARGO_PKG_VERSION"))).map(|()| 0),
        Command::Exec(args) => exec::run(args),
    }
}
