//! The evaluation.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use pintle_domain::condition::ConditionInput;
use pintle_domain::shell::ShellFacts;

use super::fault::Fault;
use super::kind::Kind;
use super::meter::{Bounds, Meter};
use super::native;
use super::node::{MacroBody, Node, Order, Var, Walk};
use super::number::whole;
use super::same::{holds, look_up, order, same};
use super::text::Text;
use super::value::{Bytes, List, Map, Value};

/// What an evaluation came to.
type Done<'a> = Result<Value<'a>, Fault<'a>>;

/// One evaluation.
#[derive(Debug)]
pub(super) struct Run<'a> {
    event: Event<'a>,
    meter: Meter,
    /// The items that the macros around stand at, outermost first.
    locals: Vec<Value<'a>>,
}

/// What is seen, with what is read of it on the way.
pub(super) struct Event<'a> {
    /// What is seen.
    pub(super) seen: &'a ConditionInput<'a>,
    /// What stands for `tool_name`.
    pub(super) tool_name: &'a str,
    /// The reading of the shell text, once somebody has asked.
    pub(super) shell: &'a OnceCell<Arc<ShellFacts>>,
}

impl std::fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Event").field("tool_name", &self.tool_name).finish_non_exhaustive()
    }
}

impl<'a> Run<'a> {
    pub(super) fn new(event: Event<'a>, bounds: Bounds) -> Self {
        Self { event, meter: Meter::new(bounds), locals: Vec::new() }
    }

    /// Whether the expression holds.
    pub(super) fn holds(&mut self, node: &'a Node) -> Result<bool, Fault<'a>> {
        let value = self.value(node)?;
        let Value::Bool(holds) = value else {
            return Err(Fault::Told(format!("expression must be bool, got {}", value.kind().name())));
        };
        Ok(holds)
    }

    fn value(&mut self, node: &'a Node) -> Done<'a> {
        self.meter.spend(1)?;
        match node {
            Node::Null => Ok(Value::Null),
            Node::Bool(it) => Ok(Value::Bool(*it)),
            Node::Int(it) => Ok(Value::Int(*it)),
            Node::Uint(it) => Ok(Value::Uint(*it)),
            Node::Double(it) => Ok(Value::Double(*it)),
            Node::Text(it) => Ok(Value::seen(it)),
            Node::Bytes(it) => Ok(Value::Bytes(Bytes::Seen(it))),
            Node::Kind(it) => Ok(Value::Type(*it)),
            Node::Var(var) => Ok(self.variable(*var)),
            Node::Local(at) => self.local(*at),
            Node::Select(of, member) => self.select(of, member),
            Node::Has(of, member) => self.has(of, member).map(Value::Bool),
            Node::Index(both) => self.index(both),
            Node::In(both) => self.two(both, |item, of, meter| holds(of, item, meter)).map(Value::Bool),
            Node::Same(both) => self.two(both, same).map(Value::Bool),
            Node::Differ(both) => self.two(both, same).map(|same| Value::Bool(!same)),
            Node::Order(how, both) => self.ordered(*how, both).map(Value::Bool),
            Node::Sum(sum, both) => self.two(both, |a, b, meter| native::sum(*sum, a, b, meter)),
            Node::Not(of) => self.bool("!_", of).map(|of| Value::Bool(!of)),
            Node::Minus(of) => self.minus(of),
            Node::And(all) => self.decide("_&&_", false, all).map(Value::Bool),
            Node::Or(all) => self.decide("_||_", true, all).map(Value::Bool),
            Node::If(all) => {
                let [test, then, other] = &**all;
                let branch = if self.bool("_?_:_", test)? { then } else { other };
                self.value(branch)
            }
            Node::Of(fun, of) => {
                let of = self.value(of)?;
                native::unary(*fun, of, &mut self.meter)
            }
            Node::Texts(what, both) => self.two(both, |a, b, meter| native::texts(*what, a, b, meter)).map(Value::Bool),
            Node::Matches(of, pattern) => {
                let text = self.value(of)?;
                let text = as_text("matches", &text)?;
                pattern.search(text.as_str(), &mut self.meter).map(Value::Bool)
            }
            Node::MatchesMade(both, patterns) => self.two(both, |text, pattern, meter| {
                let (text, pattern) = (as_text("matches", text)?, as_text("matches", pattern)?);
                patterns.get(pattern.as_str(), meter)?.search(text.as_str(), meter).map(Value::Bool)
            }),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Walk(walk) => self.walk(walk),
        }
    }

    fn variable(&self, var: Var) -> Value<'a> {
        let Event { seen, tool_name, shell } = &self.event;
        match var {
            Var::ToolName => Value::seen(tool_name),
            Var::ToolInput => Value::Map(seen.tool_input.map_or(Map::Empty, Map::Json)),
            Var::Depth => Value::Int(i64::from(seen.depth)),
            Var::Event => Value::seen(seen.event),
            Var::AgentId => Value::seen(seen.agent_id),
            Var::SessionId => Value::seen(seen.session_id),
            Var::RawInput => Value::seen(seen.raw_input),
            Var::RawToolName => Value::seen(seen.raw_tool_name),
            Var::FirstPrompt => Value::Bool(seen.first_prompt),
            Var::Shell => Value::Map(Map::Shell(shell.get_or_init(|| (seen.shell)()))),
        }
    }

    fn local(&self, at: usize) -> Done<'a> {
        self.locals.get(at).cloned().ok_or(Fault::Words("the variable of a macro is not there"))
    }

