//! The command line of the helper that confines itself and then runs the shell of one call.

use std::ffi::OsString;
use std::io;
use std::process::Command;

use super::leader::run_for_host;
use crate::tools::protected::Protected;
use crate::tools::sandbox::confine;

/// How the helper ends when it cannot run the command, as shells do.
const CANNOT_RUN: u8 = 126;

/// What the helper is told with each protected path, and before the command.
const FILE: &str = "--file";
const DIR: &str = "--dir";
const COMMAND: &str = "--command";

/// The arguments with which [`exec_helper_main`] runs `command` away from what is protected.
pub(in crate::tools) fn helper_args(protected: &Protected, command: &str) -> Vec<OsString> {
    let files = protected.files.iter().flat_map(|path| [FILE.into(), path.into()]);
    let dirs = protected.dirs.iter().flat_map(|path| [DIR.into(), path.into()]);
    files.chain(dirs).chain([COMMAND.into(), command.into()]).collect()
}

/// The whole life of the helper process: reads what [`helper_args`] wrote, confines itself, runs the shell, and sees
/// to it that nothing of the command outlives the host. Answers the exit code to end with.
pub fn exec_helper_main(args: impl IntoIterator<Item = OsString>) -> u8 {
    let refused = match parse(args) {
        Err(reason) => reason,
        Ok((protected, command)) => match confine(&protected) {
            Err(e) => format!("the command was not run, because it could not be confined: {e}"),
            Ok(_) => match run_for_host(Command::new("/bin/sh").arg("-c").arg(command)) {
                Ok(code) => return code,
                Err(e) => format!("/bin/sh could not be run: {e}"),
            },
        },
    };
    // Standard error of the helper is the command's, and the only place where this can be told.
    drop(io::Write::write_all(&mut io::stderr(), format!("{refused}\n").as_bytes()));
    CANNOT_RUN
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<(Protected, OsString), String> {
    let mut protected = Protected::default();
    let mut args = args.into_iter();
    while let Some(word) = args.next() {
        let value = args.next().ok_or_else(|| format!("exec helper: `{}` needs a value", word.display()))?;
        match word.to_str() {
            Some(FILE) => protected.files.push(value.into()),
            Some(DIR) => protected.dirs.push(value.into()),
            Some(COMMAND) if args.next().is_none() => return Ok((protected, value)),
            _ => return Err(format!("exec helper: unexpected argument `{}`", word.display())),
        }
    }
    Err(format!("exec helper: `{COMMAND}` is missing; this command is for the exec tool only"))
}
