//! The command line of the helper that confines itself and then runs the shell of one call.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use super::ExecShell;
use super::leader::run_for_host;
use crate::tools::protected::Protected;
use crate::tools::sandbox::confine;

/// How the helper ends when it cannot run the command, as shells do.
const CANNOT_RUN: u8 = 126;

/// What the helper is told with each protected path, before the shell, and before the command.
const FILE: &str = "--file";
const DIR: &str = "--dir";
const SHELL: &str = "--shell";
const COMMAND: &str = "--command";

/// The arguments with which [`exec_helper_main`] lets `shell` run `command` away from what is protected.
pub(in crate::tools) fn helper_args(protected: &Protected, shell: &ExecShell, command: &str) -> Vec<OsString> {
    let files = protected.files.iter().flat_map(|path| [FILE.into(), path.into()]);
    let dirs = protected.dirs.iter().flat_map(|path| [DIR.into(), path.into()]);
    let shell = [SHELL.into(), shell.program().into()];
    files.chain(dirs).chain(shell).chain([COMMAND.into(), command.into()]).collect()
}

/// The whole life of the helper process: reads what [`helper_args`] wrote, confines itself, runs the shell, and sees
/// to it that nothing of the command outlives the host. Answers the exit code to end with.
pub fn exec_helper_main(args: impl IntoIterator<Item = OsString>) -> u8 {
    let refused = match parse(args) {
        Err(reason) => reason,
        Ok(told) => match confine(&told.protected) {
            Err(e) => format!("the command was not run, because it could not be confined: {e}"),
            Ok(_) => match run_for_host(Command::new(&told.shell).arg("-c").arg(&told.command)) {
                Ok(code) => return code,
                Err(e) => format!("`{}`, which runs commands, could not be run: {e}", told.shell.display()),
            },
        },
    };
    // Standard error of the helper is the command's, and the only place where this can be told.
    drop(io::Write::write_all(&mut io::stderr(), format!("{refused}\n").as_bytes()));
    CANNOT_RUN
}

/// What the helper is told.
struct Told {
    protected: Protected,
    shell: PathBuf,
    command: OsString,
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Told, String> {
    let mut protected = Protected::default();
    let mut shell = ExecShell::default().program().to_owned();
    let mut args = args.into_iter();
    while let Some(word) = args.next() {
        let value = args.next().ok_or_else(|| format!("exec helper: `{}` needs a value", word.display()))?;
        match word.to_str() {
            Some(FILE) => protected.files.push(value.into()),
            Some(DIR) => protected.dirs.push(value.into()),
            Some(SHELL) => shell = value.into(),
            Some(COMMAND) if args.next().is_none() => return Ok(Told { protected, shell, command: value }),
            _ => return Err(format!("exec helper: unexpected argument `{}`", word.display())),
        }
    }
    Err(format!("exec helper: `{COMMAND}` is missing; this command is for the exec tool only"))
}
