//! `{a,b}` and `{1..3}`.

use crate::bounds;
use crate::syntax::{Part, Word};

/// The longest number of a range with zeros before it: no name of a file is longer.
const MAX_WIDTH: usize = 255;

/// A letter outside of quotes, or a part that stays whole.
#[derive(Clone)]
enum Atom {
    Letter(char),
    Whole(Part),
}

/// The words that `word` becomes; nothing if there are too many.
pub(super) fn expand(word: &Word) -> Option<Vec<Word>> {
    let mut atoms = Vec::new();
    for part in &word.parts {
        match part {
            Part::Plain(text) => atoms.extend(text.chars().map(Atom::Letter)),
            Part::Quoted(_)
            | Part::Parameter(..)
            | Part::Command(..)
            | Part::ProcessOut(_)
            | Part::ProcessIn(_)
            | Part::Arithmetic(_)
            | Part::List(_) => atoms.push(Atom::Whole(part.clone())),
        }
    }
    let mut done = Vec::new();
    let mut open = vec![atoms];
    let mut work = 0_usize;
    while let Some(atoms) = open.pop() {
        work += atoms.len();
        if done.len() + open.len() > bounds::WORDS || work > bounds::TEXT_BYTES * 4 {
            return None;
        }
        match first_braces(&atoms)? {
            None => done.push(Word { parts: parts(&atoms), raw: word.raw.clone() }),
            Some((start, end, choices)) => {
                if choices.len() > bounds::WORDS {
                    return None;
                }
                for choice in choices.into_iter().rev() {
                    let mut next = atoms[..start].to_vec();
                    next.extend(choice);
                    next.extend_from_slice(&atoms[end..]);
                    open.push(next);
                }
            }
        }
    }
    Some(done)
}

type Choices = (usize, usize, Vec<Vec<Atom>>);

/// The first braces that are expanded: where they begin and end, and what they stand for; nothing at all if there are
/// too many that nothing closes.
fn first_braces(atoms: &[Atom]) -> Option<Option<Choices>> {
    let mut tries = 0;
    for start in 0..atoms.len() {
        if !is(atoms.get(start), '{') {
            continue;
        }
        // Braces that nothing closes would make this quadratic.
        tries += 1;
        if tries > 64 {
            return None;
        }
        let Some((end, commas)) = closing(atoms, start) else { continue };
        if !commas.is_empty() {
            let mut choices = Vec::new();
            let mut from = start + 1;
            for comma in commas.into_iter().chain([end]) {
                choices.push(atoms[from..comma].to_vec());
                from = comma + 1;
            }
            return Some(Some((start, end + 1, choices)));
        }
        if let Some(choices) = range(&atoms[start + 1..end]) {
            return Some(Some((start, end + 1, choices)));
        }
    }
    Some(None)
}

fn is(atom: Option<&Atom>, letter: char) -> bool {
    matches!(atom, Some(Atom::Letter(found)) if *found == letter)
}

/// Where the braces that open at `start` close, and the commas between.
fn closing(atoms: &[Atom], start: usize) -> Option<(usize, Vec<usize>)> {
    let (mut depth, mut commas) = (0_usize, Vec::new());
    for (index, atom) in atoms.iter().enumerate().skip(start) {
        match atom {
            Atom::Letter('{') => depth += 1,
            Atom::Letter('}') if depth == 1 => return Some((index, commas)),
            Atom::Letter('}') => depth -= 1,
            Atom::Letter(',') if depth == 1 => commas.push(index),
            Atom::Letter(_) | Atom::Whole(_) => {}
        }
    }
    None
}

/// `1..5`, `1..9..2`, `a..e`.
fn range(atoms: &[Atom]) -> Option<Vec<Vec<Atom>>> {
    let mut text = String::new();
    for atom in atoms {
        match atom {
            Atom::Letter(letter) => text.push(*letter),
            Atom::Whole(_) => return None,
        }
    }
    let ends: Vec<&str> = text.split("..").collect();
    let (first, last) = (*ends.first()?, *ends.get(1)?);
    let step = ends.get(2).map_or(Ok(1), |step| step.parse::<i64>()).ok()?.unsigned_abs().max(1);
    let letters = |text: &str| text.chars().map(Atom::Letter).collect::<Vec<_>>();
    if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
        let count = usize::try_from(first.abs_diff(last) / step).unwrap_or(usize::MAX).min(bounds::WORDS);
        let step = i64::try_from(step).ok()?;
        let sign = if first <= last { step } else { -step };
        // Zeros before a number give all of them its length.
        let is_padded = ends[..2].iter().any(|text| digits(text).len() > 1 && digits(text).starts_with('0'));
        let width = if is_padded { ends[0].len().max(ends[1].len()).min(MAX_WIDTH) } else { 0 };
        let numbers = std::iter::successors(Some(first), |number| number.checked_add(sign)).take(count + 1);
        return Some(numbers.map(|number| letters(&format!("{number:0width$}"))).collect());
    }
    let one = |text: &str| Some(text.chars().next()?).filter(|letter| letter.is_ascii() && text.len() == 1);
    let (first, last) = (one(first)? as u8, one(last)? as u8);
    let between = |from: u8, to: u8| (from..=to).step_by(usize::try_from(step).unwrap_or(usize::MAX));
    let codes: Vec<u8> =
        if first <= last { between(first, last).collect() } else { between(last, first).rev().collect() };
    Some(codes.into_iter().map(|code| vec![Atom::Letter(char::from(code))]).collect())
}

/// `text` without its sign.
fn digits(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
}

fn parts(atoms: &[Atom]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for atom in atoms {
        match (atom, parts.last_mut()) {
            (Atom::Letter(letter), Some(Part::Plain(text))) => text.push(*letter),
            (Atom::Letter(letter), _) => parts.push(Part::Plain(letter.to_string())),
            (Atom::Whole(part), _) => parts.push(part.clone()),
        }
    }
    parts
}
