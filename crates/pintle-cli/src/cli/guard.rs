//! `pintle guard`: Pintle as what watches the coding agents that people already use.

use clap::Subcommand;

use super::Global;
use crate::error::CliError;

mod adopting;
mod changes;
mod classes;
mod config_here;
mod doctor;
mod files;
mod install;
mod mcp_file;
mod reconcile;
mod serve;
mod status;
mod stop;
mod team;
mod uninstall;
mod watch;

pub(super) use changes::diff_lines;

/// What can be done with the guard.
#[derive(Debug, Subcommand)]
pub enum GuardCommand {
    /// Put Pintle's hooks into an agent's settings, or the tool door before its MCP servers: shows what changes, and asks
    Install(install::InstallArgs),
    /// Take out again what install put in
    Uninstall(uninstall::UninstallArgs),
    /// The daemon that the hooks of coding agents ask, in the foreground; hooks start it by themselves where none runs
    Serve(serve::ServeArgs),
    /// End the daemon, once what it was asked is answered; the next hook starts another one
    Stop,
    /// Which coding agents are under guard, how far, and when they were last heard
    Status(status::StatusArgs),
    /// Whether an agent's calls reach the guard: by what can be read, or proven on this machine with `--live`
    Doctor(doctor::DoctorArgs),
    /// The calls that agents wrote down and that no hook was asked about
    Reconcile(reconcile::ReconcileArgs),
    /// What the hooks conclude about all agents, as it happens
    Watch(watch::WatchArgs),
}

pub(super) fn run(global: &Global, command: &GuardCommand) -> Result<u8, CliError> {
    match command {
        GuardCommand::Install(args) => install::install(global, args),
        GuardCommand::Uninstall(args) => uninstall::run(global, args),
        GuardCommand::Serve(args) => serve::run(global, args),
        GuardCommand::Stop => stop::run(global),
        GuardCommand::Status(args) => status::run(global, args),
        GuardCommand::Doctor(args) => doctor::run(global, args),
        GuardCommand::Reconcile(args) => reconcile::run(global, args),
        GuardCommand::Watch(args) => watch::run(global, args),
    }
}
