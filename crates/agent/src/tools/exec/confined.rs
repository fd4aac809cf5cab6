//! The command line of the helper that confines itself and then runs the shell of one call.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use super::ExecShell;
use crate::tools::protected::Protected;
use crate::tools::sandbox::{Confinement, Enforced, SandboxError, confine, confine_in};

/// What whoever wants commands nevertheless can do.
pub(super) const UNCONFINED_HINT: &str = "whoever accepts that sets `unconfined = true` under `[tools.exec]` in the user's own \
                               configuration";

/// How the helper ends when it cannot run the command, as shells do.
const CANNOT_RUN: u8 = 126;

/// What the helper is told with each protected path, before the shell, and before the command.
const FILE: &str = "--file";
const DIR: &str = "--dir";
const NAME: &str = "--name";
const BESIDE: &str = "--beside";
const SHELL: &str = "--shell";
const UNCONFINED: &str = "--unconfined";
const COMMAND: &str = "--command";

/// The arguments with which [`exec_helper_main`] lets `shell` run `command` away from what is protected; where the kernel
/// cannot do that, only if it may be `unconfined`.
pub(in crate::tools) fn helper_args(
    protected: &Protected,
    shell: &ExecShell,
    unconfined: bool,
    command: &str,
) -> Vec<OsString> {
    let files = protected.files.iter().flat_map(|path| [FILE.into(), path.into()]);
    let names = protected.names.iter().flat_map(|name| [NAME.into(), name.into()]);
    let dirs = protected.dirs.iter().flat_map(|path| [DIR.into(), path.into()]);
    let beside = protected.beside.keys().flat_map(|path| [BESIDE.into(), path.into()]);
    let shell = [SHELL.into(), shell.program().into()];
    let unconfined = unconfined.then(|| UNCONFINED.into());
    files
        .chain(dirs)
        .chain(beside)
        .chain(names)
        .chain(shell)
        .chain(unconfined)
        .chain([COMMAND.into(), command.into()])
        .collect()
}

/// What [`helper_args`] wrote.
struct Words {
    protected: Protected,
    shell: PathBuf,
    unconfined: bool,
    command: OsString,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            protected: Protected::default(),
            shell: ExecShell::default().program().to_owned(),
            unconfined: false,
            command: OsString::new(),
        }
    }
}

/// The whole life of the helper process: reads what [`helper_args`] wrote, confines itself, and becomes the shell. Comes
/// back only if it cannot, with the exit code to end with.
pub fn exec_helper_main(args: impl IntoIterator<Item = OsString>) -> u8 {
    let refused = match parse(args) {
        Err(reason) => reason,
        Ok(words) => match confined(&words.protected).map(|confinement| confinement.enforced) {
            Err(e) => format!("the command was not run, because it could not be confined: {e}"),
            Ok(Enforced::Not) if !words.unconfined => format!(
                "the command was not run: this kernel has no Landlock, and nothing else would keep commands from \
                 Pintle's own data and from answering for a person; {UNCONFINED_HINT}"
            ),
            Ok(Enforced::Fully | Enforced::Partly | Enforced::Not) => {
                let e = Command::new(&words.shell).arg("-c").arg(words.command).exec();
                format!("`{}`, which runs commands, could not be run: {e}", words.shell.display())
            }
        },
    };
    // Standard error of the helper is the command's, and the only place where this can be told.
    drop(io::Write::write_all(&mut io::stderr(), format!("{refused}\n").as_bytes()));
    CANNOT_RUN
}

/// Confines this process, for a command that works in the folder in which it is.
fn confined(protected: &Protected) -> Result<Confinement, SandboxError> {
    match std::env::current_dir() {
        Ok(workspace) => confine_in(&workspace, protected),
        Err(_) => confine(protected),
    }
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Words, String> {
    let mut words = Words::default();
    let mut args = args.into_iter();
    while let Some(word) = args.next() {
        if word == UNCONFINED {
            words.unconfined = true;
            continue;
        }
        let value = args.next().ok_or_else(|| format!("exec helper: `{}` needs a value", word.display()))?;
        match word.to_str() {
            Some(FILE) => words.protected.files.push(value.into()),
            Some(NAME) => words.protected.names.extend(value.into_string().ok()),
            Some(DIR) => words.protected.dirs.push(value.into()),
            Some(BESIDE) => drop(words.protected.beside.insert(value.into(), String::new())),
            Some(SHELL) => words.shell = value.into(),
            Some(COMMAND) if args.next().is_none() => return Ok(Words { command: value, ..words }),
            _ => return Err(format!("exec helper: unexpected argument `{}`", word.display())),
        }
    }
    Err(format!("exec helper: `{COMMAND}` is missing; this command is for the exec tool only"))
}
