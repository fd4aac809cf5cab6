//! Puts entries into the `hooks` of a JSON file, and takes them out, without touching another byte.

use pintle_domain::json::{Object, Value, json};

use super::json_text::{Element, Kind, Node, parse, pretty};
use super::others::{FoundHook, NotEdited, OtherHook, is_ours, runs};
use crate::host::RowPosition;

/// How one host wants it.
pub(super) struct Edit<'a> {
    pub(super) comments: bool,
    pub(super) position: RowPosition,
    /// The events, each with its entry.
    pub(super) wanted: &'a [(&'static str, Value)],
}

/// How a text is laid out.
struct Layout {
    line: &'static str,
    unit: String,
    /// Where a new element stands among others.
    position: RowPosition,
}

impl Layout {
    fn of(text: &str, root: &Node, position: RowPosition) -> Self {
        let line = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let unit = match &root.kind {
            Kind::Object(members) | Kind::Array(members) => members.first().and_then(|first| indent(text, first.start)),
            Kind::Plain(_) => None,
        };
        Self { line, unit: unit.filter(|unit| !unit.is_empty()).unwrap_or("  ").to_owned(), position }
    }
}

/// The blanks before `at`, if nothing else stands before it on its line.
fn indent(text: &str, at: usize) -> Option<&str> {
    let line = text[..at].rfind('\n')? + 1;
    let before = &text[line..at];
    before.trim_matches([' ', '\t']).is_empty().then_some(before)
}

