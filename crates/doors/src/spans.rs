//! JSON text with the place of every value, so that one value is changed and every other byte stays.

use std::ops::Range;

use pintle_domain::json::{self, MAX_DEPTH, NotAlike, Value};

/// A value and its bytes in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its bytes.
    pub span: Range<usize>,
    /// What it is.
    pub kind: Kind,
}

/// What a value is, as far as places are concerned.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Members in their order.
    Object(Vec<(String, Node)>),
    /// Items in their order.
    Array(Vec<Node>),
    /// A text, a number, a word.
    Plain,
}

/// Text that is no JSON, or none of which everybody reads the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    /// It is no JSON.
    #[error("it is not valid JSON: {0}")]
    NoJson(String),
    /// A member stands twice in one object: the other side may read the other one.
    #[error("the member `{0}` stands twice in one object")]
    Twice(String),
}

/// A JSON document and the places of its values.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonDocument {
    /// The text.
    pub text: String,
    /// The outermost value.
    pub root: Node,
}

impl JsonDocument {
    /// Reads `text`.
    ///
    /// # Errors
    /// It is no JSON, or has a member twice.
    pub fn read(text: String) -> Result<Self, NotRead> {
        // The strict reader says what JSON is; the places are then found without looking closely.
        json::parse_alike(&text).map_err(|error| match error {
            NotAlike::NotJson(why) => NotRead::NoJson(why),
            NotAlike::Twice(name) => NotRead::Twice(name),
        })?;
        let mut scan = Scan { bytes: text.as_bytes(), text: &text, at: 0 };
        let root = scan.value(0)?;
        Ok(Self { text, root })
    }

    /// The bytes of `node`.
    pub fn raw(&self, node: &Node) -> &str {
        &self.text[node.span.clone()]
    }

    /// The value of `node`.
    pub fn value(&self, node: &Node) -> Value {
        json::parse(self.raw(node)).unwrap_or(Value::Null)
    }

    /// The text that `node` is, if it is one.
    pub fn string(&self, node: &Node) -> Option<String> {
        match self.raw(node).starts_with('"') {
            true => self.value(node).as_str().map(str::to_owned),
            false => None,
        }
    }

    /// The text of the member `name` of `node`, if it has such a one.
    pub fn text_at(&self, node: &Node, name: &str) -> Option<String> {
        node.get(name).and_then(|member| self.string(member))
    }

    /// The number at the member `name` of `node`, if it has such a one.
    pub fn number_at(&self, node: &Node, name: &str) -> Option<u64> {
        node.get(name).and_then(|member| self.raw(member).parse().ok())
    }

    /// Whether `node` has a member `name` that says something.
    pub fn says(&self, node: &Node, name: &str) -> bool {
        node.get(name).is_some_and(|member| !matches!(self.raw(member), "null" | "[]" | "{}" | "false" | "\"\""))
    }
}

impl Node {
    /// The member `name`.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match &self.kind {
            Kind::Object(members) => members.iter().find(|(known, _)| known == name).map(|(_, node)| node),
            Kind::Array(_) | Kind::Plain => None,
        }
    }

    /// The value at the end of `path`.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, name| node.get(name))
    }

    /// The items of an array; none of anything else.
    pub fn items(&self) -> &[Self] {
        match &self.kind {
            Kind::Array(items) => items,
            Kind::Object(_) | Kind::Plain => &[],
        }
    }

    /// Whether it is an array.
    pub const fn is_array(&self) -> bool {
        matches!(self.kind, Kind::Array(_))
    }
}

struct Scan<'t> {
    bytes: &'t [u8],
    text: &'t str,
    at: usize,
}

