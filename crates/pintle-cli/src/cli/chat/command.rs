//! What can be typed in a conversation that is not a message.

const HELP: &str = "\
/help    this
/resume  go on with the turn that is open, or with what waits in the conversation
/quit    end the conversation; so does Ctrl-D
Any other line is a message; put a space before one that is a single word with a slash.
While a turn is running:
  Esc or Ctrl-C   stops it at once; what is there of the answer stays
  the same again  undoes it, before anything else is said
  /finish         lets it come to an end: what runs is finished, and the agent sums up
  a line          goes into the turn; the calls that have not begun make way for it
Where a call waits for you: y runs it, n refuses it, n WHY tells the agent why, l leaves it for later.";

const HELP_BY_LINES: &str = "\
/help    this
/resume  go on with the turn that is open, or with what waits in the conversation
/quit    end the conversation; so does Ctrl-D
Any other line is a message; put a space before one that is a single word with a slash.
While a turn is running, Ctrl-C stops it at once; a line that is typed meanwhile begins the next turn.
A call that waits for you is left for later: `pintle approvals` answers it, and /resume goes on.";

/// A command of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// What can be typed.
    Help,
    /// The turn that is open, or what waits, is run.
    Resume,
    /// The turn that is under way comes to its end.
    Finish,
    /// The conversation ends.
    Quit,
    /// One word that looks like a command and is none.
    Unknown(String),
}

impl Command {
    /// What `/help` says, where a terminal shows every key and where it gives whole lines.
    pub(super) fn help(keys: bool) -> &'static str {
        if keys { HELP } else { HELP_BY_LINES }
    }

    /// Reads a line; what is not a command is a message. A path or a sentence is never taken for a command.
    pub(super) fn read(line: &str) -> Option<Self> {
        let word = line.trim_end().strip_prefix('/')?;
        match word {
            "help" => Some(Self::Help),
            "resume" => Some(Self::Resume),
            "quit" => Some(Self::Quit),
            "finish" => Some(Self::Finish),
            word if !word.is_empty() && word.chars().all(char::is_alphabetic) => Some(Self::Unknown(word.to_owned())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_word_of_its_own_is_a_command() {
        for (line, expected) in [
            ("/help", Some(Command::Help)),
            ("/resume  ", Some(Command::Resume)),
            ("/quit", Some(Command::Quit)),
            ("/finish", Some(Command::Finish)),
            ("/resmue", Some(Command::Unknown("resmue".into()))),
            ("/etc/hosts", None),
            ("/help me with this", None),
            (" /help", None),
            ("/", None),
            ("// no", None),
            ("/1", None),
        ] {
            assert_eq!(Command::read(line), expected, "{line:?}");
        }
    }
}
