//! What may stand in the events of an answer and in which order: a call is said up to five times, and must be the same
//! call each time.

use std::collections::BTreeMap;

use super::item::{OutputItem, WrittenCall, item};
use crate::answer::AnswerTo;
use crate::spans::{JsonDocument, Node};
use crate::strict::{envelope, index, list, object, text};
use pintle_egress::sse::Event;

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// The answer begins, or is under way.
    Beginning,
    /// An item begins.
    Added(u64),
    /// A part of the arguments of a call.
    Grew(u64),
    /// All arguments of a call.
    Repeated(u64),
    /// An item is whole.
    Finished(u64),
    /// Anything else of an item that is no call.
    Part(u64),
    /// The answer ends.
    Ending {
        /// Whether the model came to its end.
        is_complete: bool,
    },
    /// The vendor gives up.
    Failed,
    /// Anything else.
    Other,
}

/// An item as far as it came.
#[derive(Debug)]
pub(super) struct ItemForm {
    /// As it began.
    begun: OutputItem,
    /// The parts of its arguments.
    grown: String,
    /// Its arguments as they were repeated.
    repeated: Option<String>,
    /// Its text as its parts said it, and as it was repeated.
    texts: [String; 2],
    /// What it is when it is whole, and its bytes.
    pub(super) finished: Option<(OutputItem, String)>,
}

impl ItemForm {
    /// What it is, as far as that is known.
    pub(super) fn item(&self) -> &OutputItem {
        self.finished.as_ref().map_or(&self.begun, |(item, _)| item)
    }
}

/// How far the events of one round have come.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The items by their indices.
    pub(super) items: BTreeMap<u64, ItemForm>,
    /// Whether it came to its end.
    pub(super) is_ended: bool,
}

impl Order {
    /// Looks at the next event of an answer to `to`.
    ///
    /// # Errors
    /// It is not as the wire has it, in words.
    pub(super) fn take(&mut self, event: &Event, document: &JsonDocument, to: &AnswerTo) -> Result<EventKind, String> {
        let root = envelope(document, ("data", &document.root))?;
        let kind = text(document, root, "type")?.ok_or("an event of the answer has no `type`")?;
        if let Some(name) = event.name().filter(|name| *name != kind) {
            return Err(format!("an event of the answer is called `{name}`, and its `type` is `{kind}`"));
        }
        if self.is_ended {
            return Err("the answer goes on behind its end".into());
        }
        match kind.as_str() {
            "response.created" | "response.in_progress" | "response.queued" => begin(document, root),
            "response.output_item.added" => self.add(document, root, to),
            "response.output_item.done" => self.finish(document, root, to),
            "response.function_call_arguments.delta" => self.grow(document, root, false),
            "response.custom_tool_call_input.delta" => self.grow(document, root, true),
            "response.function_call_arguments.done" => self.repeat(document, root, false),
            "response.custom_tool_call_input.done" => self.repeat(document, root, true),
            "response.completed" => self.end(document, root, (to, true)),
            "response.incomplete" | "response.failed" | "response.cancelled" => self.end(document, root, (to, false)),
            kind => self.other(document, root, kind),
        }
    }

    fn add(&mut self, document: &JsonDocument, root: &Node, to: &AnswerTo) -> Result<EventKind, String> {
        let place = place(document, root)?;
        let node = object(document, root, "item")?.ok_or("an item of the answer has no `item`")?;
        let begun = item(document, node, to)?;
        if let Some(call) = begun.call() {
            let mut calls = self.items.values().filter_map(|form| form.begun.call());
            if calls.any(|own| own.id == call.id || (own.item.is_some() && own.item == call.item)) {
                return Err("two calls of the answer have the same id".into());
            }
        }
        let form = ItemForm { begun, grown: String::new(), repeated: None, texts: Default::default(), finished: None };
        match self.items.insert(place, form) {
            None => Ok(EventKind::Added(place)),
            Some(_) => Err(format!("the item {place} of the answer begins a second time")),
        }
    }

    fn finish(&mut self, document: &JsonDocument, root: &Node, to: &AnswerTo) -> Result<EventKind, String> {
        let (place, form) = self.open(document, root)?;
        let node = object(document, root, "item")?.ok_or("an item of the answer has no `item`")?;
        let whole = item(document, node, to)?;
        if std::mem::discriminant(&whole) != std::mem::discriminant(&form.begun) {
            return Err(format!("the item {place} of the answer ends as another one"));
        }
        if let (Some(begun), Some(call)) = (form.begun.call(), whole.call()) {
            check_arguments(form, (begun, call))?;
        }
        if let OutputItem::Message(_, said) = &whole
            && form.texts.iter().any(|text| !text.is_empty() && text != said)
        {
            return Err("a message has one text, and later another".into());
        }
        form.finished = Some((whole, document.raw(node).to_owned()));
        Ok(EventKind::Finished(place))
    }

    fn grow(&mut self, document: &JsonDocument, root: &Node, is_custom: bool) -> Result<EventKind, String> {
        let (place, form, _) = self.call(document, root, is_custom)?;
        form.grown.push_str(&text(document, root, "delta")?.unwrap_or_default());
        Ok(EventKind::Grew(place))
    }

    fn repeat(&mut self, document: &JsonDocument, root: &Node, is_custom: bool) -> Result<EventKind, String> {
        let (place, form, call) = self.call(document, root, is_custom)?;
        if text(document, root, "name")?.is_some_and(|name| name != call.own_name) {
            return Err("a call has one name, and later another".into());
        }
        let written = text(document, root, call.member())?.unwrap_or_default();
        if form.repeated.replace(written).is_some() {
            return Err("the arguments of a call are repeated twice".into());
        }
        Ok(EventKind::Repeated(place))
    }

