//! A text of keys and values as a tree in which every key and every value knows where it stands.

pub mod json;

use std::ops::Range;

use pintle_domain::json::{Number, Object, Value};

/// The deepest nesting of tables and lists: a bound for recursion, far above what the known keys need.
pub const MAX_DEPTH: usize = 64;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct TreeNode {
    /// What it holds.
    pub kind: NodeKind,
    /// Its bytes in the file.
    pub span: Range<usize>,
}

/// What a value holds.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// Nothing: as if the key were not there.
    Null,
    /// True or false.
    Bool(bool),
    /// A number, digits as they were written.
    Number(Number),
    /// A text.
    Text(String),
    /// A value that has no JSON form, such as a date; as it was written.
    Foreign(String),
    /// A list.
    List(Vec<TreeNode>),
    /// A table, in the order of the file. A key may stand there twice.
    Table(Vec<TreeMember>),
}

/// A key and its value.
#[derive(Clone, Debug)]
pub struct TreeMember {
    /// The key.
    pub key: String,
    /// The key's bytes in the file.
    pub span: Range<usize>,
    /// Its value.
    pub node: TreeNode,
}

/// Why a text is no document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Byte offset.
    pub at: usize,
    /// What is wrong.
    pub message: String,
}

impl TreeNode {
    /// The value of `key`, if this is a table that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.members().iter().find(|member| member.key == key).map(|member| &member.node)
    }

    /// What stands at `path`.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Whether this is a table.
    pub fn is_table(&self) -> bool {
        matches!(self.kind, NodeKind::Table(_))
    }

    /// The members of a table; none for anything else.
    pub fn members(&self) -> &[TreeMember] {
        match &self.kind {
            NodeKind::Table(members) => members,
            NodeKind::Null
            | NodeKind::Bool(_)
            | NodeKind::Number(_)
            | NodeKind::Text(_)
            | NodeKind::Foreign(_)
            | NodeKind::List(_) => &[],
        }
    }

    /// What `step` leads to, the number of an item or a key, and the bytes of the key.
    pub fn step(&self, step: &str) -> Option<(&Self, Option<Range<usize>>)> {
        match &self.kind {
            NodeKind::Table(members) => {
                // The last of two equal keys is the one that is too many.
                let member = members.iter().rfind(|member| member.key == step)?;
                Some((&member.node, Some(member.span.clone())))
            }
            NodeKind::List(items) => {
                let item = items.get(step.parse::<usize>().ok()?)?;
                Some((item, Some(item.span.clone())))
            }
            NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) | NodeKind::Text(_) | NodeKind::Foreign(_) => None,
        }
    }

    /// The value as JSON, without those for which `drop` says so of their path.
    pub fn to_value(&self, path: &mut Vec<String>, drop: &dyn Fn(&[String]) -> bool) -> Value {
        match &self.kind {
            NodeKind::Null => Value::Null,
            NodeKind::Bool(value) => Value::Bool(*value),
            NodeKind::Number(number) => Value::Number(number.clone()),
            NodeKind::Text(text) | NodeKind::Foreign(text) => Value::String(text.clone()),
            NodeKind::List(items) => {
                let steps = items.iter().enumerate().map(|(i, item)| (i.to_string(), item));
                Value::Array(kept(path, steps, drop).map(|(_, value)| value).collect())
            }
            NodeKind::Table(members) => {
                let steps = members.iter().map(|member| (member.key.clone(), &member.node));
                let mut table = Object::new();
                for (key, value) in kept(path, steps, drop) {
                    // The first of two equal keys stays; the second is a diagnostic.
                    table.entry(key).or_insert(value);
                }
                Value::Object(table)
            }
        }
    }

    /// The whole value as JSON.
    pub fn to_json(&self) -> Value {
        self.to_value(&mut Vec::new(), &|_| false)
    }
}

fn kept<'a>(
    path: &'a mut Vec<String>,
    steps: impl Iterator<Item = (String, &'a TreeNode)> + 'a,
    drop: &'a dyn Fn(&[String]) -> bool,
) -> impl Iterator<Item = (String, Value)> + 'a {
    steps.filter_map(move |(step, node)| {
        path.push(step);
        let value = (!drop(path)).then(|| node.to_value(path, drop));
        path.pop().zip(value)
    })
}

/// Where the lines of a text begin.
#[derive(Clone, Debug)]
pub struct LineIndex {
    text: String,
    starts: Vec<usize>,
}

impl LineIndex {
    /// The lines of `text`.
    pub fn new(text: &str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text: text.to_owned(), starts }
    }

    /// The line and the column, in characters, of the byte at `at`; both from 1.
    pub fn place(&self, at: usize) -> (usize, usize) {
        let at = at.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        let start = self.starts[line - 1];
        let column = self.text.as_bytes()[start..at].iter().filter(|byte| !is_continuation(**byte)).count() + 1;
        (line, column)
    }
}

/// Whether `byte` is not the first of a character in UTF-8.
fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}
