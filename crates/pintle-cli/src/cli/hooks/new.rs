//! `pintle hooks new NAME --lang LANG`: a working guard with its test.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anstyle::Style;
use clap::{Args, ValueEnum};
use pintle_domain::shell_word::shell_word;

use super::super::{Global, terminal};
use crate::error::{CliError, FAILED};
use pintle_host::config::{self, Env};

/// The frames that the test of every starter pipes into it.
const FRAMES: (&str, &str) = ("frames.jsonl", include_str!("../../starters/frames.jsonl"));

/// Longest name of a hook, in characters: it stands in columns and in sentences.
const MAX_NAME: usize = 64;

const BOLD: Style = Style::new().bold();

/// Flags of `hooks new`.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// The hook's name: letters, digits, `-` and `_`
    #[arg(value_name = "NAME")]
    name: String,
    /// The language
    #[arg(long, value_enum, default_value = "python")]
    lang: Language,
    /// The folder to write into [default: a new one called NAME]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// The languages that there are starters in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    Python,
    Node,
    Rust,
    Sh,
}

/// A starter: its files, and how it is used.
struct Starter {
    files: &'static [(&'static str, &'static str)],
    command: &'static [&'static str],
    test: &'static str,
    /// What has to be done before it can be started, if anything.
    build: Option<&'static str>,
}

impl Language {
    fn starter(self) -> Starter {
        match self {
            Self::Python => Starter {
                files: &[
                    ("guard.py", include_str!("../../starters/python/guard.py")),
                    ("test_guard.py", include_str!("../../starters/python/test_guard.py")),
                ],
                command: &["python3", "guard.py"],
                test: "python3 test_guard.py",
                build: None,
            },
            Self::Node => Starter {
                files: &[
                    ("guard.mjs", include_str!("../../starters/node/guard.mjs")),
                    ("test_guard.mjs", include_str!("../../starters/node/test_guard.mjs")),
                ],
                command: &["node", "guard.mjs"],
                test: "node --test test_guard.mjs",
                build: None,
            },
            Self::Rust => Starter {
                files: &[
                    ("Cargo.toml", include_str!("../../starters/rust/manifest.toml")),
                    ("src/main.rs", include_str!("../../starters/rust/src/main.rs")),
                    ("tests/guard.rs", include_str!("../../starters/rust/tests/guard.rs")),
                ],
                command: &["target/release/guard"],
                test: "cargo test",
                build: Some("cargo build --release"),
            },
            Self::Sh => Starter {
                files: &[
                    ("guard.sh", include_str!("../../starters/sh/guard.sh")),
                    ("test_guard.sh", include_str!("../../starters/sh/test_guard.sh")),
                ],
                command: &["sh", "guard.sh"],
                test: "sh test_guard.sh",
                build: None,
            },
        }
    }
}

pub(super) fn run(global: &Global, args: &NewArgs) -> Result<u8, CliError> {
    check_name(&args.name)?;
    let env = Env::of_process()?;
    let folder = env.cwd.join(args.dir.as_deref().unwrap_or(Path::new(&args.name)));
    let starter = args.lang.starter();
    let files: Vec<_> = starter.files.iter().chain([&FRAMES]).map(|(name, text)| (folder.join(name), *text)).collect();
    let target = Target::new(global, &env)?;
    write(&files)?;
    let mut text: String = files.iter().map(|(file, _)| format!("wrote {}\n", file.display())).collect();
    text.push_str(&next_steps(&target, &args.name, &folder, &starter));
    terminal::say(&text)?;
    Ok(0)
}

fn check_name(name: &str) -> Result<(), CliError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins_well && name.chars().all(plain) && name.len() <= MAX_NAME {
        return Ok(());
    }
    Err(CliError::usage(format!("NAME: expected at most {MAX_NAME} letters, digits, `-` and `_`, got {name:?}"))
        .hint("for example: pintle hooks new no-force-push --lang python"))
}

