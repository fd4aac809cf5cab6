//! A line of the log among the answers of a terminal: as the other notes there.

use std::fmt::{self, Debug, Write as _};

use anstyle::Style;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::text::whole;

/// What it is, in its style, what was said, and what belongs to it.
pub(super) struct LogLine {
    pub(super) error: Style,
    pub(super) warning: Style,
    pub(super) note: Style,
}

impl<S, N> FormatEvent<S, N> for LogLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut to: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (style, word) = match *event.metadata().level() {
            Level::ERROR => (self.error, "error"),
            Level::WARN => (self.warning, "warning"),
            _ => (self.note, "note"),
        };
        let mut said = Said::default();
        event.record(&mut said);
        let line = said.line();
        if to.has_ansi_escapes() {
            writeln!(to, "{style}{word}:{style:#} {line}")
        } else {
            writeln!(to, "{word}: {line}")
        }
    }
}

/// The words of a line of the log.
#[derive(Default)]
struct Said {
    message: String,
    /// The other members, by their names.
    members: Vec<String>,
}

impl Said {
    fn line(&self) -> String {
        match (self.message.is_empty(), self.members.is_empty()) {
            (false, true) => whole(&self.message),
            (false, false) => whole(&format!("{} ({})", self.message, self.members.join(", "))),
            (true, _) => whole(&self.members.join(", ")),
        }
    }

    fn take(&mut self, field: &Field, text: &str) {
        if field.name() == "message" {
            self.message.push_str(text);
        } else {
            self.members.push(format!("{}: {text}", field.name()));
        }
    }
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        if write!(text, "{value:?}").is_ok() {
            self.take(field, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const WARNING: Style = Style::new().bold();
    const LINE: LogLine = LogLine { error: Style::new(), warning: WARNING, note: Style::new() };

    #[test]
    fn each_is_one_line_that_says_what_it_is() {
        let (lines, writes) = (Lines::default(), Lines::default());
        let to = lines.clone();
        let plain = tracing_subscriber::fmt().with_writer(move || to.clone()).with_ansi(false);
        tracing::subscriber::with_default(plain.event_format(LINE).finish(), || {
            tracing::warn!(lost = 2, why = "full", "records were lost:\nthe store is away");
            tracing::error!(error = %"gone", "no more");
            tracing::info!(agent = "main", "hooks.told");
        });
        let said = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let expected = [
            "warning: records were lost: the store is away (lost: 2, why: full)",
            "error: no more (error: gone)",
            "note: hooks.told (agent: main)",
        ];
        assert_eq!(said.lines().collect::<Vec<_>>(), expected);
        let to = writes.clone();
        let coloured = tracing_subscriber::fmt().with_writer(move || to.clone()).with_ansi(true);
        tracing::subscriber::with_default(coloured.event_format(LINE).finish(), || tracing::warn!("told"));
        let said = String::from_utf8(writes.0.lock().unwrap().clone()).unwrap();
        assert_eq!(said, format!("{WARNING}warning:{WARNING:#} told\n"));
    }
}
