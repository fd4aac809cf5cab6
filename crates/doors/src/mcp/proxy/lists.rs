//! Lists of tools: those that the client asks for, and the door's own, without which no call is cleared.

use pintle_domain::json::{Value, json};

use super::McpProxy;
use super::held::{HeldPage, OpenRequest, OwnListing};
use super::step::{PinnedTools, ProxyStep, ServerBound, Ticket};
use crate::mcp::message::{INTERNAL_ERROR, McpKind, McpMessage, RequestKey, error_reply};
use crate::mcp::tools::{ListedPage, MAX_TOOLS, ToolDefinition, unalike, without};

/// Most pages of one list, so that a server which never ends its list does not hold a call.
const MAX_PAGES: usize = 128;

/// How the ids of the door's own requests begin.
const OWN_ID: &str = "pintle-list-";

impl McpProxy {
    /// Whether all tools are known as they are now.
    pub(super) fn is_current(&self) -> bool {
        self.listed_at == Some(self.changes)
    }

    /// Asks for all tools, unless that is under way.
    pub(super) fn list(&mut self, meta: Option<String>) {
        if self.listing.is_none() {
            let changes = self.changes;
            self.listing = Some(OwnListing { changes, pages: 0, found: Vec::new(), meta: meta.clone(), ticket: None });
            self.ask_page(None, meta);
        }
    }

