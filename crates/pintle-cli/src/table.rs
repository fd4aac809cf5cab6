//! Lists that fit the terminal: columns, and lines that are wrapped between words. A word is never broken and nothing is
//! cut, so that every hint can be read and typed again.

use std::os::fd::AsFd;

use unicode_width::UnicodeWidthStr as _;

/// A space at which no line is broken, until it is shown: between a number and its unit, or in front of a number that is
/// padded, so that how long something took moves nothing.
const GLUE: char = '\u{a0}';

/// What takes room where lines are broken and is not shown: how long something took then breaks no line elsewhere. A
/// character of private use, which no text of people has.
const PAD: char = '\u{e0ff}';

/// Units that no line breaks off their numbers.
const UNITS: [&str; 22] = [
    "µs", "ms", "s", "min", "h", "days", "bytes", "KiB", "MiB", "GiB", "tokens", "runs", "run", "times", "call",
    "calls", "turn", "turns", "hook", "hooks", "text", "texts",
];

/// The width of what is not a terminal: a line stays a line, for whoever searches in it.
pub(crate) const UNBOUNDED: usize = usize::MAX;

/// The narrowest width that is believed: in fewer columns nothing is readable.
const LEAST_COLUMNS: usize = 40;

/// The fewest columns that are worth a column of their own for the last cell of a row; with less, it stands below.
const LEAST_CELL: usize = 32;

/// The widest that a column gets by its cells: beyond it, nothing would be left of a line for the others.
const WIDEST_CELL: usize = 44;

/// Between two columns.
const GAP: usize = 2;

/// How much further in than its row stands what is below it.
const BELOW: usize = 5;

/// How wide a line on `stream` may be: as `COLUMNS` says, else as the terminal is, else as wide as it likes.
pub(crate) fn columns(stream: impl AsFd) -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let told = told.or_else(|| terminal_size::terminal_size_of(stream).map(|(columns, _)| usize::from(columns.0)));
    told.filter(|columns| *columns > 0).map_or(UNBOUNDED, |columns| columns.max(LEAST_COLUMNS))
}

/// The same of standard output.
pub(crate) fn out_columns() -> usize {
    columns(std::io::stdout())
}

/// `text`, which is broken nowhere.
pub(crate) fn glued(text: &str) -> String {
    text.replace(' ', &GLUE.to_string())
}

/// `text`, which is broken nowhere, and takes the room of so many columns where lines are broken.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    let mut padded = glued(text);
    padded.extend(std::iter::repeat_n(PAD, columns.saturating_sub(text.width())));
    padded
}

/// `text` without what only keeps its width.
pub(crate) fn unglued(text: &str) -> String {
    let text = text.replace(PAD, "");
    let words = text.split(' ').map(|word| word.trim_start_matches(GLUE).replace(GLUE, " "));
    words.collect::<Vec<_>>().join(" ")
}

/// The lines of `text`, each wrapped to `columns`, what follows the first of each indented by `hang`.
pub(crate) fn folded(text: &str, columns: usize, hang: usize) -> String {
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        shown += &fold(line.trim_end_matches('\n'), columns, hang);
        if line.ends_with('\n') {
            shown.push('\n');
        }
    }
    shown
}

/// A line of ours, wrapped to `columns`: what follows its first line stands a little further in. A command that somebody
/// will copy stays whole.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    let of_line = |line: &str| {
        let indent = line.len() - line.trim_start_matches(' ').len();
        fold(&whole_commands(line), columns, indent + HANG)
    };
    text.split('\n').map(of_line).collect::<Vec<_>>().join("\n")
}

/// `line`, whose commands are broken nowhere: those in backquotes, and one that the line ends with.
fn whole_commands(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    for (number, part) in line.split('`').enumerate() {
        if number > 0 {
            kept.push('`');
        }
        match (is_command(part), number % 2, last_command(part)) {
            (true, 1, _) => kept += &glued(part),
            (_, 0, Some(at)) if line.ends_with(part) => kept += &(part[..at].to_owned() + &glued(&part[at..])),
            (..) => kept += part,
        }
    }
    kept
}

/// Where the command begins that `text` ends with, on a line of its own or behind a colon.
fn last_command(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start_matches(' ').len();
    if is_command(&text[start..]) {
        return Some(start);
    }
    text.match_indices(": ").map(|(at, colon)| at + colon.len()).find(|at| is_command(&text[*at..]))
}

/// Whether `text` begins with a command of this program, or with one that leads to the folder for it.
fn is_command(text: &str) -> bool {
    text.starts_with("pintle ") || text.starts_with("cd ")
}

/// How far in the rest of a line of ours stands that does not fit.
const HANG: usize = 2;

