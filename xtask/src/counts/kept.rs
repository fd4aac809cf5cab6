//! The committed file: a table for each unit, a line for each case.

use std::fmt::Write as _;

use anyhow::Context;

use super::counted::Counts;

/// Reads the committed counts.
pub(crate) fn read(text: &str) -> anyhow::Result<Counts> {
    let mut counts = Counts::new();
    for (unit, cases) in text.parse::<toml::Table>()? {
        let cases = cases.as_table().with_context(|| format!("`{unit}` is no table"))?;
        for (case, count) in cases {
            let count = count.as_integer().and_then(|count| u64::try_from(count).ok());
            counts.insert((unit.clone(), case.clone()), count.with_context(|| format!("`{case}` is no count"))?);
        }
    }
    Ok(counts)
}

/// The text of the committed file.
pub(crate) fn written(version: &str, counts: &Counts) -> String {
    let mut text = format!(
        "# Counts of the hot path with Rust {version}, written by `cargo xtask bench -- --count --write`.\n\
         # docs/reference/performance.md says what they are.\n"
    );
    let mut last = "";
    for ((unit, case), count) in counts {
        if unit != last {
            writeln!(text, "\n[{unit}]").expect("a string takes every write");
            last = unit;
        }
        writeln!(text, "\"{case}\" = {count}").expect("a string takes every write");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let rows =
            [("allocations", "a/b", 0), ("instructions", "a/b", 12), ("instructions", "c d", u64::from(u32::MAX))];
        let counts: Counts = rows.map(|(unit, case, count)| ((unit.to_owned(), case.to_owned()), count)).into();
        let text = written("1.2.3", &counts);
        assert!(text.contains("\n[allocations]\n\"a/b\" = 0\n\n[instructions]\n\"a/b\" = 12\n"), "{text}");
        assert_eq!(read(&text).unwrap(), counts);
    }

    #[test]
    fn what_is_no_count_is_an_error() {
        for text in ["a = 1", "[a]\nb = -1", "[a]\nb = \"1\"", "[a"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
