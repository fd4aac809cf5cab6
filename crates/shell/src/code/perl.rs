//! Perl and Ruby, whose texts and patterns may hold code: they may hold nothing that could be some.

use super::{Look, Touched, unread};

/// Words that run nothing, write nothing and open no connection.
const WORDS: &[&str] = &[
    "print",
    "printf",
    "puts",
    "p",
    "pp",
    "say",
    "if",
    "unless",
    "else",
    "elsif",
    "end",
    "my",
    "our",
    "for",
    "foreach",
    "while",
    "until",
    "split",
    "join",
    "length",
    "uc",
    "lc",
    "ucfirst",
    "lcfirst",
    "chomp",
    "chop",
    "sort",
    "keys",
    "values",
    "push",
    "shift",
    "scalar",
    "reverse",
    "map",
    "grep",
    "substr",
    "index",
    "sprintf",
    "and",
    "or",
    "not",
    "next",
    "last",
    "defined",
    "exists",
    "sum",
    "max",
    "min",
    "uniq",
    "int",
    "abs",
    "sqrt",
    "time",
    "localtime",
    "gmtime",
    "eof",
    "BEGIN",
    "END",
    "each",
    "ord",
    "chr",
    "hex",
    "oct",
    "rand",
    "srand",
    "strftime",
    "floor",
    "ceil",
    "first",
    "nil",
    "true",
    "false",
    "upcase",
    "downcase",
    "to_s",
    "to_i",
    "to_f",
    "size",
    "RUBY_VERSION",
    "Time",
    "now",
    "year",
    "JSON",
    "parse",
    "gsub",
    "sub",
    "strip",
    "count",
    "reject",
    "times",
    "x",
    "eq",
    "ne",
    "lt",
    "gt",
    "cmp",
    "m",
    "s",
    "tr",
    "y",
    "STDIN",
    "read",
    "gets",
    "ARGF",
    "lines",
    "each_line",
    "json",
    "yaml",
    "set",
    "date",
    "Date",
    "today",
    "RUBY_PLATFORM",
    "RUBY_ENGINE",
    "then",
    "Dumper",
    "pos",
    "wantarray",
    "return",
    "undef",
    "sum0",
    "sum",
    "exit",
    "ARGV",
];

/// Words after which a `/` begins a pattern.
const BEFORE_PATTERN: &[&str] =
    &["if", "unless", "and", "or", "not", "grep", "split", "while", "until", "return", "map"];

/// Signs that may hide code, or a text whose end is not seen here.
const HIDING: &[&str] = &[
    "`", "@{", "${", "(?{", "(??{", "*{", "->(", "&{", "&$", "&'", "<<", "::", "\\x", "\\N", "\n#", "\n=", "?'", "?\"",
    "__", "ENV", "@ARGV",
];

pub(super) fn look(code: &str, language: &str) -> Look {
    let refuse = |found: &str| Err(unread(language, found));
    if let Some(sign) = HIDING.iter().find(|sign| code.contains(**sign)) {
        return refuse(sign);
    }
    // `<>` opens what the arguments name, and a name may be a command there.
    if code.contains("ARGV") && code.contains('<') {
        return refuse("ARGV");
    }
    if !code.is_ascii() || (language == "ruby" && code.contains('%')) {
        return refuse("signs that may hide a text");
    }
    if language == "ruby" {
        for inner in code.split("#{").skip(1) {
            bare(inner.split('}').next().unwrap_or_default(), language)?;
        }
    }
    indexes(code, language)?;
    bare(code, language)?;
    Ok(Touched::default())
}

/// `$h{key}` and `$a[0]` work inside of texts too, and what stands in their brackets is code.
fn indexes(code: &str, language: &str) -> Result<(), String> {
    for (at, sign) in code.char_indices().filter(|(_, sign)| *sign == '$' || *sign == '@') {
        let rest = code[at + sign.len_utf8()..]
            .trim_start_matches(|letter: char| letter == '_' || letter == '$' || letter.is_ascii_alphanumeric());
        let rest = rest.strip_prefix("->").unwrap_or(rest);
        let (open, close) = match rest.chars().next() {
            Some('[') => ('[', ']'),
            Some('{') => ('{', '}'),
            _ => continue,
        };
        let inside = rest[open.len_utf8()..].split(close).next().unwrap_or_default();
        let number = inside.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let variable = inside
            .strip_prefix('$')
            .is_some_and(|name| name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()));
        let key = open == '{' && inside.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
        if !number && !variable && !key {
            return Err(unread(language, inside));
        }
    }
    Ok(())
}

/// Names outside of texts and patterns have to be known ones or variables.
fn bare(code: &str, language: &str) -> Result<(), String> {
    let mut letters = code.chars().peekable();
    // What stands before: a word, or a sign.
    let (mut word, mut sign) = (String::new(), ';');
    while let Some(letter) = letters.next() {
        match letter {
            '"' | '\'' if !sign.is_ascii_alphanumeric() || !word.is_empty() => skip(&mut letters, letter),
            '"' | '\'' => return Err(unread(language, "a quote after a name")),
            '/' if ["s", "y", "tr", "m"].contains(&word.as_str()) => {
                skip(&mut letters, '/');
                if word != "m" {
                    skip(&mut letters, '/');
                }
                flags(&mut letters, word == "s", language)?;
            }
            '/' if BEFORE_PATTERN.contains(&word.as_str()) || (word.is_empty() && "(,=~!&|{;".contains(sign)) => {
                skip(&mut letters, '/');
                flags(&mut letters, false, language)?;
            }
            '$' | '@' => {
                while letters.next_if(|next| next.is_ascii_alphanumeric() || *next == '_').is_some() {}
                (word, sign) = (String::new(), 'v');
                continue;
            }
            _ if letter == '_' || letter.is_ascii_alphabetic() => {
                let mut name = letter.to_string();
                while let Some(next) = letters.next_if(|next| next.is_ascii_alphanumeric() || *next == '_') {
                    name.push(next);
                }
                // In Ruby a variable has no sign, and one of a letter is no method that harms.
                let letter = language == "ruby" && name.len() == 1;
                if !letter && !WORDS.contains(&name.as_str()) {
                    return Err(unread(language, &name));
                }
                if ["s", "y", "tr", "m"].contains(&name.as_str()) && letters.peek() != Some(&'/') && language == "perl"
                {
                    return Err(unread(language, "a pattern in other signs"));
                }
                (word, sign) = (name, 'w');
                continue;
            }
            '#' if language == "perl" && sign != 'v' => return Err(unread(language, "#")),
            _ => {}
        }
        if !letter.is_whitespace() {
            (word, sign) = (String::new(), letter);
        }
    }
    Ok(())
}

/// The letters after a pattern; `s///e` runs its second half.
fn flags(
    letters: &mut std::iter::Peekable<std::str::Chars<'_>>,
    substitutes: bool,
    language: &str,
) -> Result<(), String> {
    while let Some(flag) = letters.next_if(char::is_ascii_alphabetic) {
        if (flag == 'e' && substitutes) || !"gimsxore".contains(flag) {
            return Err(unread(language, "a pattern with a letter after it"));
        }
    }
    Ok(())
}

fn skip(letters: &mut std::iter::Peekable<std::str::Chars<'_>>, end: char) {
    while let Some(letter) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if letter == end {
            return;
        }
    }
}