    /// The end: what it repeats of calls must be what was said before.
    fn end(
        &mut self,
        document: &JsonDocument,
        root: &Node,
        (to, is_complete): (&AnswerTo, bool),
    ) -> Result<EventKind, String> {
        let response = object(document, root, "response")?.ok_or("the end of the answer has no `response`")?;
        text(document, response, "status")?;
        text(document, response, "id")?;
        object(document, response, "usage")?;
        if is_complete && self.items.values().any(|form| form.finished.is_none()) {
            return Err("the answer ends before all of its items do".into());
        }
        let output = list(document, response, "output")?;
        let mut calls: Vec<&ItemForm> = self.items.values().filter(|form| form.begun.call().is_some()).collect();
        let mut texts = String::new();
        for node in output {
            let repeated = item(document, node, to)?;
            if let OutputItem::Message(_, text) = &repeated {
                texts.push_str(text);
            }
            let Some(repeated) = repeated.call() else { continue };
            let is_it = |form: &&ItemForm| match (&form.finished, form.item().call()) {
                (Some(_), Some(call)) => call == repeated,
                // What was cut off goes no further, whatever it says.
                (None, Some(call)) => call.is_same(repeated),
                (_, None) => false,
            };
            let at = calls.iter().position(is_it).ok_or("the end of the answer has a call that was not said before")?;
            calls.remove(at);
        }
        if !output.is_empty() && !calls.is_empty() {
            return Err("the end of the answer lacks a call that was said before".into());
        }
        if is_complete && !output.is_empty() && texts != self.text() {
            return Err("the end of the answer has another text than was said before".into());
        }
        self.is_ended = true;
        Ok(EventKind::Ending { is_complete })
    }

    /// The text of all messages.
    fn text(&self) -> String {
        let text = |form: &ItemForm| match form.item() {
            OutputItem::Message(_, text) => text.clone(),
            OutputItem::Call(_) | OutputItem::Thought { .. } | OutputItem::Other => String::new(),
        };
        self.items.values().map(text).collect()
    }

    fn other(&mut self, document: &JsonDocument, root: &Node, kind: &str) -> Result<EventKind, String> {
        if let Some(name) = ["item", "response"].iter().find(|name| root.get(name).is_some()) {
            return Err(format!("an event of the kind `{kind}` with `{name}` is not known here"));
        }
        object(document, root, "part")?;
        if kind == "error" {
            self.is_ended = true;
            return Ok(EventKind::Failed);
        }
        if root.get("output_index").is_none() {
            return match kind.contains("call") {
                true => Err(format!("an event of the kind `{kind}` has no `output_index`")),
                false => Ok(EventKind::Other),
            };
        }
        let place = place(document, root)?;
        let said = match kind {
            "response.output_text.delta" => text(document, root, "delta")?.map(|text| (0, text)),
            "response.output_text.done" => text(document, root, "text")?.map(|text| (1, text)),
            _ => None,
        };
        match self.items.get_mut(&place) {
            Some(form) if form.begun.call().is_some() => Err(format!("a call has an event of the kind `{kind}`")),
            Some(form) => {
                if let Some((at, text)) = said {
                    form.texts[at].push_str(&text);
                }
                Ok(EventKind::Part(place))
            }
            None => Err(format!("an event of the answer is of the item {place}, which did not begin")),
        }
    }

    /// The item of an event that is not whole yet.
    fn open(&mut self, document: &JsonDocument, root: &Node) -> Result<(u64, &mut ItemForm), String> {
        let place = place(document, root)?;
        let form = self.items.get_mut(&place).filter(|form| form.finished.is_none());
        let missing = || format!("an event of the answer is of the item {place}, which is not open");
        Ok((place, form.ok_or_else(missing)?))
    }

    /// The call of an event that is of calls of this kind.
    fn call(
        &mut self,
        document: &JsonDocument,
        root: &Node,
        is_custom: bool,
    ) -> Result<(u64, &mut ItemForm, WrittenCall), String> {
        let named = text(document, root, "item_id")?.filter(|id| !id.is_empty());
        let (place, form) = self.open(document, root)?;
        let call = form.begun.call().filter(|call| call.is_custom == is_custom).cloned();
        let call = call.ok_or("arguments stand outside of a call of their kind")?;
        if named.is_some() && named != call.item {
            return Err("arguments of one call name another one".into());
        }
        if form.repeated.is_some() {
            return Err("the arguments of a call go on behind their end".into());
        }
        Ok((place, form, call))
    }
}

fn begin(document: &JsonDocument, root: &Node) -> Result<EventKind, String> {
    let Some(response) = object(document, root, "response")? else { return Ok(EventKind::Beginning) };
    match list(document, response, "output")?.is_empty() {
        true => Ok(EventKind::Beginning),
        false => Err("the answer has items in its beginning, where none stand".into()),
    }
}

fn place(document: &JsonDocument, root: &Node) -> Result<u64, String> {
    Ok(index(document, root, "output_index")?.ok_or("an event of an item has no `output_index`")?)
}

/// Whether all that was said of the arguments of a call is the same.
fn check_arguments(form: &ItemForm, (begun, call): (&WrittenCall, &WrittenCall)) -> Result<(), String> {
    if !begun.is_same(call) {
        return Err("a call has one name or id, and later another".into());
    }
    let begins = format!("{}{}", begun.written, form.grown);
    let repeated = form.repeated.as_ref().is_none_or(|repeated| *repeated == call.written);
    match (begins.is_empty() || begins == call.written) && repeated {
        true => Ok(()),
        false => Err("a call has one text of arguments, and later another".into()),
    }
}
