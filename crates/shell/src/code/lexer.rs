//! Words, strings and signs of code, whatever its language.

/// A piece of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Name(String),
    Number,
    /// A text in quotes that nothing runs.
    Text(String),
    Sign(char),
    /// The end of a line.
    Line,
}

/// How a language writes what is no code.
pub(super) struct Shape {
    /// Quotes around texts that hold no code.
    pub(super) quotes: &'static str,
    /// What begins a comment that ends with its line.
    pub(super) comments: &'static [&'static str],
    /// Whether three quotes begin a text of several lines.
    pub(super) triple: bool,
}

/// The tokens of `code`; nothing if a quote has no end or a letter is not ASCII outside of quotes.
pub(super) fn tokens(code: &str, shape: &Shape) -> Option<Vec<Token>> {
    // Some languages end a line, and so a comment, at these.
    if code.contains(['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']) {
        return None;
    }
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some(letter) = rest.chars().next() {
        if shape.comments.iter().any(|comment| rest.starts_with(comment)) {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if shape.quotes.contains(letter) {
            let triple = [letter; 3].iter().collect::<String>();
            let quote = if shape.triple && rest.starts_with(&triple) { triple } else { letter.to_string() };
            let (text, after) = quoted(&rest[quote.len()..], &quote)?;
            tokens.push(Token::Text(text));
            rest = after;
        } else if letter == '_' || letter.is_ascii_alphabetic() {
            let end = rest.find(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
            tokens.push(Token::Name(rest[..end].to_owned()));
            rest = &rest[end..];
        } else if letter.is_ascii_digit() {
            let end = rest
                .find(|letter: char| letter != '_' && letter != '.' && !letter.is_ascii_alphanumeric())
                .unwrap_or(rest.len());
            tokens.push(Token::Number);
            rest = &rest[end..];
        } else {
            match letter {
                '\n' => tokens.push(Token::Line),
                _ if letter.is_whitespace() => {}
                _ if letter.is_ascii() => tokens.push(Token::Sign(letter)),
                _ => return None,
            }
            rest = &rest[letter.len_utf8()..];
        }
    }
    Some(tokens)
}

/// The text up to `quote`, and what follows; a backslash keeps the letter after it.
fn quoted<'c>(rest: &'c str, quote: &str) -> Option<(String, &'c str)> {
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(quote) {
            return Some((rest[..at].to_owned(), &rest[at + quote.len()..]));
        }
        let mut letters = rest[at..].chars();
        let letter = letters.next()?;
        at += letter.len_utf8();
        if letter == '\\' {
            at += letters.next()?.len_utf8();
        } else if letter == '\n' && quote.len() == 1 {
            return None;
        }
    }
    None
}