impl Edit<'_> {
    /// The text with our entries in it.
    pub(super) fn install(&self, old: Option<&str>) -> Result<String, NotEdited> {
        let Some(old) = old.filter(|old| !old.trim_start_matches('\u{feff}').trim().is_empty()) else {
            return Ok(format!("{}\n", pretty(&self.whole(), "  ", "\n", "")));
        };
        if self.is_installed(&parse(old, self.comments)?)? {
            return Ok(old.to_owned());
        }
        let mut text = self.remove(old)?;
        let root = parse(&text, self.comments)?;
        if root.member("hooks")?.is_none() {
            let Value::Object(mut whole) = self.whole() else { return Ok(text) };
            let hooks = whole.shift_remove("hooks").unwrap_or_default();
            return put(&text, &root, (Some("hooks"), &hooks), &Layout::of(&text, &root, RowPosition::Last));
        }
        for (event, entry) in self.wanted {
            text = self.add(&text, event, entry)?;
        }
        Ok(text)
    }

    /// `text`, which has `hooks`, with one more entry at `event`.
    fn add(&self, text: &str, event: &str, entry: &Value) -> Result<String, NotEdited> {
        let root = parse(text, self.comments)?;
        let layout = |position| Layout::of(text, &root, position);
        let Some(hooks) = root.member("hooks")? else { return Err(NotEdited::Shape("hooks".to_owned())) };
        match hooks.value.member(event)? {
            Some(list) => put(text, &list.value, (None, entry), &layout(self.position)),
            None => {
                let list = Value::from(vec![entry.clone()]);
                put(text, &hooks.value, (Some(event), &list), &layout(RowPosition::Last))
            }
        }
    }

    /// `text` with the lists `groups` of events behind what stands there: what was taken over goes back.
    pub(super) fn put_back(&self, text: &str, groups: &Object) -> Result<String, NotEdited> {
        let mut text = text.to_owned();
        let back = Self { comments: self.comments, position: RowPosition::Last, wanted: &[] };
        let whole = || json!({"hooks": Value::Object(groups.clone())});
        if text.trim_start_matches('\u{feff}').trim().is_empty() {
            return Ok(format!("{}\n", pretty(&whole(), "  ", "\n", "")));
        }
        let root = parse(&text, self.comments)?;
        if root.member("hooks")?.is_none() {
            let layout = Layout::of(&text, &root, RowPosition::Last);
            return put(&text, &root, (Some("hooks"), &Value::Object(groups.clone())), &layout);
        }
        for (event, list) in groups {
            for group in list.as_array().into_iter().flatten() {
                text = back.add(&text, event, group)?;
            }
        }
        Ok(text)
    }

    /// The hooks of others in `text`, each with where it stands.
    pub(super) fn all_others(&self, text: &str) -> Result<Vec<FoundHook>, NotEdited> {
        let root = parse(text, self.comments)?;
        let mut found = Vec::new();
        for (event, elements) in lists(&root)? {
            for (group, element) in elements.iter().enumerate() {
                let entry = element.value.value();
                let Some(list) = entry.get("hooks").and_then(Value::as_array) else { continue };
                for (at, hook) in list.iter().enumerate().filter(|(_, hook)| !is_ours(hook)) {
                    found.push(FoundHook {
                        event: event.to_owned(),
                        place: (group, at),
                        group: entry.clone(),
                        hook: hook.clone(),
                    });
                }
            }
        }
        Ok(found)
    }

    /// `text` without the hook at `place` of `event`: its whole entry goes where it is alone in it.
    pub(super) fn without(&self, text: &str, event: &str, (group, at): (usize, usize)) -> Result<String, NotEdited> {
        let root = parse(text, self.comments)?;
        let lists = lists(&root)?;
        let gone = || NotEdited::Shape(event.to_owned());
        let (_, elements) = lists.into_iter().find(|(name, _)| *name == event).ok_or_else(gone)?;
        let element = elements.get(group).ok_or_else(gone)?;
        let hooks = element.value.member("hooks")?.ok_or_else(gone)?;
        let Kind::Array(hooks) = &hooks.value.kind else { return Err(gone()) };
        if hooks.len() > 1 { Ok(cut(text, hooks, at)) } else { Ok(cut(text, elements, group)) }
    }

    fn whole(&self) -> Value {
        let lists = self.wanted.iter().map(|(event, entry)| ((*event).to_owned(), Value::from(vec![entry.clone()])));
        let mut whole = Object::new();
        whole.insert("hooks".to_owned(), Value::Object(lists.collect()));
        Value::Object(whole)
    }

    /// Whether exactly our entries stand there, each in its place.
    fn is_installed(&self, root: &Node) -> Result<bool, NotEdited> {
        let lists = lists(root)?;
        let mut found = 0;
        for (event, elements) in &lists {
            for (at, element) in elements.iter().enumerate() {
                if !belongs_to_us(event, &element.value)? {
                    continue;
                }
                let is_placed = match self.position {
                    RowPosition::First => at == 0,
                    RowPosition::Last => at + 1 == elements.len(),
                    RowPosition::Any => true,
                };
                let value = element.value.value();
                if !is_placed || !self.wanted.iter().any(|(wanted, entry)| wanted == event && *entry == value) {
                    return Ok(false);
                }
                found += 1;
            }
        }
        Ok(found == self.wanted.len())
    }

    /// The text without our entries.
    pub(super) fn remove(&self, text: &str) -> Result<String, NotEdited> {
        let mut text = text.to_owned();
        if text.trim_start_matches('\u{feff}').trim().is_empty() {
            return Ok(text);
        }
        // One at a time: each changes the places of the others.
        while let Some(shorter) = self.remove_one(&text)? {
            text = shorter;
        }
        Ok(text)
    }

    fn remove_one(&self, text: &str) -> Result<Option<String>, NotEdited> {
        let root = parse(text, self.comments)?;
        for (event, elements) in lists(&root)? {
            for (at, element) in elements.iter().enumerate() {
                if !belongs_to_us(event, &element.value)? {
                    continue;
                }
                // What only we could have put there goes as a whole.
                if elements.len() > 1 {
                    return Ok(Some(cut(text, elements, at)));
                }
                let hooks = root.member("hooks")?.map(|hooks| &hooks.value.kind);
                let (Some(Kind::Object(events)), Kind::Object(members)) = (hooks, &root.kind) else { return Ok(None) };
                let (elements, name) = if events.len() > 1 { (events, event) } else { (members, "hooks") };
                let at = elements.iter().position(|member| member.name == name);
                return Ok(at.map(|at| cut(text, elements, at)));
            }
        }
        Ok(None)
    }

    /// Whether a hook of ours stands in `text`.
    pub(super) fn has_ours(&self, text: &str) -> Result<bool, NotEdited> {
        if text.trim_start_matches('\u{feff}').trim().is_empty() {
            return Ok(false);
        }
        let root = parse(text, self.comments)?;
        let elements = lists(&root)?.into_iter().flat_map(|(_, elements)| elements);
        Ok(elements.into_iter().any(|element| hooks(&element.value.value()).iter().any(is_ours)))
    }

    /// The events of which a hook of ours stands in `text`.
    pub(super) fn own_events(&self, text: &str) -> Result<Vec<String>, NotEdited> {
        let root = parse(text, self.comments)?;
        let is_own = |element: &Element| hooks(&element.value.value()).iter().any(is_ours);
        let found = lists(&root)?.into_iter().filter(|(_, elements)| elements.iter().any(is_own));
        Ok(found.map(|(event, _)| event.to_owned()).collect())
    }

    /// The hooks of others on our events.
    pub(super) fn others(&self, old: Option<&str>) -> Result<Vec<OtherHook>, NotEdited> {
        let Some(old) = old.filter(|old| !old.trim_start_matches('\u{feff}').trim().is_empty()) else {
            return Ok(Vec::new());
        };
        let root = parse(old, self.comments)?;
        let mut others = Vec::new();
        for (event, elements) in lists(&root)? {
            if !self.wanted.iter().any(|(wanted, _)| *wanted == event) {
                continue;
            }
            for element in elements {
                let theirs = hooks(&element.value.value()).into_iter().filter(|hook| !is_ours(hook));
                others.extend(theirs.map(|hook| OtherHook { event: event.to_owned(), runs: runs(&hook) }));
            }
        }
        Ok(others)
    }
}

