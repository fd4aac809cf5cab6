//! The command line of the hook. An installation writes it; nobody types it.

use std::path::PathBuf;
use std::time::Duration;

/// What a hook was told by its installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The host.
    pub host: String,
    /// The host's name of the event.
    pub event: String,
    /// Where the daemon listens.
    pub socket: PathBuf,
    /// The file with the key that proves the daemon's answers.
    pub key_file: PathBuf,
    /// How long the hook has in all, from its start.
    pub deadline: Duration,
}

impl Options {
    /// Reads the words behind the program's name.
    ///
    /// # Errors
    /// Which one is missing, unknown or no path from the root.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let (mut host, mut event, mut socket, mut key_file, mut deadline) = (None, None, None, None, None);
        let mut words = words.into_iter();
        while let Some(flag) = words.next() {
            let value = words.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            match flag.as_str() {
                "--host" => host = Some(value),
                "--event" => event = Some(value),
                "--socket" => socket = Some(absolute(&flag, value)?),
                "--key-file" => key_file = Some(absolute(&flag, value)?),
                "--deadline" => deadline = Some(milliseconds(&value)?),
                _ => return Err(format!("`{flag}` is unknown")),
            }
        }
        let missing = |flag: &str| format!("`{flag}` is missing");
        Ok(Self {
            host: host.ok_or_else(|| missing("--host"))?,
            event: event.ok_or_else(|| missing("--event"))?,
            socket: socket.ok_or_else(|| missing("--socket"))?,
            key_file: key_file.ok_or_else(|| missing("--key-file"))?,
            deadline: deadline.ok_or_else(|| missing("--deadline"))?,
        })
    }
}

fn absolute(flag: &str, value: String) -> Result<PathBuf, String> {
    let path = PathBuf::from(value);
    if path.is_absolute() { Ok(path) } else { Err(format!("`{flag}` is not a path from the root")) }
}

fn milliseconds(value: &str) -> Result<Duration, String> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.map(Duration::from_millis).ok_or_else(|| "`--deadline` is not a number of milliseconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Options, String> {
        Options::parse(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn an_installation_says_everything_and_nothing_else_counts() {
        let whole = "--host claude --event PreToolUse --socket /s --key-file /k --deadline 28000";
        let expected = Options {
            host: "claude".into(),
            event: "PreToolUse".into(),
            socket: "/s".into(),
            key_file: "/k".into(),
            deadline: Duration::from_secs(28),
        };
        assert_eq!(parse(whole), Ok(expected));
        for (words, why) in [
            ("--host", "`--host` needs a value"),
            ("--host claude", "`--event` is missing"),
            ("--socket s", "`--socket` is not a path from the root"),
            ("--deadline 0", "`--deadline` is not a number of milliseconds"),
            ("--home /x", "`--home` is unknown"),
        ] {
            assert_eq!(parse(words), Err(why.to_owned()), "{words}");
        }
    }
}
