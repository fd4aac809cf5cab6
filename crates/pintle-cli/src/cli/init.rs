//! `pintle init`: a first configuration.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;

use super::{Global, terminal};
use crate::error::CliError;
use pintle_host::config::Env;

/// The first configuration.
const FIRST: &str = include_str!("../starters/pintle.toml");

/// Both names that a configuration may have in a folder.
const NAMES: [&str; 2] = ["pintle.toml", "pintle.json"];

/// Flags of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Write it here instead of your own configuration folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn run(global: &Global, args: &InitArgs) -> Result<u8, CliError> {
    if global.config.is_some() {
        return Err(CliError::usage("`init` takes no --config: it writes a file and reads none")
            .hint("name the folder to write it to: `pintle init --dir DIR`"));
    }
    let env = Env::of_process()?;
    let folder = match &args.dir {
        // Taken apart and put together again, it has no `.` in it.
        Some(dir) => env.cwd.join(dir).components().collect(),
        None => env.config_folder().ok_or_else(|| {
            CliError::usage("there is no configuration folder: neither XDG_CONFIG_HOME nor HOME is set")
                .hint("name a folder with --dir DIR")
        })?,
    };
    let file = write(&folder)?;
    terminal::tell(&next_steps(&file, args.dir.is_some()))?;
    Ok(0)
}

/// Writes the file, unless the folder has a configuration already.
fn write(folder: &Path) -> Result<PathBuf, CliError> {
    if let Some(there) = NAMES.iter().map(|name| folder.join(name)).find(|file| file.symlink_metadata().is_ok()) {
        return Err(CliError::failed(format!("{} is there already, and stays as it is", there.display()))
            .hint("`pintle hooks lint` checks it"));
    }
    let file = folder.join(NAMES[0]);
    let written = fs::create_dir_all(folder)
        .and_then(|()| OpenOptions::new().write(true).create_new(true).open(&file))
        .and_then(|mut open| open.write_all(FIRST.as_bytes()));
    written.map_err(|error: io::Error| CliError::failed(format!("{} cannot be written: {error}", file.display())))?;
    Ok(file)
}

fn next_steps(file: &Path, elsewhere: bool) -> String {
    let mut text = format!("wrote {}\n\nnext:\n", file.display());
    if elsewhere {
        let trust = format!("pintle trust {}", file.parent().unwrap_or(file).display());
        let why = "accept it: a file that is merely found in a folder starts nothing by itself";
        text.push_str(&format!("  {trust:<34} {why}\n"));
    }
    let steps = [
        ("pintle demo", "see one whole turn, without a key"),
        ("pintle hooks new guard --lang sh", "write a first guard with its test; python, node and rust too"),
        ("pintle doctor", "prove that the guards are armed"),
        ("pintle chat", "talk to the agent"),
    ];
    for (command, what) in steps {
        text.push_str(&format!("  {command:<34} {what}\n"));
    }
    text.push_str("\nThe agent in it may run commands (`exec`); take that out of its tools if it only has to read.\n");
    text.push_str(
        "For a model set OPENAI_API_KEY or ANTHROPIC_API_KEY, start Ollama on this machine, or write a \
         [providers.NAME] table into the file.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_host::config::{LoadOptions, load};

    /// The diagnostics of `text` as a configuration.
    fn diagnostics(text: &str) -> Vec<String> {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("pintle.toml");
        fs::write(&file, text).unwrap();
        // What the examples name.
        fs::create_dir(home.path().join("guard")).unwrap();
        fs::write(home.path().join("guard/guard.py"), "").unwrap();
        let env = Env { vars: Default::default(), cwd: home.path().to_owned() };
        let options = LoadOptions { config: Some(&file), home: Some(home.path()), ..LoadOptions::default() };
        load(&env, &options).unwrap().diagnostics.iter().map(|diagnostic| diagnostic.said()).collect()
    }

    #[test]
    fn the_first_configuration_is_valid_as_it_is_and_with_every_example_switched_on() {
        assert_eq!(diagnostics(FIRST), [""; 0]);
        // Prose has a blank after the sign, examples do not.
        let switched_on: Vec<&str> = FIRST
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(example) if !example.is_empty() && !example.starts_with(' ') => example,
                Some(_) | None => line,
            })
            .collect();
        assert!(switched_on.len() > 10 && switched_on.join("\n") != FIRST.trim_end());
        assert_eq!(diagnostics(&switched_on.join("\n")), [""; 0]);
    }

    #[test]
    fn what_is_there_stays() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("deep/pintle");
        let file = write(&folder).unwrap();
        fs::write(&file, "# mine").unwrap();
        assert!(write(&folder).unwrap_err().message.ends_with("is there already, and stays as it is"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "# mine");
        fs::rename(&file, folder.join("pintle.json")).unwrap();
        assert!(write(&folder).unwrap_err().message.contains("pintle.json is there already"));
    }
}
