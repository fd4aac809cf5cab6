//! What a file says of coding agents under guard.

use std::time::Duration;

use pintle_dialects::process::config::EntryProblem;

use crate::config::raw::{RawGuard, RawGuardedHost};
use crate::config::{Config, GUARDED_HOSTS, GuardedAsk, GuardedClass, GuardedHost};

/// The words that `ask` takes.
const ASKS: [&str; 3] = ["host", "hold", "deny"];

/// The words that `headless_ask` and `on_daemon_away` take.
const HEADLESS: [&str; 2] = ["hold", "deny"];
const AWAY: [&str; 2] = ["deny", "allow"];

/// The units of a deadline, each with its milliseconds.
const UNITS: [(&str, u64); 3] = [("ms", 1), ("s", 1000), ("m", 60_000)];

/// Longest deadline: no agent gives a hook more than ten minutes.
const MAX_DEADLINE: Duration = Duration::from_mins(10);

/// Takes over what a file demands of agents under guard, and what differs for one.
pub(super) fn add(config: &mut Config, raw: RawGuard) -> Vec<EntryProblem> {
    // Whose rules hold is read by itself.
    let RawGuard { require, hosts, rules_from: _ } = raw;
    let mut problems = Vec::new();
    for (at, word) in require.unwrap_or_default().iter().enumerate() {
        match GuardedClass::of(word) {
            Some(class) => drop(config.guard_require.insert(class)),
            None => {
                let known = GuardedClass::ALL.map(GuardedClass::word);
                let message = format!("there is no class of tools `{word}`, expected one of {}", known.join(", "));
                problems.push(EntryProblem::new(&["guard", "require", &at.to_string()], message).meant(word, known));
            }
        }
    }
    for (name, raw) in hosts.unwrap_or_default() {
        let path = ["guard", "hosts", name.as_str()];
        if !GUARDED_HOSTS.contains(&name.as_str()) {
            let message = format!("there is no agent `{name}`, expected one of {}", GUARDED_HOSTS.join(", "));
            problems.push(EntryProblem::new(&path, message).meant(&name, GUARDED_HOSTS));
            continue;
        }
        match read(raw) {
            Ok(host) => drop(config.guard_hosts.insert(name, host)),
            Err(problem) => problems.push(problem.under(&path)),
        }
    }
    problems
}

fn read(raw: RawGuardedHost) -> Result<GuardedHost, EntryProblem> {
    let RawGuardedHost { agent, deadline, ask, headless_ask, on_daemon_away } = raw;
    let asked = |word: usize| [GuardedAsk::Host, GuardedAsk::Hold, GuardedAsk::Deny][word];
    let ask = ask.map(|text| word("ask", &text, &ASKS)).transpose()?.map(asked);
    let headless_ask = headless_ask.map(|text| word("headless_ask", &text, &HEADLESS)).transpose()?;
    let away = on_daemon_away.map(|text| word("on_daemon_away", &text, &AWAY)).transpose()?;
    Ok(GuardedHost {
        agent,
        deadline: deadline.map(|text| duration(&text)).transpose()?,
        ask,
        headless_ask: headless_ask.map(|word| asked(word + 1)),
        allows_away: away == Some(1),
    })
}

/// Which of `known` the text of `key` is.
fn word(key: &str, text: &str, known: &[&'static str]) -> Result<usize, EntryProblem> {
    known.iter().position(|word| *word == text).ok_or_else(|| {
        let message = format!("unsupported word \"{text}\", expected {}", known.join(" or "));
        EntryProblem::new(&[key], message).meant(text, known.iter().copied())
    })
}

fn duration(text: &str) -> Result<Duration, EntryProblem> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = UNITS.iter().find(|(unit, _)| *unit == &text[digits.len()..]);
    let read = unit.and_then(|(_, ms)| digits.parse::<u64>().ok()?.checked_mul(*ms)).map(Duration::from_millis);
    read.filter(|read| !read.is_zero() && *read <= MAX_DEADLINE).ok_or_else(|| {
        EntryProblem::new(&["deadline"], format!("`{text}` is no time such as `500ms`, `8s` or `5m`, at most `10m`"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_a_number_and_a_unit() {
        for (text, ms) in [("500ms", Some(500)), ("8s", Some(8000)), ("10m", Some(600_000))] {
            assert_eq!(duration(text).ok(), ms.map(Duration::from_millis), "{text}");
        }
        for text in ["", "8", "s", "0s", "11m", "-1s", "8 s", "8h", "1.5s", "99999999999999999999s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
