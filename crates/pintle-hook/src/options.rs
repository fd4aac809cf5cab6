//! The command line of the hook. An installation writes it; nobody types it.

use std::path::PathBuf;
use std::time::Duration;

/// The word for the daemon of whichever account runs the hook.
pub const ACCOUNT: &str = "account";

/// The longest deadline: no host waits so long, and of a longer one no clock may know the end.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Which daemon a hook asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskedDaemon {
    /// The one that the installation names.
    Named {
        /// Where it listens.
        socket: PathBuf,
        /// The file with the key that proves its answers.
        key_file: PathBuf,
    },
    /// That of the account that runs the hook.
    Account,
}

/// What somebody reads who types the program's name.
const HELP: &str = "\
pintle-hook: what a coding agent starts for each of its events. It sends the event that it reads to the daemon of the
guard, and prints the ruling in the agent's words.

`pintle guard install` writes its command line into the settings of the agent; nobody types it. For an entry of your own
there is `pintle hook --host HOST`. What is guarded: `pintle guard status`.
";

/// What there is to say to whoever asks only for help, or for the version.
pub fn about(words: &[String]) -> Option<String> {
    let [only] = words else { return None };
    match only.as_str() {
        "--help" | "-h" => Some(HELP.to_owned()),
        "--version" | "-V" => Some(format!("pintle-hook {}\n", env!("CARGO_PKG_VERSION"))),
        _ => None,
    }
}

/// What a hook was told by its installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The host.
    pub host: String,
    /// The host's name of the event.
    pub event: String,
    /// Which daemon it asks.
    pub daemon: AskedDaemon,
    /// How long the hook has in all, from its start.
    pub deadline: Duration,
    /// Whether it objects to nothing where no daemon can be reached or started.
    pub allows_away: bool,
}

impl Options {
    /// Reads the words behind the program's name.
    ///
    /// # Errors
    /// Which one is missing, unknown or no path from the root.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let (mut host, mut event, mut deadline) = (None, None, None);
        let (mut socket, mut key_file, mut is_account, mut allows_away) = (None, None, false, false);
        let mut words = words.into_iter();
        while let Some(flag) = words.next() {
            let value = words.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            match flag.as_str() {
                "--host" => host = Some(value),
                "--event" => event = Some(value),
                "--socket" => socket = Some(absolute(&flag, value)?),
                "--key-file" => key_file = Some(absolute(&flag, value)?),
                "--daemon" => is_account = one_of(&flag, &value, ACCOUNT)?,
                "--away" => allows_away = one_of(&flag, &value, "allow")?,
                "--deadline" => deadline = Some(milliseconds(&value)?),
                _ => return Err(format!("`{flag}` is unknown")),
            }
        }
        let missing = |flag: &str| format!("`{flag}` is missing");
        let daemon = match (is_account, socket, key_file) {
            (true, None, None) => AskedDaemon::Account,
            (true, _, _) => return Err("`--daemon` goes with no socket and no key".to_owned()),
            (false, socket, key_file) => AskedDaemon::Named {
                socket: socket.ok_or_else(|| missing("--socket"))?,
                key_file: key_file.ok_or_else(|| missing("--key-file"))?,
            },
        };
        Ok(Self {
            host: host.ok_or_else(|| missing("--host"))?,
            event: event.ok_or_else(|| missing("--event"))?,
            daemon,
            deadline: deadline.ok_or_else(|| missing("--deadline"))?,
            allows_away,
        })
    }
}

fn one_of(flag: &str, value: &str, known: &str) -> Result<bool, String> {
    if value == known { Ok(true) } else { Err(format!("`{flag}` takes `{known}`")) }
}

fn absolute(flag: &str, value: String) -> Result<PathBuf, String> {
    let path = PathBuf::from(value);
    if path.is_absolute() { Ok(path) } else { Err(format!("`{flag}` is not a path from the root")) }
}

fn milliseconds(value: &str) -> Result<Duration, String> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number
        .map(|number| Duration::from_millis(number).min(LONGEST))
        .ok_or_else(|| "`--deadline` is not a number of milliseconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Options, String> {
        Options::parse(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_person_is_told_what_it_is() {
        let said = |words: &[&str]| about(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert!(said(&["--help"]).is_some_and(|text| text.contains("`pintle guard install` writes its command line")));
        assert_eq!(said(&["-V"]), said(&["--version"]));
        assert_eq!(said(&["--version"]), Some(format!("pintle-hook {}\n", env!("CARGO_PKG_VERSION"))));
        for words in [&[][..], &["--host"], &["--host", "--help"]] {
            assert_eq!(said(words), None, "{words:?}");
        }
    }

    #[test]
    fn an_installation_says_everything_and_nothing_else_counts() {
        let whole = "--host claude --event PreToolUse --socket /s --key-file /k --deadline 28000";
        let expected = Options {
            host: "claude".into(),
            event: "PreToolUse".into(),
            daemon: AskedDaemon::Named { socket: "/s".into(), key_file: "/k".into() },
            deadline: Duration::from_secs(28),
            allows_away: false,
        };
        assert_eq!(parse(whole), Ok(expected.clone()));
        let account = "--host claude --event PreToolUse --daemon account --deadline 28000 --away allow";
        let account = parse(account);
        assert_eq!(account, Ok(Options { daemon: AskedDaemon::Account, allows_away: true, ..expected }));
        for (words, why) in [
            ("--host", "`--host` needs a value"),
            ("--socket /s --key-file /k --host claude", "`--event` is missing"),
            ("--socket s", "`--socket` is not a path from the root"),
            ("--deadline 0", "`--deadline` is not a number of milliseconds"),
            ("--home /x", "`--home` is unknown"),
            ("--away maybe", "`--away` takes `allow`"),
            ("--daemon other", "`--daemon` takes `account`"),
            ("--daemon account --socket /s", "`--daemon` goes with no socket and no key"),
            ("--host claude --event E --socket /s", "`--key-file` is missing"),
        ] {
            assert_eq!(parse(words), Err(why.to_owned()), "{words}");
        }
    }
}