/// Writes all files, or none if one of them is there already.
fn write(files: &[(PathBuf, &str)]) -> Result<(), CliError> {
    if let Some((there, _)) = files.iter().find(|(file, _)| file.symlink_metadata().is_ok()) {
        return Err(CliError {
            code: FAILED,
            message: format!("{} is there already, and nothing was written", there.display()),
            hints: vec!["name another folder with --dir DIR".to_owned()],
        });
    }
    for (file, text) in files {
        let folder = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)
            .and_then(|()| OpenOptions::new().write(true).create_new(true).open(file))
            .and_then(|mut open| open.write_all(text.as_bytes()))
            .map_err(|error| CliError::failed(format!("{} cannot be written: {error}", file.display())))?;
    }
    Ok(())
}

/// The file that the lines belong in, and what the commands after that need.
struct Target {
    file: String,
    /// `-c FILE`, where the file was named.
    flag: String,
    /// Whether what is added has to be accepted first.
    found: bool,
}

impl Target {
    /// The file that is named, else the one in force here.
    fn new(global: &Global, env: &Env) -> Result<Self, CliError> {
        if let Some(named) = &global.config {
            let flag = format!(" -c {}", shell_word(&named.display().to_string()));
            return Ok(Self { file: env.cwd.join(named).display().to_string(), flag, found: false });
        }
        let (file, found) = match config::file_in_force(env)? {
            Some((file, found)) => (file.display().to_string(), found),
            None => ("your pintle.toml".to_owned(), false),
        };
        Ok(Self { file, flag: String::new(), found })
    }
}

/// The lines for the configuration, and the commands that come next.
fn next_steps(target: &Target, name: &str, folder: &Path, starter: &Starter) -> String {
    let Target { file, flag, found } = target;
    let words: Vec<String> = starter.command.iter().map(|word| quoted(word)).collect();
    let lines = format!(
        "[hooks.processes.{name}]\nenabled = true\ncommand = [{}]\ndir = {}\nintercept = [\"before_tool\"]\nmatcher = \"^exec$\"\n",
        words.join(", "),
        quoted(&folder.display().to_string()),
    );
    let accept = if *found {
        "Accept what you added, since that file counts only as it was accepted:\n\n  pintle trust\n\n"
    } else {
        ""
    };
    let there = shell_word(&folder.display().to_string());
    let build = starter.build.map(|build| format!(" && {build}")).unwrap_or_default();
    let input = r#"'{"command": "git push --force"}'"#;
    format!(
        "\nIt refuses forced pushes; its first lines say how to change that. Its test:\n\n\
         \x20 (cd {there} && {}{build})\n\n\
         {BOLD}Add to {file}:{BOLD:#}\n\n{lines}\n\
         {accept}Then see it refuse, and prove that it is armed:\n\n\
         \x20 pintle{flag} hooks test {name} --tool exec --input {input}\n\
         \x20 pintle{flag} doctor\n\n\
         An agent has the tool `exec` only if its `tools` name it.\n",
        starter.test,
    )
}

/// `text` as a TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_plain() {
        for (name, good) in [
            ("no-force_push2", true),
            ("2nd", true),
            ("", false),
            ("-x", false),
            ("a b", false),
            ("../x", false),
            ("a.b", false),
            ("é", false),
        ] {
            assert_eq!(check_name(name).is_ok(), good, "{name}");
        }
        assert!(check_name(&"a".repeat(MAX_NAME)).is_ok());
        assert!(check_name(&"a".repeat(MAX_NAME + 1)).is_err());
    }

    #[test]
    fn a_text_with_quotes_is_a_text_of_toml() {
        assert_eq!(quoted(r#"a "b""#), r#"'a "b"'"#);
    }

    #[test]
    fn nothing_is_written_if_one_file_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        fs::write(&b, "mine").unwrap();
        let refused = write(&[(a.clone(), "new"), (b.clone(), "new")]).unwrap_err();
        assert_eq!(refused.message, format!("{} is there already, and nothing was written", b.display()));
        assert_eq!((a.exists(), fs::read_to_string(&b).unwrap().as_str()), (false, "mine"));
    }
}
