//! The tools that a server lists: what hooks know of them, and which the client sees.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use pintle_domain::hex::hex;
use pintle_domain::json::{self, Object, Value, canonical};
use pintle_domain::tool::{Annotations, mcp_tool_names};
use sha2::{Digest as _, Sha256};

use super::message::plainly;
use crate::spans::{Edits, JsonDocument, Node};

/// Most tools that are known of one server: a list that is longer is not one for a model.
pub const MAX_TOOLS: usize = 4096;

/// The members of a definition that say what a tool is: their digest is pinned.
const PINNED: [&str; 7] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution"];

/// The member of a schema by which an argument stands in a header, too. Source: MCP of 2026-07-28, custom headers.
const MIRRORED: &str = "x-mcp-header";

/// Which tools of a server are shown, by the server's own names. The others cannot be called.
#[derive(Clone)]
pub struct ToolFilter(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl ToolFilter {
    /// A filter that shows what `shows` says.
    pub fn new(shows: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(shows))
    }

    /// Whether `tool` is shown.
    pub fn shows(&self, tool: &str) -> bool {
        (self.0)(tool)
    }
}

impl fmt::Debug for ToolFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolFilter")
    }
}

/// A tool, as a server lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDefinition {
    /// The server's own name of it.
    pub name: String,
    /// SHA-256 over all that says what it is, in hex.
    pub digest: String,
    /// All of that, as JSON.
    pub shown: String,
    /// What it says of itself.
    pub annotations: Annotations,
}

impl ToolDefinition {
    /// What of `arguments` a server over HTTP wants in headers, too, by what its schema calls them.
    pub fn mirrored(&self, arguments: &Object) -> Vec<(String, String)> {
        let mut found = Vec::new();
        // Hardly any tool has the word, and the others need not be read.
        if self.shown.contains(MIRRORED)
            && let Ok(shown) = json::parse(&self.shown)
            && let Some(schema) = shown.get("inputSchema")
        {
            mirror(schema, arguments, &mut found);
        }
        found
    }
}

fn mirror(schema: &Value, arguments: &Object, found: &mut Vec<(String, String)>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        let text = match arguments.get(name) {
            Some(Value::Object(inner)) => {
                mirror(property, inner, found);
                continue;
            }
            Some(Value::Bool(value)) => value.to_string(),
            Some(Value::Number(value)) => value.as_str().to_owned(),
            Some(Value::String(value)) => value.clone(),
            Some(Value::Null | Value::Array(_)) | None => continue,
        };
        if let Some(header) = property.get(MIRRORED).and_then(Value::as_str) {
            found.push((header.to_owned(), text));
        }
    }
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedPage {
    /// The tools, each with its place on the page.
    pub tools: Vec<(usize, ToolDefinition)>,
    /// The places of what is no tool, or the same one again.
    pub unusable: Vec<usize>,
    /// How the next page is asked for, as it is written.
    pub next: Option<String>,
}

impl ListedPage {
    /// Reads the result `result` of `tools/list`.
    ///
    /// # Errors
    /// It is no list.
    pub fn read(document: &JsonDocument, result: &Node) -> Result<Self, String> {
        plainly(result, &["tools", "nextCursor"])?;
        let list = result.get("tools").filter(|list| list.is_array()).ok_or("it has no list `tools`")?;
        if list.items().len() > MAX_TOOLS {
            return Err(format!("it has more than {MAX_TOOLS} tools"));
        }
        let (mut tools, mut unusable, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (place, item) in list.items().iter().enumerate() {
            match definition(document, item) {
                // A second one that says something else is told from the first where they are compared.
                Ok(definition) if names.insert((definition.name.clone(), definition.digest.clone())) => {
                    tools.push((place, definition));
                }
                Ok(_) | Err(_) => unusable.push(place),
            }
        }
        let next = result.get("nextCursor").map(|node| document.raw(node)).filter(|raw| *raw != "null");
        Ok(Self { tools, unusable, next: next.map(str::to_owned) })
    }
}

fn definition(document: &JsonDocument, item: &Node) -> Result<ToolDefinition, String> {
    plainly(item, &PINNED)?;
    let value = document.value(item);
    let members = value.as_object().ok_or("it is not an object")?;
    let name = members.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()).ok_or("it has no name")?;
    let hint = |key: &str| members.get("annotations").and_then(|hints| hints.get(key)).and_then(Value::as_bool);
    let pinned = PINNED.iter().filter_map(|name| Some(((*name).to_owned(), members.get(name)?.clone())));
    let shown = Value::Object(pinned.collect::<Object>());
    Ok(ToolDefinition {
        name: name.to_owned(),
        digest: hex(&Sha256::digest(canonical(&shown).as_bytes())),
        shown: shown.to_string(),
        annotations: Annotations { read_only: hint("readOnlyHint"), destructive: hint("destructiveHint") },
    })
}

