//! TOML into the tree.

use pintle_domain::json::Number;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::{MAX_DEPTH, NodeKind, ParseError, TreeMember, TreeNode};

pub(super) fn parse(text: &str) -> Result<TreeNode, ParseError> {
    let root = DeTable::parse(text).map_err(|why| ParseError {
        at: why.span().map_or(0, |span| span.start),
        message: why.message().replace('\n', "; "),
    })?;
    Ok(TreeNode { kind: table(root.get_ref(), 1)?, span: 0..0 })
}

fn read(value: &Spanned<DeValue<'_>>, depth: usize) -> Result<TreeNode, ParseError> {
    let span = value.span();
    if depth > MAX_DEPTH {
        return Err(ParseError { at: span.start, message: format!("nested deeper than {MAX_DEPTH} levels") });
    }
    let kind = match value.get_ref() {
        DeValue::String(text) => NodeKind::Text(text.clone().into_owned()),
        DeValue::Integer(integer) => number(integer)
            .map(NodeKind::Number)
            .ok_or_else(|| ParseError { at: span.start, message: format!("the number {integer} is out of range") })?,
        DeValue::Float(float) => {
            let finite = float.as_str().parse::<f64>().ok().and_then(Number::from_f64);
            finite.map_or_else(|| NodeKind::Foreign(float.as_str().to_owned()), NodeKind::Number)
        }
        DeValue::Boolean(value) => NodeKind::Bool(*value),
        DeValue::Datetime(date) => NodeKind::Foreign(date.to_string()),
        DeValue::Array(items) => {
            NodeKind::List(items.iter().map(|item| read(item, depth + 1)).collect::<Result<_, _>>()?)
        }
        DeValue::Table(members) => table(members, depth)?,
    };
    Ok(TreeNode { kind, span })
}

fn table(members: &DeTable<'_>, depth: usize) -> Result<NodeKind, ParseError> {
    let mut members: Vec<TreeMember> = members
        .iter()
        .map(|(key, value)| {
            let node = read(value, depth + 1)?;
            Ok(TreeMember { key: key.get_ref().clone().into_owned(), span: key.span(), node })
        })
        .collect::<Result<_, _>>()?;
    // The parser sorts by name; diagnostics follow the file.
    members.sort_by_key(|member| member.span.start);
    Ok(NodeKind::Table(members))
}

fn number(integer: &DeInteger<'_>) -> Option<Number> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(Number::from)
}
