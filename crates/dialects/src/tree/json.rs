//! JSON into the tree. serde_json reads every level as raw text inside its own, so that the place of each value is
//! the distance between two pointers into the same text.

use std::fmt;

use pintle_domain::json::Number;
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{MAX_DEPTH, NodeKind, ParseError, TreeMember, TreeNode};

/// The tree of `text`, which is one JSON value: no comments, no trailing commas.
///
/// # Errors
/// The place where it stops making sense.
pub fn parse(text: &str) -> Result<TreeNode, ParseError> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|why| unparsable(text, 0, &why))?;
    Reader { text }.read(raw, 1)
}

/// One level of an object; a key may stand there twice.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

struct Reader<'a> {
    text: &'a str,
}

impl<'a> Reader<'a> {
    fn read(&self, raw: &'a RawValue, depth: usize) -> Result<TreeNode, ParseError> {
        let at = self.offset(raw);
        if depth > MAX_DEPTH {
            return Err(ParseError { at, message: format!("nested deeper than {MAX_DEPTH} levels") });
        }
        let kind = match raw.get().as_bytes().first() {
            Some(b'{') => self.table(raw, depth)?,
            Some(b'[') => {
                let items: Vec<&RawValue> = self.decode(raw)?;
                NodeKind::List(items.into_iter().map(|item| self.read(item, depth + 1)).collect::<Result<_, _>>()?)
            }
            Some(b'"') => NodeKind::Text(self.decode(raw)?),
            Some(b't' | b'f') => NodeKind::Bool(self.decode(raw)?),
            Some(b'n') => NodeKind::Null,
            Some(_) | None => NodeKind::Number(self.decode::<Number>(raw)?),
        };
        Ok(TreeNode { kind, span: at..at + raw.get().len() })
    }

    fn table(&self, raw: &'a RawValue, depth: usize) -> Result<NodeKind, ParseError> {
        let Members(members) = self.decode(raw)?;
        let members = members.into_iter().map(|(key, value)| {
            let at = self.offset(key);
            let span = at..at + key.get().len();
            Ok(TreeMember { key: self.decode(key)?, span, node: self.read(value, depth + 1)? })
        });
        Ok(NodeKind::Table(members.collect::<Result<_, _>>()?))
    }

    fn decode<T: Deserialize<'a>>(&self, raw: &'a RawValue) -> Result<T, ParseError> {
        serde_json::from_str(raw.get()).map_err(|why| ParseError { at: self.offset(raw), message: plain(&why) })
    }

    fn offset(&self, raw: &RawValue) -> usize {
        (raw.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }
}

/// serde_json counts columns in bytes, from 1; 0 stands for the end of the line before.
fn unparsable(text: &str, from: usize, why: &serde_json::Error) -> ParseError {
    let line: usize = text[from..].split_inclusive('\n').take(why.line().saturating_sub(1)).map(str::len).sum();
    ParseError { at: from + line + why.column().saturating_sub(1), message: plain(why) }
}

/// The message without the place, which counts from the start of a part.
fn plain(why: &serde_json::Error) -> String {
    let message = why.to_string();
    let end = message.rfind(" at line ").unwrap_or(message.len());
    message[..end].to_owned()
}
