//! Programs that an option tells to run something besides.

use crate::read::Reading;
use crate::run::Run;
use crate::run::options::{begun, bundled};
use crate::state::{Field, State};

/// Options of some programs.
struct Told {
    /// The programs, separated by blanks.
    names: &'static str,
    long: &'static [&'static str],
    short: &'static str,
    /// The short ones that take what stands behind them as their value.
    valued: &'static str,
    value: Value,
}

/// What the value of such an option is.
#[derive(Clone, Copy)]
enum Value {
    /// A text for a shell.
    Text,
    /// A setting, which may name a program.
    Setting,
    /// A text of macros, one of which runs a shell.
    Macros,
}

const TOLD: &[Told] = &[
    Told {
        names: "apt apt-get",
        long: &["--option", "--config-file"],
        short: "oc",
        valued: "at",
        value: Value::Setting,
    },
    Told {
        names: "dpkg",
        long: &["--pre-invoke", "--post-invoke", "--status-logger"],
        short: "",
        valued: "",
        value: Value::Text,
    },
    Told { names: "rpm", long: &["--pipe"], short: "", valued: "", value: Value::Text },
    Told { names: "rpm", long: &["--eval", "--define"], short: "ED", valued: "", value: Value::Macros },
    Told { names: "hg", long: &["--config"], short: "", valued: "", value: Value::Setting },
    Told {
        names: "svn",
        long: &["--editor-cmd", "--diff-cmd", "--diff3-cmd"],
        short: "",
        valued: "",
        value: Value::Text,
    },
    Told { names: "svn", long: &["--config-option"], short: "", valued: "", value: Value::Setting },
];

/// Settings by their beginnings, in small letters, that name no program.
const PLAIN_SETTINGS: &[&str] = &[
    "acquire::",
    "debug::",
    "apt::get::",
    "apt::install-",
    "dpkg::lock::",
    "dpkg::options::=--force-conf",
    "dpkg::progress",
    "dpkg::use-pty",
    "ui.interactive=",
    "ui.username=",
    "ui.verbose=",
    "progress.",
];

impl Reading<'_> {
    /// What options tell the program of `run` to run.
    pub(super) fn runs_told(&mut self, run: &Run<'_>, state: &State) {
        let words = &run.argv[1..];
        for told in TOLD.iter().filter(|told| told.names.split(' ').any(|name| name == run.name)) {
            for (index, field) in words.iter().enumerate() {
                let value = bundled(&field.text, told.short, told.valued).or(begun(&field.text, told.long));
                let next = || words.get(index + 1).cloned().unwrap_or_default();
                let own = |value: &str| Field { text: value.to_owned(), certainty: field.certainty };
                if let Some(value) = value.map(|value| if value.is_empty() { next() } else { own(value) }) {
                    self.told_value(told.value, &value, run.name, state);
                }
            }
        }
    }

    fn told_value(&mut self, kind: Value, value: &Field, who: &str, state: &State) {
        let text = value.text.to_ascii_lowercase();
        let runs = match kind {
            Value::Text => {
                self.inner_text(value, who, state);
                false
            }
            // `Acquire::http::Proxy-Auto-Detect` names a program.
            Value::Setting => text.contains("auto") || !PLAIN_SETTINGS.iter().any(|plain| text.starts_with(plain)),
            Value::Macros => text.contains("%("),
        };
        if runs || !value.is_known() {
            self.unknown(format!("an option of `{who}` may run something: `{}`", value.text));
        }
    }
}