/// Whether `word` is a unit behind the number that `before` ends with.
fn is_unit(before: &str, word: &str) -> bool {
    let plain = |text: &str| match text.contains('\u{1b}') {
        true => anstream::adapter::strip_str(text).to_string(),
        false => text.to_owned(),
    };
    let number = plain(before);
    let number = number.rsplit(GLUE).next().unwrap_or_default().trim_start_matches(['(', '≤', '~']);
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '_'));
    is_number && !number.ends_with([',', '.']) && {
        let unit = plain(word);
        UNITS.contains(&unit.trim_end_matches([',', '.', ';', ':', ')', PAD]))
    }
}

/// `line`, with each number and its unit as one word, and with the number of an error of the system whole.
fn with_units(line: &str) -> String {
    let line = &line.replace("(os error ", &glued("(os error "));
    let mut joined = String::with_capacity(line.len());
    let mut before = "";
    for (number, word) in line.split(' ').enumerate() {
        if number > 0 {
            joined.push(if is_unit(before, word) { GLUE } else { ' ' });
        }
        joined.push_str(word);
        before = word;
    }
    joined
}

/// One line, wrapped between words to `columns`; what follows the first is indented by `hang`. Colours go on behind a
/// break. A word that is wider than all of it stands on a line of its own.
pub(crate) fn fold(line: &str, columns: usize, hang: usize) -> String {
    let (mut shown, mut used, mut gap) = (String::with_capacity(line.len()), 0_usize, 0_usize);
    let mut is_empty = true;
    let mut colours = String::new();
    let hang = hang.min(columns / 2);
    for (number, word) in with_units(line).split(' ').enumerate() {
        gap += usize::from(number > 0);
        let width = width(word);
        if width == 0 {
            // Nothing but colours: no blank is shown for them, at the end of a line least of all.
            shown.push_str(word);
            recolour(&mut colours, word);
            continue;
        }
        if !is_empty && used.saturating_add(gap + width) > columns {
            if !colours.is_empty() {
                shown.push_str("\u{1b}[0m");
            }
            shown.push('\n');
            shown.extend(std::iter::repeat_n(' ', hang));
            shown.push_str(&colours);
            used = hang;
        } else {
            shown.extend(std::iter::repeat_n(' ', gap));
            used += gap;
        }
        shown.push_str(word);
        recolour(&mut colours, word);
        used += width;
        is_empty = false;
        gap = 0;
    }
    shown.replace(PAD, "").replace(GLUE, " ")
}

/// Which colours are on behind `word`, of those that were on in front of it.
fn recolour(colours: &mut String, word: &str) {
    let mut rest = word;
    while let Some(start) = rest.find('\u{1b}') {
        let end = rest[start..].find('m').map_or(rest.len(), |end| start + end + 1);
        match &rest[start..end] {
            "\u{1b}[0m" | "\u{1b}[m" => colours.clear(),
            colour => colours.push_str(colour),
        }
        rest = &rest[end..];
    }
}

/// The columns that `text` takes, without its colours.
fn width(text: &str) -> usize {
    if text.contains('\u{1b}') { anstream::adapter::strip_str(text).to_string().width() } else { text.width() }
}

/// Rows whose cells stand in columns, with lines between them.
#[derive(Default)]
pub(crate) struct Table {
    indent: usize,
    lines: Vec<TableLine>,
}

enum TableLine {
    /// Cells; the last one has the rest of the line. Where too little of it is left, these lines stand below the others
    /// in its place, on one if they have room there.
    Row(Vec<String>, Vec<String>),
    /// A heading, or what belongs to the row above; what follows its first line is indented by so much.
    Text(String, usize),
}

