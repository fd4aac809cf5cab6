//! Backslash escapes as in `$'…'`, `echo -e` and `printf`.

/// Whose escapes are read; they differ in octal numbers that begin with a zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// `$'…'` and the format of `printf`: three digits at most.
    Quote,
    /// `echo -e` and `%b`: three digits after the zero.
    Echo,
}

/// The text that `escaped` stands for. What is no escape stays as it is.
pub(crate) fn unescape(escaped: &str, escapes: Escapes) -> String {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut letters = escaped.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            push(&mut bytes, letter);
            continue;
        }
        let Some(kind) = letters.next() else {
            bytes.push(b'\\');
            break;
        };
        match kind {
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            'e' | 'E' => bytes.push(27),
            'f' => bytes.push(12),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'v' => bytes.push(11),
            '\\' | '\'' | '"' | '?' => push(&mut bytes, kind),
            'x' => number(&mut bytes, &mut letters, (16, 2), kind),
            'u' => number(&mut bytes, &mut letters, (16, 4), kind),
            'U' => number(&mut bytes, &mut letters, (16, 8), kind),
            'c' => {
                if let Some(control) = letters.next() {
                    bytes.push((control as u32 & 0x1f) as u8);
                }
            }
            '0'..='7' => {
                let mut value = kind.to_digit(8).unwrap_or_default();
                let most = if kind == '0' && escapes == Escapes::Echo { 3 } else { 2 };
                for _ in 0..most {
                    let Some(digit) = letters.peek().and_then(|next| next.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    letters.next();
                }
                bytes.push((value & 0xff) as u8);
            }
            other => {
                bytes.push(b'\\');
                push(&mut bytes, other);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn push(bytes: &mut Vec<u8>, letter: char) {
    bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}

fn number(
    bytes: &mut Vec<u8>,
    letters: &mut std::iter::Peekable<std::str::Chars<'_>>,
    shape: (u32, usize),
    kind: char,
) {
    let (radix, most) = shape;
    let (mut value, mut digits) = (0_u32, 0);
    while digits < most
        && let Some(digit) = letters.peek().and_then(|next| next.to_digit(radix))
    {
        value = value.wrapping_mul(radix).wrapping_add(digit);
        digits += 1;
        letters.next();
    }
    match (digits, kind) {
        (0, _) => {
            bytes.push(b'\\');
            push(bytes, kind);
        }
        (_, 'x') => bytes.push((value & 0xff) as u8),
        _ => push(bytes, char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER)),
    }
}
