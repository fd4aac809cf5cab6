//! Rounds, medians and the table that they end in; shared by every benchmark of the workspace.

use std::io::Write as _;
use std::time::Duration;

use anyhow::Context as _;

/// Rounds of which the median counts. Odd, so that it is a value that was measured. Many short ones rather than few
/// long ones: a round differs from the next by where the kernel puts threads, much more than by chance.
const ROUNDS: usize = 15;
/// A share of a round runs first and is not counted: caches, pipes and children are warm afterwards.
const WARM_UP_SHARE: usize = 10;

/// Runs an exchange so many times; answers how long the exchanges took, without what stands between them.
pub(crate) type Side<'a> = &'a mut dyn FnMut(usize) -> anyhow::Result<Duration>;

/// How much is to be run.
#[derive(Clone, Copy, PartialEq)]
enum Extent {
    /// Everything, and it is judged.
    Full,
    /// Each case once, only to see that it runs.
    Once,
}

/// The figures so far.
pub(crate) struct Report {
    extent: Extent,
    rows: Vec<[String; 6]>,
}

impl Report {
    /// As the command line wants it: `cargo bench` measures, anything else runs each case once.
    /// `None` if only the names of tests are asked for.
    pub(crate) fn from_args() -> Option<Self> {
        let has = |word: &str| std::env::args().any(|argument| argument == word);
        let extent = if has("--bench") && !has("--test") { Extent::Full } else { Extent::Once };
        let head = ["what", "measured", "floor", "ratio", "target", ""].map(str::to_owned);
        (!has("--list")).then(|| Self { extent, rows: vec![head] })
    }

    /// Whether the case of this name is to be run: all are, unless the command line names some.
    pub(crate) fn wants(&self, word: &str) -> bool {
        let mut named = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).peekable();
        named.peek().is_none() || named.any(|argument| word.contains(&argument))
    }

    /// The medians of alternating rounds of `times` exchanges each, one for each of `sides`: the time of one exchange.
    pub(crate) fn medians<const N: usize>(
        &self,
        times: usize,
        mut sides: [Side<'_>; N],
    ) -> anyhow::Result<[Duration; N]> {
        let (rounds, times) = match self.extent {
            Extent::Full => (ROUNDS, times),
            Extent::Once => (1, 1),
        };
        for side in &mut sides {
            side(times.div_ceil(WARM_UP_SHARE))?;
        }
        let mut measured = [const { Vec::new() }; N];
        for _ in 0..rounds {
            for (side, row) in sides.iter_mut().zip(&mut measured) {
                let took = side(times)?;
                row.push(took.div_f64(times as f64));
            }
        }
        Ok(measured.map(|mut row| {
            row.sort();
            row[row.len() / 2]
        }))
    }

    /// A figure that has a limit of its own. `limit` is inclusive.
    pub(crate) fn limited<T: PartialOrd + Copy>(&mut self, what: &str, value: T, limit: T, show: impl Fn(T) -> String) {
        self.row(
            what,
            [show(value), String::new(), String::new(), format!("<= {}", show(limit))],
            Some(value <= limit),
        );
    }

    /// A figure that stands beside the others, with no target.
    pub(crate) fn noted(&mut self, what: &str, value: String) {
        self.row(what, [value, String::new(), String::new(), String::new()], None);
    }

    /// Adds a line: measured, floor, ratio, target, and whether it holds where there is one.
    pub(crate) fn row(&mut self, what: &str, [measured, floor, ratio, target]: [String; 4], holds: Option<bool>) {
        let judged = match holds {
            Some(true) => "pass",
            Some(false) => "MISS",
            None => "",
        };
        self.rows.push([what.to_owned(), measured, floor, ratio, target, judged.to_owned()]);
    }

    /// Writes the table. Says nothing of what was run once: those figures mean nothing.
    pub(crate) fn print(self) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        if self.extent == Extent::Once {
            let cases = self.rows.len() - 1;
            return writeln!(out, "{cases} cases ran once").context("the output is closed");
        }
        let mut widths = [0; 6];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let line = |row: &[String; 6]| {
            let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            format!("| {} |", cells.join(" | "))
        };
        for (i, row) in self.rows.iter().enumerate() {
            writeln!(out, "{}", line(row)).context("the output is closed")?;
            if i == 0 {
                writeln!(out, "{}", line(&widths.map(|width| "-".repeat(width)))).context("the output is closed")?;
            }
        }
        Ok(())
    }
}

/// A time with three digits that say something.
pub(crate) fn shown(time: Duration) -> String {
    let nanos = time.as_secs_f64() * 1e9;
    match nanos {
        0.0..1e3 => format!("{nanos:.1} ns"),
        1e3..1e6 => format!("{:.2} µs", nanos / 1e3),
        _ => format!("{:.2} ms", nanos / 1e6),
    }
}
