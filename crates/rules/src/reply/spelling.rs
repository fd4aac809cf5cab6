//! How the names of members may be spelled: libraries write them as `Decision` or `DECISION`, and none of these may
//! read as if nothing were said.

use pintle_domain::json::{Object, Value, same_value};
use pintle_domain::nearest::edits;

use super::{Decision, text};

/// Longest name that is compared with the known ones, in characters: the longest of them and some more.
const MAX_NEAR_CHARS: usize = 32;
/// Most near misses that are told of one answer: whoever mends these sees the others next.
const MAX_NEAR_MISSES: usize = 4;
/// The length from which two letters of a name may be wrong, in characters. In a shorter one they make another word,
/// as `region` of `reason`.
const LONG_CHARS: usize = 8;

/// The members by which an answer decides.
const DECIDING: [&str; 2] = ["decision", "continue"];
/// The members by which answers to other hook systems decide. They are told of only where nothing decides here.
const ELSEWHERE: [&str; 9] =
    ["action", "verdict", "permissionDecision", "hookSpecificOutput", "approved", "allowed", "allow", "block", "deny"];

/// The one of `known` that `name` is, in whatever case.
pub(super) fn known_as(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let exact = known.iter().find(|known| **known == name);
    let upper = |text: &'static str| text.chars().flat_map(char::to_uppercase);
    let spelled =
        |known: &&&'static str| known.len() <= name.len() && name.chars().flat_map(char::to_uppercase).eq(upper(known));
    exact.or_else(|| known.iter().find(spelled)).copied()
}

/// `members` with the known ones under their names. Of several spellings that differ in value the strictest counts.
///
/// # Errors
/// Two spellings with different values of which none is stricter.
pub(super) fn settled(mut members: Object, known: &[&'static str]) -> Result<Object, String> {
    let other = |name: &String| known_as(name, known).filter(|known| known != name).map(|known| (known, name.clone()));
    let spellings: Vec<_> = members.keys().filter_map(other).collect();
    for (name, spelling) in spellings {
        let other = members.get_mut(&spelling).map(Value::take).unwrap_or_default();
        let own = members.entry(name).or_default();
        let both = std::mem::take(own);
        *own = stricter(name, both, other)?;
    }
    Ok(members)
}

/// The one of two values of the member `name` that counts. One of a wrong type is a fault, so it counts first.
fn stricter(name: &str, one: Value, other: Value) -> Result<Value, String> {
    if one.is_null() || other.is_null() || same_value(&one, &other) {
        return Ok(if one.is_null() { other } else { one });
    }
    match (name, &one, &other) {
        ("decision", Value::String(a), Value::String(b)) => Ok(match (Decision::of(a), Decision::of(b)) {
            (Some(a), Some(b)) => Value::from(a.stricter(b).word()),
            (None, _) => one,
            (Some(_), None) => other,
        }),
        ("continue", Value::Bool(_), Value::Bool(_)) => Ok(Value::Bool(false)),
        ("injection_detected", Value::Bool(_), Value::Bool(_)) => Ok(Value::Bool(true)),
        // The first one speaks; neither is stricter.
        ("reason", Value::String(_), Value::String(_)) => Ok(one),
        ("decision" | "reason", Value::String(_), _) => Ok(other),
        ("continue" | "injection_detected", Value::Bool(_), _) => Ok(other),
        ("decision" | "reason" | "continue" | "injection_detected", _, _) => Ok(one),
        (_, _, _) => Err(differ(name)),
    }
}

fn differ(name: &str) -> String {
    format!("the member `{name}` stands in it in several spellings that differ in value; send it once")
}

/// What is said of members that are none of `known` and are probably meant for one.
pub(super) fn near_misses(members: &Object, known: &[&'static str]) -> Vec<String> {
    let decides = DECIDING.iter().any(|name| members.contains_key(name));
    let near = members.keys().filter_map(|name| {
        let short = name.chars().nth(MAX_NEAR_CHARS).is_none();
        if !short || known_as(name, known).is_some() {
            return None;
        }
        let elsewhere = !decides && ELSEWHERE.iter().any(|word| word.eq_ignore_ascii_case(name));
        let meant = if elsewhere { Some("decision") } else { known.iter().find(|known| is_near(name, known)).copied() };
        meant.map(|known| format!("{} is not read; the member is \"{known}\"", text::quoted(name)))
    });
    near.take(MAX_NEAR_MISSES).collect()
}

/// Whether `name` is `known` with other signs between its words or with a mistake in it.
fn is_near(name: &str, known: &str) -> bool {
    fn letters(text: &str) -> impl Iterator<Item = char> + '_ {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
    }
    // Most names begin with another letter, and cost nothing more.
    if letters(name).next() != letters(known).next() {
        return false;
    }
    let (name, known): (String, String) = (letters(name).collect(), letters(known).collect());
    let most = if known.len() < LONG_CHARS { 1 } else { 2 };
    edits(&name, &known) <= most
}
