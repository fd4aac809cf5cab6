//! Operators and functions: which there are, of which types.

use cel::common::ast::operators;

use super::kind::{Kind, StaticKind};
use super::names;
use super::node::{Node, Order, Texts, Typed, Unary};
use super::number::Sum;
use super::pattern::{Pattern, Patterns};

/// CEL's `a.?b` and its like.
pub(super) const NO_OPTIONALS: &str = "optional values are not available";

/// What a call is, of these values; the first is the one that it is called on, if it is.
pub(super) fn call(name: &str, on_value: bool, nodes: Vec<Node>, known: Vec<StaticKind>) -> Result<Typed, String> {
    match (name, on_value) {
        (operators::LOGICAL_AND, false) => {
            Ok((Node::And(bools(operators::LOGICAL_AND, nodes, known)?), StaticKind::BOOL))
        }
        (operators::LOGICAL_OR, false) => Ok((Node::Or(bools(operators::LOGICAL_OR, nodes, known)?), StaticKind::BOOL)),
        (operators::CONDITIONAL, false) => conditional(nodes, known),
        (operators::LOGICAL_NOT | operators::NEGATE, false) => prefix(name, nodes, known),
        (operators::OPT_INDEX | operators::OPT_SELECT, false) => Err(NO_OPTIONALS.to_owned()),
        (_, false) if name.starts_with(['_', '@']) => binary(name, nodes, known),
        (_, _) => function(name, nodes, known),
    }
}

