//! Programs that print a number and nothing else.

use crate::number;
use crate::read::Reading;
use crate::run::Run;
use crate::state::{Field, Output, State, Stdin};

/// Most numbers that `seq` prints here; each is read.
const NUMBERS: i64 = 128;

impl Reading<'_> {
    /// A number, if `run` prints just that, or the numbers of a short row.
    pub(super) fn counted(&mut self, run: &Run<'_>, state: &State) -> Output {
        if run.name == "seq" {
            return row(&run.argv[1..]).map_or(Output::Unknown, Output::Known);
        }
        let words: Vec<&str> = run.argv[1..].iter().map(|field| field.text.as_str()).collect();
        if run.argv.iter().all(Field::is_known) && counts(run.name, &words, state) {
            Output::Known(format!("{}\n", number::of(run.name)))
        } else {
            Output::Unknown
        }
    }
}

fn counts(name: &str, words: &[&str], state: &State) -> bool {
    let operands = words.iter().filter(|word| !word.starts_with('-')).count();
    let fed = || matches!(&state.stdin, Stdin::Known(text) if number::is_number(text.trim()));
    match name {
        "wc" => operands == 0 && matches!(words, ["-l" | "-c" | "-w" | "-m" | "--lines" | "--bytes" | "--words"]),
        "grep" | "egrep" | "fgrep" | "rg" => {
            operands <= 2
                && words.iter().any(|word| is_cluster(word, 'c') || *word == "--count")
                && !words.iter().any(|word| is_cluster(word, 'r') || is_cluster(word, 'R') || is_cluster(word, 'H'))
        }
        "nproc" => operands == 0,
        "id" => matches!(words, ["-u" | "-g"]),
        "date" => words.last().is_some_and(|format| is_date(format)) && operands <= 1,
        "stat" => {
            matches!(words, ["-c", "%s" | "%Y" | "%X" | "%Z" | "%i" | "%h" | "%a" | "%u", _] | ["-f", "%z" | "%m", _])
        }
        "tput" => matches!(words, ["cols" | "lines"]),
        "tr" => fed() && matches!(words, ["-d", " " | "\\n" | "[:space:]" | " \\n"]),
        "head" | "tail" => fed() && matches!(words, ["-1" | "-n1"] | ["-n", "1"]),
        _ => false,
    }
}

/// Whether `word` is a row of short options with `letter` among them.
fn is_cluster(word: &str, letter: char) -> bool {
    word.strip_prefix('-')
        .is_some_and(|letters| letters.chars().all(|letter| letter.is_ascii_alphabetic()) && letters.contains(letter))
}

/// Whether `date` prints digits alone for `format`.
fn is_date(format: &str) -> bool {
    let Some(mut rest) = format.strip_prefix("+%") else { return false };
    loop {
        let Some(letter) = rest.chars().next().filter(|letter| "sNYmdHMSjuwyGVUWI".contains(*letter)) else {
            return false;
        };
        rest = &rest[letter.len_utf8()..];
        match rest.strip_prefix('%') {
            Some(next) => rest = next,
            None => return rest.is_empty(),
        }
    }
}

/// What `seq` prints, a number a line.
fn row(words: &[Field]) -> Option<String> {
    if words.iter().any(|field| !field.is_exact()) {
        return None;
    }
    let numbers = words.iter().map(|field| field.text.parse::<i64>().ok()).collect::<Option<Vec<i64>>>()?;
    let (first, step, last) = match numbers.as_slice() {
        [last] => (1, 1, *last),
        [first, last] => (*first, 1, *last),
        [first, step, last] => (*first, *step, *last),
        _ => return None,
    };
    // A leading zero or a sign would be printed differently.
    if step == 0
        || words
            .iter()
            .any(|field| field.text.len() > 9 || (field.text.len() > 1 && field.text.starts_with(['0', '+'])))
    {
        return None;
    }
    let count = (last - first) / step + 1;
    (count <= NUMBERS).then(|| (0..count.max(0)).map(|index| format!("{}\n", first + index * step)).collect())
}
