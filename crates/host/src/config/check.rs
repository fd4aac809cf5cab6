//! Unknown keys and wrong types, found by walking a document along the JSON Schema.

use pintle_domain::json::{Number, Value};

use pintle_dialects::process::config::{EntryProblem, MemberPart};

use super::diagnostic::dotted;
use super::document::{Document, NodeKind, TreeNode};

/// How much of a wrong value a message repeats, in characters.
const SHOWN_CHARS: usize = 60;

/// The result of checking a document against the schema.
pub(super) struct Checked {
    /// Everything that it does not allow; paths start at the root.
    pub(super) problems: Vec<EntryProblem>,
    /// The keys that hold `null`: as if they were not there.
    pub(super) absent: Vec<Vec<String>>,
}

/// Holds `document` against `schema`.
pub(super) fn check(document: &Document, schema: &Value) -> Checked {
    let found = Checked { problems: document.twice.clone(), absent: Vec::new() };
    let mut walk = Walk { schema, path: Vec::new(), found };
    walk.value(&document.root, schema);
    walk.found
}

struct Walk<'a> {
    schema: &'a Value,
    path: Vec<String>,
    found: Checked,
}

impl<'a> Walk<'a> {
    fn value(&mut self, node: &TreeNode, schema: &'a Value) {
        let mut branches = Vec::new();
        self.branches(schema, &mut branches);
        if branches.iter().any(|branch| branch.get("type").is_none()) {
            return;
        }
        match branches.iter().find(|branch| fits(node, branch)) {
            Some(branch) => self.inside(node, branch),
            None => self.wrong(node, &branches),
        }
    }

    /// The schemas of which a value has to fit one, references followed.
    fn branches(&self, schema: &'a Value, found: &mut Vec<&'a Value>) {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix("#"));
        if let Some(target) = target.and_then(|pointer| self.schema.pointer(pointer)) {
            return self.branches(target, found);
        }
        match schema.get("anyOf").and_then(Value::as_array) {
            Some(branches) => branches.iter().for_each(|branch| self.branches(branch, found)),
            None if types(schema) == ["null"] => {}
            None => found.push(schema),
        }
    }

    fn inside(&mut self, node: &TreeNode, schema: &'a Value) {
        match &node.kind {
            NodeKind::Table(_) => self.table(node, schema),
            NodeKind::List(items) => {
                let Some(each) = schema.get("items") else { return };
                for (i, item) in items.iter().enumerate() {
                    self.path.push(i.to_string());
                    self.value(item, each);
                    self.path.pop();
                }
            }
            NodeKind::Number(number) => self.range(number, schema),
            NodeKind::Null | NodeKind::Bool(_) | NodeKind::Text(_) | NodeKind::Foreign(_) => {}
        }
    }

    fn table(&mut self, node: &TreeNode, schema: &'a Value) {
        let known = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties");
        for member in node.members() {
            self.path.push(member.key.clone());
            match (known.and_then(|known| known.get(&member.key)), others) {
                (Some(schema), _) => self.member(&member.node, schema),
                (None, Some(Value::Bool(false))) => {
                    let known = known.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
                    self.unknown(&member.key, known);
                }
                (None, Some(schema)) => self.member(&member.node, schema),
                (None, None) => {}
            }
            self.path.pop();
        }
    }

    fn member(&mut self, node: &TreeNode, schema: &'a Value) {
        match (&node.kind, schema) {
            // Whatever a table of the user's own holds is left to it.
            (_, Value::Bool(true)) => {}
            (NodeKind::Null, _) => self.found.absent.push(self.path.clone()),
            (
                NodeKind::Bool(_)
                | NodeKind::Number(_)
                | NodeKind::Text(_)
                | NodeKind::Foreign(_)
                | NodeKind::List(_)
                | NodeKind::Table(_),
                _,
            ) => self.value(node, schema),
        }
    }

    fn unknown(&mut self, key: &str, known: Vec<&str>) {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let message = format!("unknown key \"{}\"", dotted(&path));
        let mut problem =
            EntryProblem { at: MemberPart::Key, ..EntryProblem::new(&path, message).meant(key, known.iter().copied()) };
        if problem.nearest.is_none() {
            problem.message = format!("{}; known here: {}", problem.message, known.join(", "));
        }
        self.found.problems.push(problem);
    }

    fn wrong(&mut self, node: &TreeNode, branches: &[&Value]) {
        let mut expected: Vec<&str> = branches.iter().flat_map(|branch| types(branch)).filter_map(named).collect();
        expected.dedup();
        self.say(format!("expected {}, got {}", expected.join(" or "), shown(node)));
    }

    fn range(&mut self, number: &Number, schema: &Value) {
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        let (least, most): (i128, i128) = match format {
            "int32" => (i32::MIN.into(), i32::MAX.into()),
            "int64" => (i64::MIN.into(), i64::MAX.into()),
            "uint16" => (0, u16::MAX.into()),
            "uint32" => (0, u32::MAX.into()),
            _ => return,
        };
        if number.as_str().parse::<i128>().is_ok_and(|number| (least..=most).contains(&number)) {
            return;
        }
        self.say(format!("expected an integer from {least} to {most}, got {number}"));
    }

    fn say(&mut self, message: String) {
        self.found.problems.push(EntryProblem {
            path: self.path.clone(),
            at: MemberPart::Value,
            message,
            nearest: None,
        });
    }
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    }
}

fn fits(node: &TreeNode, schema: &Value) -> bool {
    types(schema).into_iter().any(|kind| match (&node.kind, kind) {
        (NodeKind::Bool(_), "boolean")
        | (NodeKind::Number(_), "number")
        | (NodeKind::Text(_), "string")
        | (NodeKind::List(_), "array")
        | (NodeKind::Table(_), "object") => true,
        (NodeKind::Number(number), "integer") => {
            number.as_str().trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit())
        }
        (_, _) => false,
    })
}

fn named(kind: &str) -> Option<&'static str> {
    match kind {
        "boolean" => Some("true or false"),
        "number" => Some("a number"),
        "integer" => Some("an integer"),
        "string" => Some("a string"),
        "array" => Some("a list"),
        "object" => Some("a table"),
        _ => None,
    }
}

fn shown(node: &TreeNode) -> String {
    match &node.kind {
        NodeKind::Null => "null".into(),
        NodeKind::Bool(value) => value.to_string(),
        NodeKind::Number(number) => number.to_string(),
        NodeKind::Text(text) if text.chars().count() > SHOWN_CHARS => {
            format!("{:?} and more", text.chars().take(SHOWN_CHARS).collect::<String>())
        }
        NodeKind::Text(text) => format!("{text:?}"),
        NodeKind::Foreign(text) => text.clone(),
        NodeKind::List(_) => "a list".into(),
        NodeKind::Table(_) => "a table".into(),
    }
}