/// The lists of all events.
fn lists(root: &Node) -> Result<Vec<(&str, &[Element])>, NotEdited> {
    let Kind::Object(_) = &root.kind else { return Err(NotEdited::Shape("the file".to_owned())) };
    let Some(hooks) = root.member("hooks")? else { return Ok(Vec::new()) };
    let Kind::Object(events) = &hooks.value.kind else { return Err(NotEdited::Shape("hooks".to_owned())) };
    let mut lists = Vec::new();
    for event in events {
        hooks.value.member(&event.name)?;
        match &event.value.kind {
            Kind::Array(elements) => lists.push((event.name.as_str(), elements.as_slice())),
            // Beside the events, there are settings of hooks.
            Kind::Plain(_) | Kind::Object(_) => {}
        }
    }
    Ok(lists)
}

/// The hooks of an entry.
fn hooks(entry: &Value) -> Vec<Value> {
    entry.get("hooks").and_then(Value::as_array).cloned().unwrap_or_else(|| vec![entry.clone()])
}

fn belongs_to_us(event: &str, entry: &Node) -> Result<bool, NotEdited> {
    let hooks = hooks(&entry.value());
    match hooks.iter().filter(|hook| is_ours(hook)).count() {
        0 => Ok(false),
        ours if ours == hooks.len() => Ok(true),
        _ => Err(NotEdited::Mixed(event.to_owned())),
    }
}

/// `text` without the element `at` of `elements`, and without what held it apart from its neighbours.
fn cut(text: &str, elements: &[Element], at: usize) -> String {
    let element = &elements[at];
    let end = element.value.end;
    if let Some(comma) = element.comma {
        // With the blanks before it: those behind its comma belong to what follows.
        let start = blanks_before(text, element.start);
        let until_comma = &text[end..comma];
        return format!("{}{until_comma}{}", &text[..start], &text[comma + 1..]);
    }
    let start = blanks_before(text, element.start);
    match at.checked_sub(1).and_then(|before| elements[before].comma) {
        Some(comma) => format!("{}{}{}", &text[..comma], &text[comma + 1..start.max(comma + 1)], &text[end..]),
        None => {
            // It was the only one: what is left inside is blanks, if we were alone.
            let rest = text[end..].trim_start();
            let closes = rest.starts_with(['}', ']']);
            let behind = if closes { rest } else { &text[end..] };
            format!("{}{behind}", &text[..start])
        }
    }
}

fn blanks_before(text: &str, at: usize) -> usize {
    text[..at].trim_end_matches([' ', '\t', '\r', '\n']).len()
}

/// `text` with an element in the container `node`: a member where it has a name.
fn put(text: &str, node: &Node, (name, value): (Option<&str>, &Value), layout: &Layout) -> Result<String, NotEdited> {
    let elements = match &node.kind {
        Kind::Object(elements) if name.is_some() => elements,
        Kind::Array(elements) if name.is_none() => elements,
        Kind::Object(_) | Kind::Array(_) | Kind::Plain(_) => {
            return Err(NotEdited::Shape(name.unwrap_or("a list of hooks").to_owned()));
        }
    };
    let named = |written: String| match name {
        Some(name) => format!("{}: {written}", Value::from(name)),
        None => written,
    };
    let (open, close) = (node.start + 1, node.end - 1);
    let Some(first) = elements.first() else {
        let outer = line_indent(text, node.start);
        let inner = format!("{outer}{}", layout.unit);
        let written = named(pretty(value, &layout.unit, layout.line, &inner));
        let inside = &text[open..close];
        let line = layout.line;
        let inside = if inside.trim().is_empty() { format!("{line}{outer}") } else { inside.to_owned() };
        return Ok(format!("{}{line}{inner}{written}{inside}{}", &text[..open], &text[close..]));
    };
    // What stands on one line stays on one line.
    let (before, written) = match indent(text, first.start) {
        Some(inner) => (format!("{}{inner}", layout.line), named(pretty(value, &layout.unit, layout.line, inner))),
        None => (String::new(), named(value.to_string())),
    };
    if layout.position == RowPosition::First {
        return Ok(format!("{}{before}{written},{}", &text[..open], &text[open..]));
    }
    let Some(last) = elements.last() else { return Ok(text.to_owned()) };
    let before = if before.is_empty() { " ".to_owned() } else { before };
    Ok(match last.comma {
        Some(comma) => format!("{}{before}{written},{}", &text[..=comma], &text[comma + 1..]),
        None => {
            let end = last.value.end;
            // A remark on the last line stays with what it is about.
            let remark = remark(&text[end..close]);
            let (remark, rest) = text[end..].split_at(remark);
            format!("{},{remark}{before}{written}{rest}", &text[..end])
        }
    })
}

/// The blanks that the line of `at` begins with.
fn line_indent(text: &str, at: usize) -> &str {
    let line = text[..at].rfind('\n').map_or(0, |line| line + 1);
    let rest = &text[line..at];
    &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
}

/// How long the remark is that ends the line which `rest` begins in; 0 if there is none, or if it goes on.
fn remark(rest: &str) -> usize {
    let line = rest.find('\n').map_or(rest.len(), |end| end);
    let line = rest[..line].trim_end_matches('\r');
    let said = line.trim_start_matches([' ', '\t']);
    let is_whole = said.starts_with("//") || (said.starts_with("/*") && said.trim_end().ends_with("*/"));
    if is_whole { line.trim_end().len() } else { 0 }
}