impl Table {
    /// A table whose rows are indented by so much.
    pub(crate) fn indented(indent: usize) -> Self {
        Self { indent, lines: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        let below = cells.last().cloned().into_iter().collect();
        self.lines.push(TableLine::Row(cells, below));
    }

    /// Adds a row whose last cell is these lines where it stands below the others, or one of all of them.
    pub(crate) fn row_or_below(
        &mut self,
        cells: impl IntoIterator<Item = String>,
        below: impl IntoIterator<Item = String>,
    ) {
        self.lines.push(TableLine::Row(cells.into_iter().collect(), below.into_iter().collect()));
    }

    /// Adds a line between rows; what does not fit is indented by `hang`.
    pub(crate) fn line(&mut self, text: impl Into<String>, hang: usize) {
        self.lines.push(TableLine::Text(text.into(), hang));
    }

    /// Everything, for lines of `columns`.
    pub(crate) fn text(&self, columns: usize) -> String {
        let widths = self.widths();
        let lead = widths.iter().fold(self.indent, |lead, width| lead + width + GAP);
        let below = columns.saturating_sub(lead) < LEAST_CELL;
        let shown = self.lines.iter().map(|line| match line {
            TableLine::Text(text, hang) => folded(text, columns, *hang),
            TableLine::Row(cells, lines) if below => self.stacked((cells, lines), &widths, columns),
            TableLine::Row(cells, _) => fold(&self.side_by_side(cells, &widths), columns, lead),
        });
        shown.map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// The width of each column but the last.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = Vec::new();
        for line in &self.lines {
            let TableLine::Row(cells, _) = line else { continue };
            let leading = cells.len().saturating_sub(1);
            widths.resize(widths.len().max(leading), 0);
            for (widest, cell) in widths.iter_mut().zip(&cells[..leading]) {
                *widest = (*widest).max(width(cell).min(WIDEST_CELL));
            }
        }
        widths
    }

    fn side_by_side(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = " ".repeat(self.indent);
        for (number, cell) in cells.iter().enumerate() {
            line.push_str(cell);
            if number + 1 < cells.len() {
                let rest = widths.get(number).map_or(0, |widest| widest.saturating_sub(width(cell)));
                line.extend(std::iter::repeat_n(' ', rest + GAP));
            }
        }
        line
    }

    /// The last cell below the others: too little is left beside them.
    fn stacked(&self, (cells, below): (&[String], &[String]), widths: &[usize], columns: usize) -> String {
        let Some((_, leading)) = cells.split_last() else { return String::new() };
        let hang = self.indent + BELOW;
        let head = fold(&self.side_by_side(leading, widths), columns, hang);
        let below: Vec<&str> = below.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
        if below.is_empty() {
            return head;
        }
        let together = below.join("  ");
        let fits = hang + width(&together) <= columns;
        let lines = if fits { vec![together.as_str()] } else { below };
        let folded = lines.iter().map(|line| fold(&format!("{:hang$}{line}", ""), columns, hang));
        folded.fold(head.trim_end().to_owned(), |text, line| text + "\n" + line.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_nowhere_else() {
        for (line, columns, hang, expected) in [
            ("one two three", 80, 2, "one two three"),
            ("one two three", 8, 2, "one two\n  three"),
            ("  one  two", 80, 2, "  one  two"),
            ("  one  two", 8, 4, "  one\n    two"),
            ("a /a/very/long/path b", 8, 2, "a\n  /a/very/long/path\n  b"),
            ("took     3\u{a0}ms now", 13, 2, "took     3 ms\n  now"),
            ("it took 3 ms, and", 11, 2, "it took\n  3 ms, and"),
            ("(2.5 s) 3 dogs", 9, 0, "(2.5 s) 3\ndogs"),
            ("x: no file (os error 2)", 14, 2, "x: no file\n  (os error 2)"),
            ("日本 日本 日本", 9, 0, "日本 日本\n日本"),
            ("", 80, 2, ""),
        ] {
            assert_eq!(fold(line, columns, hang), expected, "{line} {columns}");
        }
        let took = format!("took {} and", padded("3 ms", 8));
        assert_eq!((fold(&took, 13, 2).as_str(), unglued(&took).as_str()), ("took 3 ms\n  and", "took 3 ms and"));
        assert_eq!(unglued("took \u{a0}\u{a0}3\u{a0}ms now"), "took 3 ms now");
        assert_eq!(folded("a b c d\ne\n", 4, 1), "a b\n c d\ne\n");
    }

    #[test]
    fn commands_stay_whole() {
        for (line, expected) in [
            ("see `pintle why --hook x` now", "see\n  `pintle why --hook x`\n  now"),
            ("  pintle approvals approve 1", "  pintle approvals approve 1"),
            ("to go on: pintle sessions resume x", "to go on:\n  pintle sessions resume x"),
        ] {
            assert_eq!(wrapped(line, 10), expected, "{line}");
        }
    }

    #[test]
    fn colours_take_no_room_and_go_on_behind_a_break() {
        let line = "\u{1b}[1mone two\u{1b}[0m three";
        assert_eq!(fold(line, 13, 2), line);
        assert_eq!(fold("one \u{1b}[1m\u{1b}[0m ", 13, 2), "one\u{1b}[1m\u{1b}[0m");
        assert_eq!(fold(line, 6, 2), "\u{1b}[1mone\u{1b}[0m\n  \u{1b}[1mtwo\u{1b}[0m\n  three");
    }

    #[test]
    fn a_last_cell_has_the_rest_of_its_line_or_lines_of_its_own() {
        let mut table = Table::indented(2);
        table.line("head", 2);
        table.row(["a".to_owned(), "bcd".to_owned(), "one two three four five six seven eight".to_owned()]);
        table.row(["abc".to_owned(), String::new(), "nine".to_owned()]);
        let row = "  a    bcd  one two three four five six seven eight\n";
        assert_eq!(table.text(UNBOUNDED), format!("head\n{row}  abc       nine\n"));
        let row = "  a    bcd  one two three four five six\n            seven eight\n";
        assert_eq!(table.text(44), format!("head\n{row}  abc       nine\n"));
        let row = "  a    bcd\n       one two three four five six seven\n       eight\n";
        assert_eq!(table.text(40), format!("head\n{row}  abc\n       nine\n"));
    }
}