/// The names that stand in `found` with more than one definition: which of them a call is for, nobody knows.
pub fn unalike(found: &[ToolDefinition]) -> BTreeSet<String> {
    let (mut first, mut unalike) = (BTreeMap::new(), BTreeSet::new());
    for one in found {
        if *first.entry(one.name.as_str()).or_insert(one.digest.as_str()) != one.digest.as_str() {
            unalike.insert(one.name.clone());
        }
    }
    unalike
}

/// Takes the items at `places` out of the list of tools in `result`.
pub fn without(result: &Node, places: &[usize]) -> Edits {
    let mut edits = Edits::default();
    if let Some(list) = result.get("tools") {
        edits.remove_items(list, places);
    }
    edits
}

/// `own` with what providers do not take in a name replaced.
fn clean(own: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    own.chars().map(keep).collect()
}

/// A tool that is known, and whether it can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTool {
    /// Our name of it.
    pub tool: String,
    /// As it is listed.
    pub definition: ToolDefinition,
    /// Why it is withheld; none if it is not.
    pub withheld: Option<String>,
}

/// The tools of one server.
#[derive(Clone, Debug, Default)]
pub struct KnownTools(BTreeMap<String, KnownTool>);

impl KnownTools {
    /// Takes what was listed, each with the reason for which it is withheld; `whole`: and nothing else is there any more.
    pub fn take(&mut self, server: &str, listed: Vec<(ToolDefinition, Option<String>)>, whole: bool) {
        if whole {
            self.0.clear();
        }
        for (definition, withheld) in listed {
            if self.0.len() < MAX_TOOLS || self.0.contains_key(&definition.name) {
                let name = definition.name.clone();
                self.0.insert(name, KnownTool { tool: String::new(), definition, withheld });
            }
        }
        let own: Vec<String> = self.0.keys().cloned().collect();
        // A name that is not clean is always marked: here its clean twin, which is named before it, is always there. Else
        // a tool would have another name for rules as soon as such a twin is listed.
        let twins: Vec<String> = own.iter().map(|own| clean(own)).collect();
        let all: Vec<&str> = own.iter().chain(&twins).map(String::as_str).collect();
        for (own, name) in own.iter().zip(mcp_tool_names(server, &all)) {
            if let Some(known) = self.0.get_mut(own) {
                known.tool = name.unwrap_or_default();
            }
        }
        // A tool without a name of ours could be called past every rule that names tools.
        self.0.retain(|_, known| !known.tool.is_empty());
    }

    /// The tool that the server calls `name`.
    pub fn get(&self, name: &str) -> Option<&KnownTool> {
        self.0.get(name)
    }

    /// The server's own name of the tool that hooks know as `tool`.
    pub fn own_name(&self, tool: &str) -> Option<&str> {
        self.0.iter().find(|(_, known)| known.tool == tool).map(|(name, _)| name.as_str())
    }

