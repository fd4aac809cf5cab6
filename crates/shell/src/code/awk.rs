//! awk: patterns and prints are harmless, pipes, `system` and files are not.

use super::{Look, Touched, unread};

/// What an awk program writes to, or why it cannot be known what it does.
pub(crate) fn look(code: &str) -> Look {
    let Some((bare, texts)) = without_texts(code) else { return Err(unread("awk", "a pattern with `[`")) };
    let refuse = |found: &str| Err(unread("awk", found));
    let letters = |letter: char| letter != '_' && !letter.is_ascii_alphanumeric();
    for word in bare.split(letters) {
        if ["system", "getline", "extension"].contains(&word) {
            return refuse(word);
        }
        if word == "ENVIRON" || word == "PROCINFO" {
            return refuse(word);
        }
    }
    if bare.contains('@') {
        return refuse("@");
    }
    let mut writes = Vec::new();
    for statement in bare.split(['\n', ';', '}', '{']) {
        let printing = statement.find("print").map(|at| &statement[at..]);
        let piped = statement.replace("||", "").contains('|');
        if piped {
            return refuse("|");
        }
        if let Some(target) = printing.and_then(redirected) {
            // What stands there is the number of a text, if it is one text.
            let text = target.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            let text = text.and_then(|number| number.parse::<usize>().ok()).and_then(|number| texts.get(number));
            match text {
                Some(text) if !text.contains('\\') => writes.push(text.clone()),
                _ => return refuse(">"),
            }
        }
    }
    Ok(Touched { writes, ..Touched::default() })
}

/// What stands after a `>` outside of brackets.
fn redirected(statement: &str) -> Option<&str> {
    let mut open = 0_i32;
    for (at, letter) in statement.char_indices() {
        match letter {
            '(' | '[' => open += 1,
            ')' | ']' => open -= 1,
            '>' if open <= 0 => return Some(statement[at + 1..].trim_start_matches('>')),
            _ => {}
        }
    }
    None
}

/// The code with each text replaced by its number in quotes, and without patterns and comments; nothing if a pattern has
/// no sure end.
fn without_texts(code: &str) -> Option<(String, Vec<String>)> {
    let (mut bare, mut texts) = (String::new(), Vec::new());
    let mut letters = code.chars();
    let mut before = '{';
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                let text = up_to(&mut letters, '"');
                bare.push_str(&format!("\"{}\"", texts.len()));
                texts.push(text);
            }
            '/' if "(,~!&|{};\n".contains(before) => {
                let pattern = up_to(&mut letters, '/');
                // Where a bracket holds the slash, each `awk` ends the pattern elsewhere.
                if pattern.matches('[').count() > pattern.matches(']').count() {
                    return None;
                }
                bare.push(' ');
            }
            '#' => {
                if letters.by_ref().any(|letter| letter == '\n') {
                    bare.push('\n');
                }
            }
            other => bare.push(other),
        }
        if !letter.is_whitespace() || letter == '\n' {
            before = letter;
        }
    }
    Some((bare, texts))
}

fn up_to(letters: &mut std::str::Chars<'_>, end: char) -> String {
    let mut text = String::new();
    while let Some(letter) = letters.next() {
        if letter == end {
            break;
        }
        text.push(letter);
        if letter == '\\' {
            text.extend(letters.next());
        }
    }
    text
}
