//! Our entries in the settings of Claude Code, which are JSON that somebody else wrote: text in, text out. What is not
//! ours stays as it is, byte by byte, and what was added can be taken out again. Pure.

use std::path::PathBuf;

use guard::GuardHost;
use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::json;
use serde_json::value::RawValue;

use super::installs::HOOK_PROGRAM;

/// The events that name a tool, and take a pattern for it.
const WITH_TOOL: [&str; 4] = ["PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure"];

/// The member of the settings that hooks stand in.
const HOOKS: &str = "hooks";

/// What an entry says.
#[derive(Clone, Debug)]
pub(crate) struct HookEntry {
    /// The hook.
    pub(crate) program: PathBuf,
    /// Where the daemon listens.
    pub(crate) socket: PathBuf,
    /// The key that proves its answers.
    pub(crate) key_file: PathBuf,
    /// How long the host waits.
    pub(crate) timeout_s: u32,
    /// How long the hook waits.
    pub(crate) deadline_ms: u64,
}

/// `text` with our entries, and with none of an earlier installation.
///
/// # Errors
/// It is no JSON object with hooks as the host has them.
pub(crate) fn installed(host: &GuardHost, text: &str, entry: &HookEntry) -> Result<String, String> {
    let mut text = removed(host, text)?;
    if text.trim().is_empty() {
        text = "{}\n".to_owned();
    }
    for event in host.events.iter().filter(|event| event.installed) {
        text = with_group(&text, event.name, &group(host, event.name, entry))?;
    }
    Ok(text)
}

/// `text` without our entries.
///
/// # Errors
/// It is no JSON object with hooks as the host has them.
pub(crate) fn removed(host: &GuardHost, text: &str) -> Result<String, String> {
    let mut text = text.to_owned();
    while let Some(shorter) = without_one(host, &text)? {
        text = shorter;
    }
    Ok(text)
}

/// Our entry at one event, on one line.
fn group(host: &GuardHost, event: &str, entry: &HookEntry) -> String {
    let args = [
        "--host".to_owned(),
        host.id.to_owned(),
        "--event".to_owned(),
        event.to_owned(),
        "--socket".to_owned(),
        entry.socket.display().to_string(),
        "--key-file".to_owned(),
        entry.key_file.display().to_string(),
        "--deadline".to_owned(),
        entry.deadline_ms.to_string(),
    ];
    let hook = json!({
        "type": "command",
        "command": entry.program.display().to_string(),
        "args": args,
        "timeout": entry.timeout_s,
        "onFailure": "block",
    });
    let group = match WITH_TOOL.contains(&event) {
        true => json!({"matcher": "*", "hooks": [hook]}),
        false => json!({"hooks": [hook]}),
    };
    group.to_string()
}

/// `text` with `group` as the first of the groups of `event`.
fn with_group(text: &str, event: &str, group: &str) -> Result<String, String> {
    let top = Members::of(text, Span::whole(text))?;
    let Some(hooks) = top.find(HOOKS) else {
        let member = format!("\"{HOOKS}\": {{\n    \"{event}\": [{group}]\n  }}");
        return Ok(top.with_last(text, &member, "  "));
    };
    let events = Members::of(text, hooks)?;
    let Some(groups) = events.find(event) else {
        return Ok(events.with_last(text, &format!("\"{event}\": [{group}]"), "    "));
    };
    let groups = Elements::of(text, groups)?;
    let separator = if groups.elements.is_empty() { "" } else { ", " };
    let at = groups.span.start + 1;
    Ok(format!("{}{group}{separator}{}", &text[..at], &text[at..]))
}