    /// Applies `f` to two values.
    fn two<T>(
        &mut self,
        both: &'a [Node; 2],
        f: impl FnOnce(&Value<'a>, &Value<'a>, &mut Meter) -> Result<T, Fault<'a>>,
    ) -> Result<T, Fault<'a>> {
        let a = self.value(&both[0])?;
        let b = self.value(&both[1])?;
        f(&a, &b, &mut self.meter)
    }

    fn bool(&mut self, what: &'static str, of: &'a Node) -> Result<bool, Fault<'a>> {
        let value = self.value(of)?;
        let Value::Bool(it) = value else { return Err(Fault::unary(what, value.kind())) };
        Ok(it)
    }

    /// `&&` and `||`: one part that decides is enough, whatever is wrong with the others.
    fn decide(&mut self, what: &'static str, by: bool, all: &'a [Node]) -> Result<bool, Fault<'a>> {
        let mut wrong = None;
        for part in all {
            match self.bool(what, part) {
                Ok(it) if it == by => return Ok(by),
                Ok(_) => {}
                Err(fault) if fault.absorbable() => wrong = wrong.or(Some(fault)),
                Err(fault) => return Err(fault),
            }
        }
        wrong.map_or(Ok(!by), Err)
    }

    fn ordered(&mut self, how: Order, both: &'a [Node; 2]) -> Result<bool, Fault<'a>> {
        let found = self.two(both, |a, b, meter| order(how.name(), a, b, meter))?;
        Ok(match how {
            Order::Less => found == Ordering::Less,
            Order::LessEqual => found != Ordering::Greater,
            Order::Greater => found == Ordering::Greater,
            Order::GreaterEqual => found != Ordering::Less,
        })
    }

    fn minus(&mut self, of: &'a Node) -> Done<'a> {
        let value = self.value(of)?;
        if let Value::Int(it) = value {
            return it.checked_neg().map(Value::Int).ok_or(Fault::Words("integer overflow"));
        }
        let Value::Double(it) = value else { return Err(Fault::unary("-_", value.kind())) };
        Ok(Value::Double(-it))
    }

    fn select(&mut self, of: &'a Node, member: &'a str) -> Done<'a> {
        self.member(of, member)?.ok_or(Fault::NoKey(Text::Seen(member)))
    }

    fn has(&mut self, of: &'a Node, member: &'a str) -> Result<bool, Fault<'a>> {
        Ok(self.member(of, member)?.is_some())
    }

    fn member(&mut self, of: &'a Node, member: &str) -> Result<Option<Value<'a>>, Fault<'a>> {
        let value = self.value(of)?;
        let Value::Map(map) = value else { return Err(Fault::binary("_._", value.kind(), Kind::String)) };
        if let Map::Made(entries) = &map {
            self.meter.items(entries.len())?;
        }
        map.get(member)
    }

    fn index(&mut self, both: &'a [Node; 2]) -> Done<'a> {
        self.two(both, |of, at, meter| {
            if let Value::Map(map) = of {
                return look_up(map, at, meter)?.ok_or_else(|| no_key(at));
            }
            let Value::List(list) = of else { return Err(Fault::binary("_[_]", of.kind(), at.kind())) };
            if !at.kind().is_number() {
                return Err(Fault::binary("_[_]", Kind::List, at.kind()));
            }
            let item = index_of(at).map(|at| list.get(at)).transpose()?;
            item.flatten().ok_or_else(|| Fault::Index(spelled(at)))
        })
    }

    fn list(&mut self, items: &'a [Node]) -> Done<'a> {
        let made: Result<Vec<_>, _> = items.iter().map(|item| self.value(item)).collect();
        Ok(Value::List(List::Made(Rc::from(made?))))
    }

    fn map(&mut self, entries: &'a [[Node; 2]]) -> Done<'a> {
        let mut made: Vec<(Value<'a>, Value<'a>)> = Vec::with_capacity(entries.len());
        for [key, value] in entries {
            let (key, value) = (self.value(key)?, self.value(value)?);
            let usable = matches!(key.kind(), Kind::Bool | Kind::Int | Kind::Uint | Kind::String);
            if !usable {
                return Err(Fault::unary("{_:_}", key.kind()));
            }
            self.meter.items(made.len())?;
            for (before, _) in &made {
                if same(before, &key, &mut self.meter)? {
                    return Err(Fault::Told(format!("the key {} stands twice in a map", spelled(&key))));
                }
            }
            made.push((key, value));
        }
        Ok(Value::Map(Map::Made(Rc::from(made))))
    }

    fn walk(&mut self, walk: &'a Walk) -> Done<'a> {
        let range = self.value(&walk.range)?;
        let list = if let Value::Map(map) = range {
            self.meter.items(map.len())?;
            List::Made(Rc::from(map.keys()))
        } else {
            let Value::List(list) = range else { return Err(Fault::unary("a macro", range.kind())) };
            list
        };
        match &walk.with {
            MacroBody::All(test) => self.every(&list, false, test).map(Value::Bool),
            MacroBody::Exists(test) => self.every(&list, true, test).map(Value::Bool),
            MacroBody::One(test) => {
                let mut hits = 0_usize;
                for index in 0..list.len() {
                    hits += usize::from(self.with(&list, index, |run| run.bool("exists_one", test))?);
                }
                Ok(Value::Bool(hits == 1))
            }
            MacroBody::Collect(test, make) => {
                let mut made = Vec::new();
                for index in 0..list.len() {
                    let one = self.with(&list, index, |run| match test {
                        Some(test) if !run.bool("filter", test)? => Ok(None),
                        Some(_) | None => run.value(make).map(Some),
                    });
                    made.extend(one?);
                }
                Ok(Value::List(List::Made(Rc::from(made))))
            }
        }
    }

    /// `all` and `exists`: one item that decides is enough, whatever is wrong with the others.
    fn every(&mut self, list: &List<'a>, by: bool, test: &'a Node) -> Result<bool, Fault<'a>> {
        let mut wrong = None;
        for index in 0..list.len() {
            match self.with(list, index, |run| run.bool(if by { "_||_" } else { "_&&_" }, test)) {
                Ok(it) if it == by => return Ok(by),
                Ok(_) => {}
                Err(fault) if fault.absorbable() => wrong = wrong.or(Some(fault)),
                Err(fault) => return Err(fault),
            }
        }
        wrong.map_or(Ok(!by), Err)
    }

    /// Evaluates with an item of a list as the innermost variable.
    fn with<T>(
        &mut self,
        list: &List<'a>,
        index: usize,
        f: impl FnOnce(&mut Self) -> Result<T, Fault<'a>>,
    ) -> Result<T, Fault<'a>> {
        self.meter.spend(1)?;
        let item = list.get(index)?.ok_or(Fault::Words("the list has become shorter"))?;
        self.locals.push(item);
        let done = f(self);
        self.locals.pop();
        done
    }
}

fn as_text<'v, 'a>(what: &'static str, of: &'v Value<'a>) -> Result<&'v Text<'a>, Fault<'a>> {
    let Value::Text(text) = of else { return Err(Fault::unary(what, of.kind())) };
    Ok(text)
}

fn no_key<'a>(at: &Value<'a>) -> Fault<'a> {
    if let Value::Text(key) = at {
        return Fault::NoKey(key.clone());
    }
    Fault::Told(format!("no such key: {}", spelled(at)))
}

/// A number as the index of a list, if it can be one.
fn index_of(at: &Value<'_>) -> Option<usize> {
    if let Value::Uint(at) = at {
        return usize::try_from(*at).ok();
    }
    if let Value::Double(at) = at {
        return whole(*at).and_then(|at| usize::try_from(at).ok());
    }
    let Value::Int(at) = at else { return None };
    usize::try_from(*at).ok()
}

/// A key or an index, as a message shows it.
fn spelled(it: &Value<'_>) -> String {
    match it {
        Value::Bool(it) => it.to_string(),
        Value::Int(it) => it.to_string(),
        Value::Uint(it) => it.to_string(),
        Value::Double(it) => it.to_string(),
        Value::Text(it) => format!("\"{}\"", super::fault::shown(it.as_str())),
        Value::Null | Value::Bytes(_) | Value::List(_) | Value::Map(_) | Value::Type(_) => it.kind().name().to_owned(),
    }
}