impl Scan<'_> {
    fn byte(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(b' ')
    }

    fn blank(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, NotRead> {
        self.blank();
        let start = self.at;
        let kind = match self.byte() {
            _ if depth > MAX_DEPTH || self.at >= self.bytes.len() => {
                return Err(NotRead::NoJson("its end is missing".into()));
            }
            b'{' => Kind::Object(self.members(depth)?),
            b'[' => Kind::Array(self.elements(depth)?),
            b'"' => {
                self.string();
                Kind::Plain
            }
            _ => {
                while !matches!(self.bytes.get(self.at), None | Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'))
                {
                    self.at += 1;
                }
                Kind::Plain
            }
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn string(&mut self) {
        self.at += 1;
        while self.at < self.bytes.len() && self.byte() != b'"' {
            self.at += if self.byte() == b'\\' { 2 } else { 1 };
        }
        self.at = (self.at + 1).min(self.bytes.len());
    }

    fn elements(&mut self, depth: usize) -> Result<Vec<Node>, NotRead> {
        let mut items = Vec::new();
        loop {
            self.at += 1;
            self.blank();
            if self.byte() == b']' {
                break;
            }
            items.push(self.value(depth + 1)?);
            self.blank();
            if self.byte() != b',' {
                break;
            }
        }
        self.at += 1;
        Ok(items)
    }

    fn members(&mut self, depth: usize) -> Result<Vec<(String, Node)>, NotRead> {
        let mut members = Vec::new();
        loop {
            self.at += 1;
            self.blank();
            if self.byte() == b'}' {
                break;
            }
            let start = self.at;
            self.string();
            let name = json::parse(&self.text[start..self.at]).map_err(NotRead::NoJson)?;
            let name = name.as_str().unwrap_or_default().to_owned();
            self.blank();
            self.at += 1;
            members.push((name, self.value(depth + 1)?));
            self.blank();
            if self.byte() != b',' {
                break;
            }
        }
        self.at += 1;
        Ok(members)
    }
}

/// Changes of a text, each in the place of some bytes of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    /// Whether nothing changes.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts `with` in the place of `span`; what is empty is inserted there.
    pub fn replace(&mut self, span: Range<usize>, with: impl Into<String>) {
        self.0.push((span, with.into()));
    }

    /// Takes the changes of `more` over.
    pub fn join(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Puts the text `with`, as JSON, in the place of `node`.
    pub fn text(&mut self, node: &Node, with: &str) {
        self.replace(node.span.clone(), Value::from(with).to_string());
    }

    /// Takes the items at `places` out of `array`, with their commas.
    pub fn remove_items(&mut self, array: &Node, places: &[usize]) {
        let items = array.items();
        let mut stays = false;
        for (place, item) in items.iter().enumerate() {
            if !places.contains(&place) {
                stays = true;
            } else if stays {
                self.replace(items[place - 1].span.end..item.span.end, "");
            } else {
                let end = items.get(place + 1).map_or(item.span.end, |next| next.span.start);
                self.replace(item.span.start..end, "");
            }
        }
    }

    /// Puts `item` behind the last one of `array`.
    pub fn push_item(&mut self, array: &Node, item: &str) {
        let end = array.span.end - 1;
        match array.items().last() {
            Some(last) => self.replace(last.span.end..last.span.end, format!(",{item}")),
            None => self.replace(end..end, item),
        }
    }

    /// Puts the member `name` before all others of `object`.
    pub fn put_member(&mut self, object: &Node, name: &str, value: &str) {
        let Kind::Object(members) = &object.kind else { return };
        let comma = if members.is_empty() { "" } else { "," };
        let at = object.span.start + 1;
        self.replace(at..at, format!("{}:{value}{comma}", Value::from(name)));
    }

    /// `text` with all changes. Where two begin at one place, the first said stands first.
    pub fn apply(mut self, text: &str) -> String {
        self.0.sort_by_key(|(span, _)| (span.start, span.end));
        let more: usize = self.0.iter().map(|(_, with)| with.len()).sum();
        let (mut made, mut at) = (String::with_capacity(text.len() + more), 0);
        for (span, with) in self.0 {
            // One within another that is replaced whole says nothing any more.
            if span.start < at {
                continue;
            }
            made.push_str(&text[at..span.start]);
            made.push_str(&with);
            at = span.end;
        }
        made.push_str(&text[at..]);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> JsonDocument {
        JsonDocument::read(text.to_owned()).unwrap()
    }

    #[test]
    fn every_value_has_its_place() {
        let document = read(" { \"a\" : [1, \"x\\\"y\" ,{}] , \"b\":{\"c\":null} } ");
        let a = document.root.get("a").unwrap();
        let raw: Vec<&str> = a.items().iter().map(|item| document.raw(item)).collect();
        assert_eq!(raw, ["1", "\"x\\\"y\"", "{}"]);
        assert_eq!(document.raw(document.root.at(&["b", "c"]).unwrap()), "null");
        assert_eq!(document.string(&a.items()[1]).unwrap(), "x\"y");
    }

    #[test]
    fn what_two_readers_may_read_differently_is_refused() {
        assert_eq!(JsonDocument::read("{\"a\":1,\"\\u0061\":2}".into()), Err(NotRead::Twice("a".into())));
        assert!(matches!(JsonDocument::read("{\"a\":".into()), Err(NotRead::NoJson(_))));
        assert!(matches!(JsonDocument::read(String::new()), Err(NotRead::NoJson(_))));
    }

    #[test]
    fn items_leave_with_their_commas() {
        let text = "[ 0 , 1,2 ,3 ]";
        for places in [vec![], vec![0], vec![1, 2], vec![3], vec![0, 1], vec![0, 3], vec![0, 1, 2, 3], vec![1, 3]] {
            let document = read(text);
            let mut edits = Edits::default();
            edits.remove_items(&document.root, &places);
            let left: Vec<u64> = (0..4).filter(|n| !places.contains(&(*n as usize))).collect();
            let made = json::parse(&edits.apply(text)).unwrap();
            assert_eq!(made, left.into_iter().collect::<Value>(), "{places:?}");
        }
        for (text, expected) in [("[]", "[9]"), ("[1]", "[1,9]"), ("[ ]", "[ 9]")] {
            let mut edits = Edits::default();
            edits.push_item(&read(text).root, "9");
            assert_eq!(edits.apply(text), expected);
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,3}", inner, 0..4).prop_map(|all| all.into_iter().collect::<Value>())
            ]
        })
    }

    proptest! {
        #[test]
        fn places_are_those_of_the_values(value in value()) {
            let document = JsonDocument::read(value.to_string()).unwrap();
            fn check(document: &JsonDocument, node: &Node, value: &Value) {
                assert_eq!(document.value(node), *value);
                match (&node.kind, value) {
                    (Kind::Array(items), Value::Array(values)) => {
                        assert_eq!(items.len(), values.len());
                        items.iter().zip(values).for_each(|(node, value)| check(document, node, value));
                    }
                    (Kind::Object(members), Value::Object(values)) => {
                        assert_eq!(members.len(), values.len());
                        members.iter().for_each(|(name, node)| check(document, node, &values[name.as_str()]));
                    }
                    (Kind::Plain, value) => assert!(!value.is_array() && !value.is_object()),
                    (Kind::Array(_) | Kind::Object(_), _) => panic!("{value}"),
                }
            }
            check(&document, &document.root, &value);
        }
    }
}