    fn ask_page(&mut self, cursor: Option<&str>, meta: Option<String>) {
        let id = loop {
            let id = Value::from(format!("{OWN_ID}{}", self.ticket()));
            match RequestKey::of(&id) {
                Some(key) if !self.open.contains_key(&key) => break (id, key),
                Some(_) | None => {}
            }
        };
        let members = [("cursor", cursor.map(str::to_owned)), ("_meta", meta)];
        let members = members.into_iter().filter_map(|(name, text)| Some(format!("\"{name}\":{}", text?)));
        let params = members.collect::<Vec<_>>().join(",");
        let (id, key) = id;
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{params}}}}}"#);
        self.open.insert(key.clone(), OpenRequest::OwnList);
        let method = Some("tools/list".to_owned());
        let bound = ServerBound { text, key: Some(key), method, name: None, mirrored: Vec::new() };
        self.steps.push_back(ProxyStep::ToServer(bound));
    }

    pub(super) fn page_came(&mut self, message: McpMessage, key: RequestKey, (is_first, changes): (bool, u64)) {
        let Some(result) = message.document.root.get("result") else {
            return self.answer(message.document.text, key);
        };
        match ListedPage::read(&message.document, result) {
            Ok(page) => {
                let whole_at = (is_first && page.next.is_none()).then_some(changes);
                let ticket = self.ticket();
                let definitions: Vec<_> = page.tools.iter().map(|(_, tool)| tool.clone()).collect();
                self.steps.push_back(ProxyStep::Pin(ticket, comparable(&definitions)));
                self.held.pages.insert(ticket, HeldPage { key, message, page, whole_at });
            }
            Err(why) => {
                let why = format!("the server's list of tools cannot be read: {why}");
                self.answer(error_reply(message.id(), INTERNAL_ERROR, &why), key);
            }
        }
    }

    pub(super) fn own_page_came(&mut self, message: &McpMessage) {
        let Some(mut listing) = self.listing.take() else { return };
        let page = match message.document.root.get("result") {
            Some(result) => ListedPage::read(&message.document, result),
            None => Err(error_text(message)),
        };
        let page = match page {
            Ok(page) => page,
            Err(why) => {
                self.listing = Some(listing);
                return self.own_list_failed(&why);
            }
        };
        listing.pages += 1;
        listing.found.extend(page.tools.into_iter().map(|(_, tool)| tool));
        let next = page.next.filter(|_| listing.pages < MAX_PAGES && listing.found.len() < MAX_TOOLS);
        if let Some(cursor) = next {
            let meta = listing.meta.clone();
            self.listing = Some(listing);
            return self.ask_page(Some(&cursor), meta);
        }
        let ticket = self.ticket();
        self.steps.push_back(ProxyStep::Pin(ticket, comparable(&listing.found)));
        listing.ticket = Some(ticket);
        self.listing = Some(listing);
    }

    pub(super) fn own_list_failed(&mut self, why: &str) {
        self.listing = None;
        let why = format!("the server does not say which tools it has: {why}");
        for ticket in self.unadmitted() {
            self.refuse(ticket, why.clone());
        }
    }

    /// Takes what came of comparing the definitions that had `ticket`: each tool, and why it is withheld.
    pub fn pinned(&mut self, ticket: Ticket, compared: Result<PinnedTools, String>) {
        if let Some(held) = self.held.pages.remove(&ticket) {
            return self.page_pinned(held, compared);
        }
        let Some(listing) = self.listing.take_if(|listing| listing.ticket == Some(ticket)) else { return };
        match compared {
            Ok(compared) => {
                self.take(listing.found, compared, Some(listing.changes));
                for ticket in self.unadmitted() {
                    self.admit(ticket, true);
                }
            }
            Err(why) => self.own_list_failed(&why),
        }
    }

    fn take(&mut self, found: Vec<ToolDefinition>, compared: PinnedTools, whole_at: Option<u64>) {
        let twice = unalike(&found);
        let withheld = |name: &str| {
            if twice.contains(name) {
                return Some(format!("the server lists its tool `{name}` more than once, and not alike"));
            }
            let of_it: Vec<_> = compared.iter().filter(|(tool, _)| tool == name).map(|(_, why)| why.clone()).collect();
            // What was not compared is not known to be the same.
            let unknown = of_it.is_empty().then(|| "it was not compared with what is known".to_owned());
            of_it.into_iter().flatten().next().or(unknown)
        };
        let listed = found.into_iter().map(|tool| (withheld(&tool.name), tool)).map(|(why, tool)| (tool, why));
        self.tools.take(&self.rules.server, listed.collect(), whole_at.is_some());
        if whole_at.is_some() {
            self.listed_at = whole_at;
        }
    }

    fn page_pinned(&mut self, held: HeldPage, compared: Result<PinnedTools, String>) {
        let HeldPage { key, message, page, whole_at } = held;
        let compared = match compared {
            Ok(compared) => compared,
            Err(why) => return self.answer(error_reply(message.id(), INTERNAL_ERROR, &why), key),
        };
        self.take(page.tools.iter().map(|(_, tool)| tool.clone()).collect(), compared, whole_at);
        let is_gone = |name: &str| {
            !self.rules.filter.shows(name) || self.tools.get(name).is_none_or(|known| known.withheld.is_some())
        };
        let hidden = page.tools.iter().filter(|(_, tool)| is_gone(&tool.name)).map(|(place, _)| *place);
        let places: Vec<usize> = page.unusable.into_iter().chain(hidden).collect();
        let text = match message.document.root.get("result") {
            Some(result) if !places.is_empty() => without(result, &places).apply(&message.document.text),
            Some(_) | None => message.document.text,
        };
        self.answer(text, key);
    }
}

/// What of `found` can be compared with what is pinned: of a name with two definitions, none is what it was.
fn comparable(found: &[ToolDefinition]) -> Vec<ToolDefinition> {
    let twice = unalike(found);
    found.iter().filter(|one| !twice.contains(&one.name)).cloned().collect()
}

/// What a client of the newest protocol says of itself with every request, for one of the door's own.
pub(super) fn meta_of(message: &McpMessage) -> Option<String> {
    let meta = message.params()?.get("_meta")?;
    let mut value = message.document.value(meta);
    value.as_object_mut()?.shift_remove("progressToken");
    value.as_object()?.keys().any(|name| name.starts_with("io.modelcontextprotocol/")).then(|| value.to_string())
}

fn error_text(message: &McpMessage) -> String {
    let text = message.document.root.at(&["error", "message"]).and_then(|node| message.document.string(node));
    debug_assert!(matches!(message.kind, McpKind::Reply { .. }), "only answers come here");
    text.unwrap_or_else(|| json!({"error": "none"}).to_string())
}
