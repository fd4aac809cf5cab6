//! Programs whose output can be known: what they print may be run later.

use crate::bounds;
use crate::parse::{Escapes, unescape};
use crate::programs::Prints;
use crate::read::{Content, Reading};
use crate::run::Run;
use crate::state::{Certainty, Field, Output, State, Stdin, Value};

impl Reading<'_> {
    pub(super) fn printing(&mut self, run: &Run<'_>, prints: Prints, state: &mut State) -> Output {
        match prints {
            Prints::Echo => {
                let slashed = run.argv[1..].iter().any(|field| field.text.contains('\\'));
                let optional = run.argv.get(1).is_some_and(|first| first.text.starts_with('-') && first.text != "-n");
                if (slashed || optional) && !self.is_bash(state) { echo_of_dash(run.argv) } else { echo(run.argv) }
            }
            Prints::Printf => self.printf(run, state),
            Prints::Cat => self.cat(run, state),
            Prints::Base64 => self.decoding(run, state),
            Prints::Tee => self.tee(run, state),
            Prints::Pwd => match state.place.cwd.only() {
                Some(cwd) => Output::Known(format!("{cwd}\n")),
                None => Output::Unknown,
            },
            Prints::MakeTemp => made_name(run),
            Prints::Which => which(run.argv),
        }
    }

    fn printf(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let argv = &run.argv[1..];
        let attached = argv.first().and_then(|option| option.text.strip_prefix("-v").filter(|name| !name.is_empty()));
        let name = match argv {
            [option, ..] if attached.is_some() => {
                Some(Field { text: option.text[2..].to_owned(), certainty: option.certainty })
            }
            [option, name, ..] if option.text == "-v" => Some(name.clone()),
            _ => None,
        };
        if let Some(name) = &name {
            let values = &argv[if attached.is_some() { 1 } else { 2 }..];
            if !self.is_bash(state) {
                return Output::nothing();
            }
            self.indexed_name(name, state);
            self.forget_list(name, state);
            let name = name.text.clone();
            let value = printed(values).map_or(Value::Unknown, |text| Value::Text(Field::known(text)));
            self.influenced(&name, &value, state);
            state.set(&name, value);
            return Output::nothing();
        }
        let argv = if argv.first().is_some_and(|first| first.text == "--") { &argv[1..] } else { argv };
        // Not every shell knows all escapes.
        let unsure = argv.iter().any(|field| has_odd_escape(&field.text));
        if unsure && !self.is_bash(state) {
            return Output::Unknown;
        }
        printed(argv).map_or(Output::Unknown, Output::Known)
    }

    fn cat(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let arguments = run.arguments();
        let mut output = Output::nothing();
        for field in &arguments.operands {
            self.reads(field, state);
            output = output.then(self.file_text(field, state));
        }
        if arguments.operands.is_empty() {
            output = stdin_text(state);
        }
        if arguments.options.is_empty() { output } else { Output::Unknown }
    }

    fn file_text(&mut self, field: &Field, state: &State) -> Output {
        if field.text == "-" || field.text == "/dev/stdin" {
            return stdin_text(state);
        }
        match self.content(field, state) {
            Some(Content::OneOf(texts)) if texts.len() == 1 && field.is_exact() => Output::Known(texts[0].clone()),
            Some(Content::Names(files)) => Output::Files(files),
            Some(Content::OneOf(_) | Content::Unknown) | None => Output::Unknown,
        }
    }

    /// `base64 -d`, `xxd -r -p`.
    fn decoding(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let arguments = run.arguments();
        for field in &arguments.operands {
            self.reads(field, state);
        }
        if run.name == "xxd"
            && let [_, target] = arguments.operands.as_slice()
        {
            self.writes(target, run.name, state);
        }
        let input = match arguments.operands.first() {
            Some(field) => self.file_text(field, state),
            None => stdin_text(state),
        };
        let Output::Known(text) = input else { return Output::Unknown };
        let decoded = match run.name {
            "base64" if arguments.has(&["-d", "-D", "--decode"]) => from_base64(&text),
            "xxd" if arguments.has(&["-r"]) && arguments.has(&["-p"]) => from_hex(&text),
            _ => None,
        };
        decoded.and_then(|bytes| String::from_utf8(bytes).ok()).map_or(Output::Unknown, Output::Known)
    }

    fn tee(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let arguments = run.arguments();
        self.refuse_unsure(run, &arguments);
        let text = stdin_text(state);
        for field in &arguments.operands {
            for path in self.target(field, run.name, state) {
                self.note(crate::read::List::Writes, &path);
                self.made_by(&path, &text, arguments.has(&["-a", "--append"]));
            }
        }
        text
    }
}

