//! `pintle guard install --mcp FILE`: a client's MCP servers are started through the tool door, and as before again.

use std::path::{Path, PathBuf};

use pintle_guard::settings::{DoorCommand, KeptFile, door_programs, unwrap, wrap};
use pintle_host::config::Env;

use super::changes::{Adoption, Change, Consent, settle};
use super::files::{known_of, not_edited, read};
use crate::clean::clean;
use crate::cli::{Global, terminal};
use crate::error::CliError;
use crate::guard::places::GuardPlaces;

/// Whose files these are, where what they were is kept.
const OF: &str = "mcp";

/// The file itself, where it is linked to elsewhere.
fn real(env: &Env, file: &Path) -> PathBuf {
    let file = env.cwd.join(file);
    file.canonicalize().unwrap_or(file)
}

fn text_in(file: &Path) -> Result<String, CliError> {
    if file.extension().is_some_and(|end| end == "toml") {
        let shown = clean(&file.display().to_string());
        let hint = "write it there by hand: `command = \"pintle\"`, and `args` with `mcp`, `proxy`, `--name`, a name and `--` \
                    before the server's own words";
        return Err(
            CliError::usage(format!("{shown} is TOML, and only servers in JSON are put behind the door")).hint(hint)
        );
    }
    read(file)?.ok_or_else(|| CliError::usage(format!("there is no file {}", clean(&file.display().to_string()))))
}

fn utf8(path: &Path) -> Result<String, CliError> {
    path.to_str().map(str::to_owned).ok_or_else(|| CliError::usage(format!("{} is not UTF-8", path.display())))
}

/// This program.
fn program() -> Result<String, CliError> {
    utf8(&std::env::current_exe().map_err(|error| CliError::failed(error.to_string()))?)
}

/// The programs by which an entry is ours: `program`, and those that an earlier installation wrote.
fn own_programs(program: &str, known: Option<&KeptFile>) -> Vec<String> {
    let mut own = vec![program.to_owned()];
    if let Some(known) = known {
        let theirs = known.before.as_deref().map(door_programs).unwrap_or_default();
        own.extend(door_programs(&known.after).into_iter().filter(|one| !theirs.contains(one)));
    }
    own
}

/// Lets the servers of `file` be started through the door.
pub(super) fn install(
    global: &Global,
    (env, places): (&Env, &GuardPlaces),
    (file, consent): (&Path, Consent),
) -> Result<u8, CliError> {
    let file = real(env, file);
    let before = text_in(&file)?;
    let program = program()?;
    let known = known_of(places, OF, &file)?;
    let own = own_programs(&program, known.as_ref());
    let mut flags = Vec::new();
    for (flag, path) in [("--config", global.config.as_deref()), ("--home", global.home.as_deref())] {
        if let Some(path) = path {
            flags.extend([flag.to_owned(), utf8(&env.cwd.join(path))?]);
        }
    }
    let door = DoorCommand { program: &program, flags: &flags };
    let wrapped = wrap(&before, door, &own).map_err(|why| not_edited(&file, &why))?;
    for (name, why) in &wrapped.left {
        terminal::warn(&format!("the server `{}` is left as it is: {why}", clean(name)));
    }
    let first = match known.filter(|known| known.after == before) {
        Some(known) => known.before,
        // Somebody edited it since, and some of its entries may be ours already.
        None => Some(unwrap(&before, &own).map_err(|why| not_edited(&file, &why))?),
    };
    let kept = KeptFile { before: first, after: wrapped.text.clone() };
    let is_new = before != wrapped.text;
    if consent != Consent::DryRun {
        places
            .make()
            .map_err(|error| CliError::failed(format!("{} cannot be made: {error}", places.folder.display())))?;
    }
    let change = Change {
        host: OF,
        file,
        before: Some(before),
        after: Some(wrapped.text),
        kept: Some(kept),
        executable: false,
        shared: false,
        adoption: Adoption::Untouched,
    };
    settle(consent, places, &[change])?;
    if is_new && consent != Consent::DryRun {
        for (name, own) in &wrapped.wrapped {
            let line = format!("{}  guarded: rules know its tool `x` as `mcp_{own}_x`\n", clean(name));
            terminal::say(&line)?;
        }
        terminal::note("restart the client; it then starts its servers through the door");
    }
    Ok(0)
}

/// Lets them be started as before.
pub(super) fn uninstall(
    (env, places): (&Env, &GuardPlaces),
    (file, consent): (&Path, Consent),
) -> Result<u8, CliError> {
    let file = real(env, file);
    let before = text_in(&file)?;
    let known = known_of(places, OF, &file)?;
    let own = own_programs(&program()?, known.as_ref());
    let after = match known {
        // Nobody touched it since: it is what it was.
        Some(KeptFile { before: Some(first), after }) if after == before => first,
        Some(_) | None => unwrap(&before, &own).map_err(|why| not_edited(&file, &why))?,
    };
    let (is_new, shown) = (before != after, clean(&file.display().to_string()));
    let change = Change {
        host: OF,
        file,
        before: Some(before),
        after: Some(after),
        kept: None,
        executable: false,
        shared: false,
        adoption: Adoption::Untouched,
    };
    settle(consent, places, &[change])?;
    if is_new && consent != Consent::DryRun {
        terminal::say(&format!("{shown}  no longer guarded\n"))?;
    }
    Ok(0)
}
