//! The names that a condition may use, and what to say of others.

use pintle_domain::nearest::nearest;

use super::fault::shown;

/// The functions, and how each is called.
pub(super) const FUNCTIONS: [(&str, &str); 19] = [
    ("size", "size(value)"),
    ("contains", "text.contains(text)"),
    ("startsWith", "text.startsWith(text)"),
    ("endsWith", "text.endsWith(text)"),
    ("matches", "text.matches(pattern)"),
    ("int", "int(value)"),
    ("uint", "uint(value)"),
    ("double", "double(value)"),
    ("string", "string(value)"),
    ("bytes", "bytes(text)"),
    ("bool", "bool(text)"),
    ("type", "type(value)"),
    ("dyn", "dyn(value)"),
    ("has", "has(map.member)"),
    ("all", "list.all(name, condition)"),
    ("exists", "list.exists(name, condition)"),
    ("exists_one", "list.exists_one(name, condition)"),
    ("map", "list.map(name, value)"),
    ("filter", "list.filter(name, condition)"),
];

/// Functions of CEL that there is no use for here: no variable is a time.
const TIMES: [&str; 2] = ["duration", "timestamp"];

/// The bytes of the shortest name that may be a typing mistake: of less, any other is near.
const SHORTEST: usize = 3;

/// That there is no `what` of this name, and which one may have been meant.
pub(super) fn unknown<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    let near = nearest(name, known.clone()).filter(|_| name.len() >= SHORTEST);
    let hint = near.map_or_else(
        || format!("; known are {}", known.collect::<Vec<_>>().join(", ")),
        |near| format!(" (did you mean `{near}`?)"),
    );
    format!("unknown {what} `{}`{hint}", shown(name))
}

/// That there is no function of this name, or that it is called in another way.
pub(super) fn unknown_function(name: &str) -> String {
    if let Some((_, way)) = FUNCTIONS.iter().find(|(known, _)| *known == name) {
        return format!("`{name}` is called as {way}");
    }
    if TIMES.contains(&name) {
        return format!("`{name}` is not available: no variable of a condition is a time");
    }
    unknown("function", name, FUNCTIONS.iter().map(|(known, _)| *known))
}