pub(crate) fn stdin_text(state: &State) -> Output {
    match &state.stdin {
        Stdin::Known(text) => Output::Known(text.to_string()),
        Stdin::Files(files) => Output::Files(files.to_vec()),
        Stdin::Inherited | Stdin::Unknown => Output::Unknown,
    }
}

fn echo(argv: &[Field]) -> Output {
    if argv.iter().any(|field| !field.is_exact()) {
        return Output::Unknown;
    }
    let mut words = &argv[1..];
    let (mut escapes, mut newline) = (false, "\n");
    while let [first, rest @ ..] = words
        && first.text.len() > 1
        && first.text.strip_prefix('-').is_some_and(|letters| letters.chars().all(|letter| "neE".contains(letter)))
    {
        escapes |= first.text.contains('e');
        newline = if first.text.contains('n') { "" } else { newline };
        words = rest;
    }
    let text = words.iter().map(|field| field.text.as_str()).collect::<Vec<_>>().join(" ");
    let plain = format!("{text}{newline}");
    let escaped = format!("{}{newline}", unescape(&text, Escapes::Echo));
    match (escapes, plain == escaped) {
        (true, _) => Output::Known(escaped),
        (false, true) => Output::Known(plain),
        // Shells differ in whether `echo` minds a backslash by itself.
        (false, false) => Output::Unknown,
    }
}

/// The `echo` of dash: it minds backslashes always, and knows `-n` alone.
fn echo_of_dash(argv: &[Field]) -> Output {
    let words = &argv[1..];
    let (newline, words) = match words.split_first() {
        Some((first, rest)) if first.text == "-n" => ("", rest),
        _ => ("\n", words),
    };
    if argv.iter().any(|field| !field.is_exact() || has_odd_escape(&field.text)) {
        return Output::Unknown;
    }
    let text = words.iter().map(|field| field.text.as_str()).collect::<Vec<_>>().join(" ");
    Output::Known(format!("{}{newline}", unescape(&text, Escapes::Echo)))
}

/// Whether `text` has an escape that not every shell knows, or that ends the output.
fn has_odd_escape(text: &str) -> bool {
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == '\\' && !letters.next().is_some_and(|kind| "\\abfnrtv0".contains(kind)) {
            return true;
        }
    }
    false
}

/// What `printf` prints; nothing if that cannot be known.
fn printed(argv: &[Field]) -> Option<String> {
    let (format, arguments) = argv.split_first()?;
    if argv.iter().any(|field| !field.is_exact()) {
        return None;
    }
    let format = unescape(&format.text.replace("\\\\", "\\\\\\\\"), Escapes::Quote).replace("\\\\", "\\");
    let mut arguments = arguments.iter();
    let mut text = String::new();
    loop {
        let before = arguments.len();
        let mut letters = format.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                text.push(letter);
                continue;
            }
            let argument = |arguments: &mut std::slice::Iter<'_, Field>| {
                arguments.next().map(|field| field.text.clone()).unwrap_or_default()
            };
            match letters.next()? {
                '%' => text.push('%'),
                's' | 'd' | 'i' => text.push_str(&argument(&mut arguments)),
                'b' => text.push_str(&unescape(&argument(&mut arguments), Escapes::Echo)),
                'c' if arguments.as_slice().iter().any(|field| crate::number::is_hidden(&field.text)) => return None,
                'c' => text.extend(argument(&mut arguments).chars().next()),
                _ => return None,
            }
            if text.len() > bounds::VALUE_BYTES {
                return None;
            }
        }
        if arguments.len() == 0 || arguments.len() == before || text.len() > bounds::VALUE_BYTES {
            return (text.len() <= bounds::VALUE_BYTES).then_some(text);
        }
    }
}

/// A name that nothing has yet, in the folder for such.
fn made_name(run: &Run<'_>) -> Output {
    let plain = run.argv[1..].iter().all(|field| ["-d", "-q", "-t", "--directory"].contains(&field.text.as_str()));
    let name = Field { text: "/tmp/tmp.*".to_owned(), certainty: Certainty::Glob };
    if plain { Output::Files(vec![name]) } else { Output::Unknown }
}

/// `which rm` names rm, wherever it lies.
fn which(argv: &[Field]) -> Output {
    match argv {
        [_, name] if name.is_exact() && !name.text.starts_with('-') => Output::Known(format!("{}\n", name.text)),
        _ => Output::Unknown,
    }
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => break,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    Some(bytes)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .map(|letter| letter.to_digit(16))
        .collect::<Option<_>>()?;
    Some(digits.chunks(2).map(|pair| pair.iter().fold(0, |value, digit| value << 4 | *digit as u8)).collect())
}