/// Whether there is such a function, called in this way; operators pass.
pub(super) fn known(name: &str, on_value: bool, values: usize) -> Result<(), String> {
    let operator = name.contains(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let there_is = match (name, on_value, values) {
        ("size", _, 1) | ("dyn", false, 1) | ("matches", _, 2) => true,
        (_, false, 1) => Unary::ALL.into_iter().any(|fun| fun.name() == name),
        (_, true, 2) => Texts::ALL.into_iter().any(|what| what.name() == name),
        _ => false,
    };
    if operator || there_is { Ok(()) } else { Err(names::unknown_function(name)) }
}

/// All of them, each of which must be able to be a bool.
fn bools(what: &'static str, nodes: Vec<Node>, known: Vec<StaticKind>) -> Result<Vec<Node>, String> {
    match known.into_iter().find(|known| !known.may_be(|kind| kind == Kind::Bool)) {
        Some(other) => Err(no_overload(what, &[other])),
        None => Ok(nodes),
    }
}

/// Exactly so many.
fn exactly<const N: usize>(
    what: &str,
    nodes: Vec<Node>,
    known: Vec<StaticKind>,
) -> Result<([Node; N], [StaticKind; N]), String> {
    let got = nodes.len();
    let wrong = || format!("{what} takes {N} values, got {got}");
    Ok((nodes.try_into().map_err(|_| wrong())?, known.try_into().map_err(|_| wrong())?))
}

fn conditional(nodes: Vec<Node>, known: Vec<StaticKind>) -> Result<Typed, String> {
    let (nodes, known) = exactly::<3>(operators::CONDITIONAL, nodes, known)?;
    allow(known[0].may_be(|kind| kind == Kind::Bool), operators::CONDITIONAL, &known)?;
    let [_, then, other] = known;
    Ok((Node::If(Box::new(nodes)), then.or(other)))
}

fn prefix(name: &str, nodes: Vec<Node>, known: Vec<StaticKind>) -> Result<Typed, String> {
    let ([of], known) = exactly::<1>(name, nodes, known)?;
    if name == operators::LOGICAL_NOT {
        allow(known[0].may_be(|kind| kind == Kind::Bool), name, &known)?;
        return Ok((Node::Not(Box::new(of)), StaticKind::BOOL));
    }
    allow(known[0].may_be(|kind| matches!(kind, Kind::Int | Kind::Double)), name, &known)?;
    let [known] = known;
    Ok((Node::Minus(Box::new(of)), known))
}

fn binary(name: &str, nodes: Vec<Node>, known: Vec<StaticKind>) -> Result<Typed, String> {
    let (nodes, known) = exactly::<2>(name, nodes, known)?;
    let [a, b] = &known;
    let both = Box::new(nodes);
    if let Some(order) = Order::ALL.into_iter().find(|order| order.name() == name) {
        let fits = a.may_equal(b) && a.may_be(Kind::is_ordered) && b.may_be(Kind::is_ordered);
        allow(fits, name, &known)?;
        return Ok((Node::Order(order, both), StaticKind::BOOL));
    }
    if let Some(sum) = Sum::ALL.into_iter().find(|sum| sum.name() == name) {
        let found = reckoned(sum, a, b).ok_or_else(|| no_overload(name, &known))?;
        return Ok((Node::Sum(sum, both), found));
    }
    match name {
        operators::EQUALS => allow(a.may_equal(b), name, &known).map(|()| (Node::Same(both), StaticKind::BOOL)),
        operators::NOT_EQUALS => allow(a.may_equal(b), name, &known).map(|()| (Node::Differ(both), StaticKind::BOOL)),
        operators::IN => allow(holds(b, a), name, &known).map(|()| (Node::In(both), StaticKind::BOOL)),
        operators::INDEX => {
            let found = indexed(a, b).ok_or_else(|| no_overload(name, &known))?;
            Ok((Node::Index(both), found))
        }
        _ => Err(names::unknown_function(name)),
    }
}

/// A function that [`known`] has let pass.
fn function(name: &str, nodes: Vec<Node>, known: Vec<StaticKind>) -> Result<Typed, String> {
    if let Some(fun) = Unary::ALL.into_iter().find(|fun| fun.name() == name) {
        let ([of], known) = exactly::<1>(name, nodes, known)?;
        allow(known[0].may_be(|kind| fun.takes(kind)), name, &known)?;
        return Ok((Node::Of(fun, Box::new(of)), StaticKind::Plain(fun.gives())));
    }
    if let Some(what) = Texts::ALL.into_iter().find(|what| what.name() == name) {
        let (both, known) = exactly::<2>(name, nodes, known)?;
        allow(known.iter().all(may_be_text), name, &known)?;
        return Ok((Node::Texts(what, Box::new(both)), StaticKind::BOOL));
    }
    match name {
        "dyn" => {
            let ([of], _) = exactly::<1>(name, nodes, known)?;
            Ok((of, StaticKind::Dyn))
        }
        "matches" => matches(nodes, known),
        _ => Err(names::unknown_function(name)),
    }
}

fn matches(nodes: Vec<Node>, known: Vec<StaticKind>) -> Result<Typed, String> {
    let ([of, with], known) = exactly::<2>("matches", nodes, known)?;
    allow(known.iter().all(may_be_text), "matches", &known)?;
    let node = if let Node::Text(pattern) = with {
        let compiled = Pattern::compile(&pattern).map_err(|why| format!("matches(): pattern {pattern:?}: {why}"))?;
        Node::Matches(Box::new(of), Box::new(compiled))
    } else {
        Node::MatchesMade(Box::new([of, with]), Patterns::default())
    };
    Ok((node, StaticKind::BOOL))
}

fn may_be_text(known: &StaticKind) -> bool {
    known.may_be(|kind| kind == Kind::String)
}

/// What is known of a sum, if there is one of values such as these.
fn reckoned(sum: Sum, a: &StaticKind, b: &StaticKind) -> Option<StaticKind> {
    let fits = |kind: Kind| match sum {
        Sum::Add => kind.is_number() || matches!(kind, Kind::String | Kind::Bytes | Kind::List),
        Sum::Sub | Sum::Mul | Sum::Div => kind.is_number(),
        Sum::Rem => matches!(kind, Kind::Int | Kind::Uint),
    };
    match (a, b) {
        (StaticKind::Dyn, known) | (known, StaticKind::Dyn) if known.may_be(fits) => Some(match known {
            StaticKind::List(_) => StaticKind::List(Box::new(StaticKind::Dyn)),
            StaticKind::Dyn | StaticKind::Plain(_) | StaticKind::Map(..) => known.clone(),
        }),
        (StaticKind::Plain(a), StaticKind::Plain(b)) => (a == b && fits(*a)).then_some(StaticKind::Plain(*a)),
        (StaticKind::List(a), StaticKind::List(b)) if sum == Sum::Add => {
            Some(StaticKind::List(Box::new(a.clone().or(*b.clone()))))
        }
        (StaticKind::Dyn | StaticKind::Plain(_) | StaticKind::List(_) | StaticKind::Map(..), _) => None,
    }
}

/// Whether a value of `of` may hold one of `item`.
fn holds(of: &StaticKind, item: &StaticKind) -> bool {
    match of {
        StaticKind::Dyn => true,
        StaticKind::List(held) => held.may_equal(item),
        StaticKind::Map(held, _) => held.may_equal(item),
        StaticKind::Plain(_) => false,
    }
}

/// What is known of `of[at]`, if there can be such a thing.
fn indexed(of: &StaticKind, at: &StaticKind) -> Option<StaticKind> {
    match of {
        StaticKind::Dyn => at.may_be(Kind::is_key).then_some(StaticKind::Dyn),
        StaticKind::List(held) => at.may_be(Kind::is_number).then(|| *held.clone()),
        StaticKind::Map(key, held) => key.may_equal(at).then(|| *held.clone()),
        StaticKind::Plain(_) => None,
    }
}

/// An error unless it `fits`.
fn allow(fits: bool, what: &str, got: &[StaticKind]) -> Result<(), String> {
    if fits { Ok(()) } else { Err(no_overload(what, got)) }
}

/// That there is no such operation on values of these types.
pub(super) fn no_overload(what: &str, got: &[StaticKind]) -> String {
    let got: Vec<String> = got.iter().map(ToString::to_string).collect();
    format!("found no matching overload for '{what}' applied to '({})'", got.join(", "))
}