/// `text` without one entry of ours, and without what was there only for it; nothing if none is left.
fn without_one(host: &GuardHost, text: &str) -> Result<Option<String>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let top = Members::of(text, Span::whole(text))?;
    let Some(hooks) = top.find(HOOKS) else { return Ok(None) };
    let events = Members::of(text, hooks)?;
    for (at, (_, _, value)) in events.members.iter().enumerate() {
        let groups = Elements::of(text, *value)?;
        let is_ours = |span: &Span| is_ours(host, &text[span.start..span.end]);
        let Some(ours) = groups.elements.iter().position(is_ours) else { continue };
        let gone = match (groups.elements.len(), events.members.len()) {
            (1, 1) => top.without(HOOKS),
            (1, _) => events.without_at(at),
            (_, _) => groups.without_at(text, ours),
        };
        return Ok(Some(format!("{}{}", &text[..gone.start], &text[gone.end..])));
    }
    Ok(None)
}

/// Whether a group has nothing but our hook.
fn is_ours(host: &GuardHost, group: &str) -> bool {
    let Ok(group) = serde_json::from_str::<serde_json::Value>(group) else { return false };
    let Some([hook]) = group[HOOKS].as_array().map(Vec::as_slice) else { return false };
    let program = hook["command"].as_str().and_then(|command| command.rsplit('/').next());
    program == Some(HOOK_PROGRAM) && hook["args"][1] == host.id
}

/// A part of a text, by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
}

impl Span {
    fn whole(text: &str) -> Self {
        let start = text.len() - text.trim_start().len();
        Self { start, end: text.trim_end().len().max(start) }
    }

    /// Where `part`, which is a part of `text`, stands.
    fn of(text: &str, part: &str) -> Self {
        let start = part.as_ptr() as usize - text.as_ptr() as usize;
        Self { start, end: start + part.len() }
    }
}

/// The members of an object: where each key and its value stand.
struct Members {
    span: Span,
    members: Vec<(String, usize, Span)>,
}

impl Members {
    fn of(text: &str, span: Span) -> Result<Self, String> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(pairs)
            }
        }
        let part = &text[span.start..span.end];
        let mut reader = serde_json::Deserializer::from_str(part);
        let pairs = reader.deserialize_map(Pairs).and_then(|pairs| reader.end().map(|()| pairs));
        let mut before = span.start + 1;
        let mut members = Vec::new();
        for (name, value) in pairs.map_err(|error| error.to_string())? {
            let value = Span::of(text, value.get());
            let key = before + text[before..value.start].find('"').unwrap_or_default();
            before = value.end;
            members.push((name, key, value));
        }
        Ok(Self { span, members })
    }

    /// The value of the last member called `name`, which is the one that counts.
    fn find(&self, name: &str) -> Option<Span> {
        self.members.iter().rev().find(|(found, _, _)| found == name).map(|(_, _, value)| *value)
    }

    /// `text` with one more `member` behind the others, on a line of its own.
    fn with_last(&self, text: &str, member: &str, indent: &str) -> String {
        let (at, before, behind) = match self.members.last() {
            Some((_, _, last)) => (last.end, ",", String::new()),
            None => (self.span.start + 1, "", format!("\n{}", &indent[2..])),
        };
        format!("{}{before}\n{indent}{member}{behind}{}", &text[..at], &text[at..])
    }

    fn without(&self, name: &str) -> Span {
        let at = self.members.iter().rposition(|(found, _, _)| found == name).unwrap_or_default();
        self.without_at(at)
    }

    /// What goes with the member number `at`: with the comma that stood there for it.
    fn without_at(&self, at: usize) -> Span {
        let (_, key, value) = &self.members[at];
        match (at.checked_sub(1).map(|before| self.members[before].2), self.members.get(at + 1)) {
            (Some(before), _) => Span { start: before.end, end: value.end },
            (None, Some((_, next, _))) => Span { start: *key, end: *next },
            (None, None) => Span { start: self.span.start + 1, end: self.span.end - 1 },
        }
    }
}

/// The elements of an array: where each stands.
struct Elements {
    span: Span,
    elements: Vec<Span>,
}

