//! The counts of now against those that are committed.

use std::collections::BTreeSet;
use std::fmt;

use super::counted::{Counts, Key};

/// The share by which a count may differ from the committed one. The same build repeats far more closely than this, and a
/// change that costs less is not worth a stop.
const TOLERANCE: f64 = 0.02;

/// What became of a count.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Finding {
    /// It is what it was.
    Same,
    /// It is more than is tolerated.
    More,
    /// It is so much less that a later loss would go unseen.
    Less,
    /// It is committed nowhere.
    New,
    /// It is committed, and nothing counts it any more.
    Gone,
}

impl Finding {
    fn of(committed: Option<u64>, now: Option<u64>) -> Self {
        match (committed, now) {
            (None, _) => Self::New,
            (Some(_), None) => Self::Gone,
            (Some(committed), Some(now)) => {
                let (committed, now) = (committed as f64, now as f64);
                if now > committed * (1.0 + TOLERANCE) {
                    Self::More
                } else if now < committed * (1.0 - TOLERANCE) {
                    Self::Less
                } else {
                    Self::Same
                }
            }
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Same => "",
            Self::More => "MORE",
            Self::Less => "less",
            Self::New => "NEW",
            Self::Gone => "GONE",
        }
    }
}

/// A line for each case.
pub(crate) struct Comparison {
    rows: Vec<(Key, Option<u64>, Option<u64>, Finding)>,
}

impl Comparison {
    pub(crate) fn of(committed: &Counts, now: &Counts) -> Self {
        let keys: BTreeSet<&Key> = committed.keys().chain(now.keys()).collect();
        let row = |key: &Key| {
            let (committed, now) = (committed.get(key).copied(), now.get(key).copied());
            (key.clone(), committed, now, Finding::of(committed, now))
        };
        Self { rows: keys.into_iter().map(row).collect() }
    }

    /// Whether nothing costs more than it did, and every case is committed and counted.
    pub(crate) fn holds(&self) -> bool {
        self.rows.iter().all(|(.., finding)| matches!(finding, Finding::Same | Finding::Less))
    }

    fn found(&self, wanted: Finding) -> usize {
        self.rows.iter().filter(|(.., finding)| *finding == wanted).count()
    }

    /// What there is to be done, if anything.
    fn advice(&self) -> String {
        let [more, less] = [Finding::More, Finding::Less].map(|finding| self.found(finding));
        let strange = self.found(Finding::New) + self.found(Finding::Gone);
        let percent = TOLERANCE * 100.0;
        let again = "`cargo xtask bench -- --count --write`";
        let mut advice = String::new();
        if more > 0 {
            advice += &format!(
                "{more} of them grew by more than {percent} %: make them cheaper, or, where it is worth it, write the file again and say why: {again}\n"
            );
        }
        if strange > 0 {
            advice += &format!("{strange} of them are not both committed and counted; write the file again: {again}\n");
        }
        if less > 0 {
            advice += &format!(
                "{less} of them fell by more than {percent} %; write the file again, so that it stays so: {again}\n"
            );
        }
        advice
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |count: Option<u64>| count.map_or_else(String::new, |count| count.to_string());
        let head = ["what", "case", "committed", "now", "change", ""].map(str::to_owned);
        let cells = self.rows.iter().map(|((unit, case), committed, now, finding)| {
            let change = match (committed, now) {
                (Some(committed @ 1..), Some(now)) => {
                    format!("{:+.2} %", (*now as f64 / *committed as f64 - 1.0) * 100.0)
                }
                _ => String::new(),
            };
            [unit.clone(), case.clone(), number(*committed), number(*now), change, finding.word().to_owned()]
        });
        let rows: Vec<[String; 6]> = std::iter::once(head).chain(cells).collect();
        let widths: [usize; 6] =
            std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default());
        for [unit, case, committed, now, change, word] in &rows {
            let [a, b, c, d, e, g] = widths;
            writeln!(f, "| {unit:<a$} | {case:<b$} | {committed:>c$} | {now:>d$} | {change:>e$} | {word:<g$} |")?;
        }
        write!(f, "{} counts\n{}", self.rows.len(), self.advice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(rows: &[(&str, u64)]) -> Counts {
        rows.iter().map(|(case, count)| (("instructions".to_owned(), (*case).to_owned()), *count)).collect()
    }

    #[test]
    fn two_in_a_hundred_are_tolerated_and_no_more() {
        let (committed, zero) = (Some(1000), Some(0));
        for (committed, now, expected) in [
            (committed, Some(1000), Finding::Same),
            (committed, Some(1020), Finding::Same),
            (committed, Some(1021), Finding::More),
            (committed, Some(980), Finding::Same),
            (committed, Some(979), Finding::Less),
            (committed, None, Finding::Gone),
            (None, Some(1), Finding::New),
            (zero, Some(0), Finding::Same),
            (zero, Some(1), Finding::More),
            (Some(7), Some(8), Finding::More),
        ] {
            assert_eq!(Finding::of(committed, now), expected, "{committed:?} and {now:?}");
        }
    }

    #[test]
    fn only_what_grows_appears_or_goes_fails() {
        let committed = counts(&[("a", 1000), ("b", 1000)]);
        for (now, holds, said) in [
            (counts(&[("a", 1000), ("b", 1000)]), true, "2 counts\n"),
            (counts(&[("a", 1000), ("b", 900)]), true, "1 of them fell by more than 2 %"),
            (counts(&[("a", 1030), ("b", 1000)]), false, "1 of them grew by more than 2 %"),
            (counts(&[("a", 1000)]), false, "1 of them are not both committed and counted"),
            (counts(&[("a", 1000), ("b", 1000), ("c", 1)]), false, "1 of them are not both committed and counted"),
        ] {
            let comparison = Comparison::of(&committed, &now);
            let text = comparison.to_string();
            assert_eq!(comparison.holds(), holds, "{text}");
            assert!(text.contains(said), "{text}");
        }
    }

    #[test]
    fn the_table_has_both_numbers_and_the_change() {
        let text = Comparison::of(&counts(&[("a", 1000)]), &counts(&[("a", 1100)])).to_string();
        let row: Vec<&str> = text.lines().nth(1).unwrap().split('|').map(str::trim).collect();
        assert_eq!(row, ["", "instructions", "a", "1000", "1100", "+10.00 %", "MORE", ""]);
    }
}
