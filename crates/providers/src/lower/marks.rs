//! The marks around a hook's text, which nobody else can write.

use std::borrow::Cow;

use pintle_domain::json::{Object, Value};
use pintle_domain::message::{Message, Role};
use pintle_domain::unseen::is_unseen;

use crate::inline_thought;

/// The name of the marks that stand around a hook's text.
const NAME: &str = "system-reminder";
/// The signs that a model may take for the bracket of a mark.
const BRACKETS: [char; 7] = ['<', '\u{ff1c}', '\u{fe64}', '\u{2039}', '\u{3008}', '\u{27e8}', '\u{2329}'];
/// A bracket, written so that nobody takes it for one.
const SAFE_BRACKET: &str = "&lt;";

/// `text` between the marks.
pub(super) fn wrapped(text: &str) -> String {
    let safe = without(text, Marks::Closing);
    format!("<{NAME}>\n{}\n</{NAME}>", safe.as_deref().unwrap_or(text))
}

/// `message`, in which nobody but the operator can write the marks.
pub(super) fn guarded(message: &Message) -> Cow<'_, Message> {
    let mut safe = Cow::Borrowed(message);
    if message.role == Role::System {
        return safe;
    }
    if let Some(text) = escaped(&message.content) {
        safe.to_mut().content = text;
    }
    for (at, entry) in message.media.iter().enumerate() {
        if let Some(entry) = escaped(entry) {
            safe.to_mut().media[at] = entry;
        }
    }
    for (at, call) in message.tool_calls.iter().enumerate() {
        if let Some(name) = escaped(&call.function.name) {
            safe.to_mut().tool_calls[at].function.name = name;
        }
        if let Some(arguments) = escaped_arguments(&call.function.arguments) {
            safe.to_mut().tool_calls[at].function.arguments = arguments;
        }
    }
    for (at, block) in message.private.blocks.iter().enumerate() {
        let text = block["text"].as_str().filter(|_| block["type"] == "text" || block["type"] == inline_thought::BLOCK);
        if let Some(text) = text.and_then(escaped) {
            safe.to_mut().private.blocks[at]["text"] = text.into();
        }
    }
    safe
}

/// `text` without the marks, if it has any.
fn escaped(text: &str) -> Option<String> {
    without(text, Marks::All)
}

/// Which marks must not stand in a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    All,
    Closing,
}

/// `text` without such `marks`, in whatever way they are spelled, if it has any.
fn without(text: &str, marks: Marks) -> Option<String> {
    let is_ascii = text.is_ascii();
    let (mut safe, mut written, mut at) = (String::new(), 0, 0);
    let find = |rest: &str| if is_ascii { rest.find('<') } else { rest.find(BRACKETS) };
    while let Some(next) = find(&text[at..]) {
        let bracket = at + next;
        at = bracket + text[bracket..].chars().next().map_or(1, char::len_utf8);
        if is_mark(&text[at..], marks) {
            safe.push_str(&text[written..bracket]);
            safe.push_str(SAFE_BRACKET);
            written = at;
        }
    }
    (written > 0).then(|| safe + &text[written..])
}

/// Whether what stands behind a bracket makes it one of `marks`: a model reads them in any case, with blanks within, and
/// in signs that look alike.
fn is_mark(behind: &str, marks: Marks) -> bool {
    let mut signs = behind.chars().filter(|sign| !is_blank(*sign)).map(plain).peekable();
    let closes = signs.next_if_eq(&'/').is_some();
    (closes || marks == Marks::All) && NAME.chars().all(|sign| signs.next() == Some(sign))
}

/// Whether nothing is seen of `sign`.
fn is_blank(sign: char) -> bool {
    sign.is_whitespace() || is_unseen(sign)
}

/// The sign of ASCII that `sign` looks like, as far as marks have it.
fn plain(sign: char) -> char {
    /// How far the full-width signs are from those of ASCII.
    const WIDE: u32 = 0xfee0;
    match sign {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(sign) - WIDE).unwrap_or(sign).to_ascii_lowercase(),
        '\u{2044}' | '\u{2215}' => '/',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe63}' => '-',
        _ => sign.to_ascii_lowercase(),
    }
}

/// The same for JSON text, which can spell a character in several ways.
fn escaped_arguments(text: &str) -> Option<String> {
    if text.contains('\\')
        && let Ok(mut arguments) = pintle_domain::json::parse(text)
    {
        return escape_within(&mut arguments).then(|| arguments.to_string());
    }
    escaped(text)
}

/// Escapes the marks in every string and every name of `value`; whether there were any.
fn escape_within(value: &mut Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => match escaped(text) {
            Some(safe) => {
                *text = safe;
                true
            }
            None => false,
        },
        Value::Array(items) => items.iter_mut().fold(false, |any, item| escape_within(item) | any),
        Value::Object(members) => {
            let named = members.keys().any(|name| escaped(name).is_some());
            if named {
                let safe = |(name, value): (String, Value)| (escaped(&name).unwrap_or(name), value);
                *members = std::mem::take(members).into_iter().map(safe).collect::<Object>();
            }
            members.values_mut().fold(named, |any, member| escape_within(member) | any)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_known_however_it_is_spelled() {
        for (text, expected) in [
            ("a <system-reminder> b", Some("a &lt;system-reminder> b")),
            ("x</system-reminder>", Some("x&lt;/system-reminder>")),
            ("<SYSTEM-Reminder></System-REMINDER >", Some("&lt;SYSTEM-Reminder>&lt;/System-REMINDER >")),
            ("< system-reminder>< / \tsystem-reminder\n>", Some("&lt; system-reminder>&lt; / \tsystem-reminder\n>")),
            ("<\u{200b}system-reminder>", Some("&lt;\u{200b}system-reminder>")),
            ("<sys\u{202e}tem\u{e0100}-\u{fe0f}reminder>", Some("&lt;sys\u{202e}tem\u{e0100}-\u{fe0f}reminder>")),
            ("\u{ff1c}system-reminder\u{ff1e}", Some("&lt;system-reminder\u{ff1e}")),
            ("\u{27e8}\u{ff0f}system\u{2011}reminder\u{27e9}", Some("&lt;\u{ff0f}system\u{2011}reminder\u{27e9}")),
            ("<\u{ff33}ystem-reminder>", Some("&lt;\u{ff33}ystem-reminder>")),
            ("<<system-reminder", Some("<&lt;system-reminder")),
            ("<system>reminder", None),
            ("a < b \u{ff1c} c", None),
            ("system-reminder <", None),
            ("", None),
        ] {
            assert_eq!(escaped(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_operators_text_cannot_end_its_own_mark() {
        let text = "<system-reminder> \u{ff1c}/System-Reminder>";
        assert_eq!(wrapped(text), "<system-reminder>\n<system-reminder> &lt;/System-Reminder>\n</system-reminder>");
    }

    #[test]
    fn arguments_are_safe_in_every_spelling() {
        assert_eq!(
            escaped_arguments(r#"{"a":"\u003cSystem-reminder>"}"#).as_deref(),
            Some(r#"{"a":"&lt;System-reminder>"}"#)
        );
        assert_eq!(
            escaped_arguments(r#"{"a":"< /system-reminder>"}"#).as_deref(),
            Some(r#"{"a":"&lt; /system-reminder>"}"#)
        );
        assert_eq!(escaped_arguments(r#"{"a":"<b>\n"}"#), None);
    }
}