impl Elements {
    fn of(text: &str, span: Span) -> Result<Self, String> {
        struct Items;
        impl<'de> Visitor<'de> for Items {
            type Value = Vec<&'de RawValue>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(items)
            }
        }
        let part = &text[span.start..span.end];
        let mut reader = serde_json::Deserializer::from_str(part);
        let items = reader.deserialize_seq(Items).map_err(|error| error.to_string())?;
        Ok(Self { span, elements: items.into_iter().map(|item| Span::of(text, item.get())).collect() })
    }

    /// What goes with the element number `at`: with the comma and the space that stood there for it.
    fn without_at(&self, text: &str, at: usize) -> Span {
        let element = self.elements[at];
        match (self.elements.get(at + 1), at.checked_sub(1)) {
            // As it was put in, or as somebody wrote it anew.
            (Some(_), _) if text[element.end..].starts_with(", ") => {
                Span { start: element.start, end: element.end + 2 }
            }
            (Some(next), _) => Span { start: element.start, end: next.start },
            (None, Some(before)) => Span { start: self.elements[before].end, end: element.end },
            (None, None) => element,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> HookEntry {
        HookEntry {
            program: "/usr/bin/pintle-hook".into(),
            socket: "/run/user/1/pintle/guard.sock".into(),
            key_file: "/srv/ann/.local/share/pintle/guard/key".into(),
            timeout_s: 600,
            deadline_ms: 598_000,
        }
    }

    fn claude() -> &'static GuardHost {
        guard::host("claude").unwrap()
    }

    #[test]
    fn what_others_wrote_stays_byte_by_byte() {
        for before in [
            "{}\n",
            "{\n  \"model\": \"x\"\n}\n",
            "{ \"hooks\" : { \"PreToolUse\" : [ {\"matcher\":\"Bash\",\"hooks\":[{\"type\":\"command\",\"command\":\"mine\"}]} ] , \"Other\":[] } , \"n\": 1.50 }",
            "\n\t{\"hooks\":{\"Stop\":[{\"hooks\":[]}]}}\n\n",
            "{\"hooks\": {\"Notification\": [{\"hooks\": []}]}, \"läden\": \"\\u00e4\"}",
        ] {
            let with = installed(claude(), before, &entry()).unwrap();
            let read: serde_json::Value = serde_json::from_str(&with).unwrap();
            let first = &read["hooks"]["PreToolUse"][0];
            assert_eq!(first["hooks"][0]["command"], "/usr/bin/pintle-hook", "{with}");
            assert_eq!(first["matcher"], "*", "{with}");
            assert_eq!(installed(claude(), &with, &entry()).unwrap(), with, "once more changes nothing");
            assert_eq!(removed(claude(), &with).unwrap(), before, "{with}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_made() {
        let with = installed(claude(), "", &entry()).unwrap();
        assert!(with.starts_with("{\n  \"hooks\": {\n    \"SessionStart\": [{") && with.ends_with("\n}\n"), "{with}");
        assert_eq!(removed(claude(), &with).unwrap(), "{}\n");
    }

    #[test]
    fn every_event_has_its_own_entry_and_no_shell() {
        let with = installed(claude(), "", &entry()).unwrap();
        let read: serde_json::Value = serde_json::from_str(&with).unwrap();
        for event in claude().events.iter().filter(|event| event.installed) {
            let hook = &read["hooks"][event.name][0]["hooks"][0];
            assert_eq!(hook["args"][3], event.name, "{with}");
            assert_eq!((&hook["onFailure"], &hook["timeout"]), (&json!("block"), &json!(600)), "{with}");
        }
    }

    #[test]
    fn what_is_no_settings_is_left_alone() {
        for bad in ["[]", "{", "{\"hooks\": []}", "{\"hooks\": {\"Stop\": {}}}", "// a\n{}"] {
            assert!(installed(claude(), bad, &entry()).is_err(), "{bad}");
        }
    }
}