    /// Our name of each, and what it says of itself.
    pub fn annotations(&self) -> BTreeMap<String, Annotations> {
        self.0.values().map(|known| (known.tool.clone(), known.definition.annotations)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Result<ListedPage, String> {
        let document = JsonDocument::read(text.to_owned()).unwrap();
        ListedPage::read(&document, &document.root)
    }

    #[test]
    fn a_page_is_read_tool_by_tool() {
        let text = r#"{"tools":[{"name":"a","annotations":{"readOnlyHint":true}},{"Name":"b"},{"name":"a"},{},{"name":"c"},{"name":"c"}],
            "nextCursor":"x"}"#;
        let page = page(text).unwrap();
        let names: Vec<_> = page.tools.iter().map(|(place, tool)| (*place, tool.name.as_str())).collect();
        assert_eq!(
            (names, page.unusable, page.next.as_deref()),
            (vec![(0, "a"), (2, "a"), (4, "c")], vec![1, 3, 5], Some("\"x\""))
        );
        let found: Vec<ToolDefinition> = page.tools.iter().map(|(_, tool)| tool.clone()).collect();
        assert_eq!(unalike(&found), BTreeSet::from(["a".to_owned()]));
        assert_eq!(page.tools[0].1.annotations, Annotations { read_only: Some(true), destructive: None });
    }

    #[test]
    fn what_is_no_list_is_none() {
        for (text, why) in [
            ("{}", "it has no list `tools`"),
            (r#"{"tools":{}}"#, "it has no list `tools`"),
            (r#"{"Tools":[],"tools":[]}"#, "it has the member `Tools`, which some read as `tools`"),
        ] {
            assert_eq!(page(text).unwrap_err(), why);
        }
    }

    #[test]
    fn the_digest_is_of_what_says_what_a_tool_is() {
        let digest = |text: &str| page(&format!(r#"{{"tools":[{text}]}}"#)).unwrap().tools[0].1.digest.clone();
        let one = digest(r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":1}}"#);
        assert_eq!(one, digest(r#"{"inputSchema":{"x":1,"type":"object"},"description":"d","name":"a","_meta":{}}"#));
        for other in [
            r#"{"name":"a","description":"e","inputSchema":{"type":"object","x":1}}"#,
            r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":2}}"#,
            r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":1},"annotations":{}}"#,
        ] {
            assert_ne!(one, digest(other), "{other}");
        }
    }

    #[test]
    fn arguments_are_mirrored_as_the_schema_says() {
        let schema = r#"{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"},"n":{"x-mcp-header":"N"},
            "in":{"properties":{"b":{"x-mcp-header":"Deep"}}},"none":{"x-mcp-header":"None"},"plain":{}}}"#;
        let page = page(&format!(r#"{{"tools":[{{"name":"a","inputSchema":{schema}}},{{"name":"b"}}]}}"#)).unwrap();
        let arguments = json::parse(r#"{"r":"eu","n":1.50,"in":{"b":true},"none":null,"plain":"x"}"#).unwrap();
        let mirrored = |tool: usize| page.tools[tool].1.mirrored(arguments.as_object().unwrap());
        let expected = [("Region", "eu"), ("N", "1.50"), ("Deep", "true")];
        assert_eq!(mirrored(0), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(mirrored(1).is_empty());
    }

    #[test]
    fn tools_are_known_by_the_names_that_rules_have() {
        let mut known = KnownTools::default();
        let tool = |name: &str| {
            let (digest, shown) = (String::new(), String::new());
            (ToolDefinition { name: name.into(), digest, shown, annotations: Annotations::default() }, None)
        };
        known.take("n", vec![tool("a.b"), tool("a_b")], true);
        assert_eq!(known.get("a_b").unwrap().tool, "mcp_n_a_b");
        assert_eq!(known.own_name("mcp_n_a_b_2e7336dc"), Some("a.b"));
        known.take("n", vec![tool("a.b")], true);
        assert_eq!(known.own_name("mcp_n_a_b_2e7336dc"), Some("a.b"), "it is named as it was with its twin");
        // Both names that `a.b` could have are taken.
        known.take("n", vec![tool("a.b"), tool("a_b"), tool("a_b_2e7336dc")], true);
        assert_eq!((known.get("a.b"), known.own_name("")), (None, None));
        known.take("n", vec![tool("a.b"), tool("a_b")], true);
        known.take("n", vec![tool("c")], false);
        assert!(known.get("a_b").is_some() && known.get("c").is_some());
        known.take("n", vec![tool("d")], true);
        assert!(known.get("c").is_none() && known.get("d").is_some());
    }
}
