//! Texts, times and numbers as lines of a terminal show them.

use std::time::Duration;

use domain::hook::Hook;

use crate::clean::{clean, line};

/// Longest piece of a text that a line shows, in characters: the rest of a wide terminal after the columns.
const MAX_SHOWN: usize = 100;

/// A number of things.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// The most names that a line shows of many.
const MAX_NAMES: usize = 5;

/// The names of `hooks`, or the first of them and how many more there are.
pub(crate) fn few_names(hooks: &[&Hook]) -> String {
    let names: Vec<String> = hooks.iter().take(MAX_NAMES).map(|hook| clean(hook.name.as_str())).collect();
    match hooks.len() - names.len() {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// A text on one line, cut where a line gets too long, with nothing in it that moves a terminal or turns the direction
/// of reading around.
pub fn clip(text: &str) -> String {
    let end = text.char_indices().nth(MAX_SHOWN).map_or(text.len(), |(end, _)| end);
    let mut shown = line(&text[..end]);
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// A time in the unit that people read it in.
pub fn time(took: Duration) -> String {
    let us = took.as_micros();
    match us {
        0..1000 => format!("{us} µs"),
        1000..10_000 => format!("{:.1} ms", took.as_secs_f64() * 1e3),
        10_000..1_000_000 => format!("{} ms", took.as_millis()),
        _ => format!("{:.1} s", took.as_secs_f64()),
    }
}
