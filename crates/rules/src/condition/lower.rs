//! From the parser's tree to what is evaluated, with what can be known of the types on the way.
//!
//! Only these functions call each other all the way down; what is made of the parts is decided beside them, in
//! [`call`](super::call), so that a level needs little of the stack.

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, MapExpr};

use super::call::{NO_OPTIONALS, call, known, no_overload};
use super::kind::{Kind, StaticKind};
use super::macros::{self, Macro};
use super::names;
use super::node::{MacroBody, Node, Typed, Var, Walk};
use super::value::SHELL;

/// Reads the parser's tree.
#[derive(Debug, Default)]
pub(super) struct Lowering {
    /// The variables of the macros around, outermost first.
    locals: Vec<(String, StaticKind)>,
    /// Whether `tool_name` is named.
    pub(super) names_tool: bool,
}

impl Lowering {
    /// What `it` is, or why it is not a condition.
    pub(super) fn lower(&mut self, it: IdedExpr) -> Result<Typed, String> {
        match it.expr {
            Expr::Literal(it) => Ok(literal(it)),
            Expr::Ident(name) => self.name(&name),
            Expr::Select(it) => self.select(*it.operand, it.field, it.test),
            Expr::Call(it) => self.call(it),
            Expr::List(it) if !it.optional_indices.is_empty() => Err(NO_OPTIONALS.to_owned()),
            Expr::List(it) => {
                let (items, known) = self.all(it.elements)?;
                Ok((Node::List(items), StaticKind::List(Box::new(StaticKind::any(known)))))
            }
            Expr::Map(it) => self.map(it),
            Expr::Comprehension(it) => self.walk(it),
            Expr::Struct(it) => Err(format!("`{}{{…}}`: only maps can be made, as in {{\"a\": 1}}", it.type_name)),
            Expr::Unspecified => Err("something is missing".to_owned()),
        }
    }

    /// Many at once: the steps, and what is known of each.
    fn all(&mut self, all: Vec<IdedExpr>) -> Result<(Vec<Node>, Vec<StaticKind>), String> {
        let (mut nodes, mut known) = (Vec::with_capacity(all.len()), Vec::with_capacity(all.len()));
        for it in all {
            let (node, of_it) = self.lower(it)?;
            nodes.push(node);
            known.push(of_it);
        }
        Ok((nodes, known))
    }

    fn call(&mut self, it: CallExpr) -> Result<Typed, String> {
        let on_value = it.target.is_some();
        known(&it.func_name, on_value, it.args.len() + usize::from(on_value))?;
        let all = it.target.into_iter().map(|target| *target).chain(it.args).collect();
        let (nodes, of_them) = self.all(all)?;
        call(&it.func_name, on_value, nodes, of_them)
    }

    /// One that may be a bool.
    fn bool(&mut self, what: &'static str, it: IdedExpr) -> Result<Node, String> {
        let (node, known) = self.lower(it)?;
        if known.may_be(|kind| kind == Kind::Bool) { Ok(node) } else { Err(no_overload(what, &[known])) }
    }

    fn name(&mut self, name: &str) -> Result<Typed, String> {
        let (name, absolute) = name.strip_prefix('.').map_or((name, false), |name| (name, true));
        let local = self.locals.iter().rposition(|(local, _)| !absolute && local == name);
        if let Some(at) = local {
            return Ok((Node::Local(at), self.locals[at].1.clone()));
        }
        if let Some((_, var)) = Var::ALL.into_iter().find(|(known, _)| *known == name) {
            self.names_tool |= var == Var::ToolName;
            return Ok((Node::Var(var), known_of(var)));
        }
        if let Some(kind) = Kind::NAMED.into_iter().find(|kind| kind.name() == name) {
            return Ok((Node::Kind(kind), StaticKind::TYPE));
        }
        let locals = self.locals.iter().map(|(local, _)| local.as_str());
        Err(names::unknown("variable", name, Var::ALL.into_iter().map(|(known, _)| known).chain(locals)))
    }

    fn select(&mut self, of: IdedExpr, field: String, test: bool) -> Result<Typed, String> {
        let (of, known) = self.lower(of)?;
        if matches!(of, Node::Var(Var::Shell)) && !SHELL.contains(&field.as_str()) {
            return Err(names::unknown("member of `shell`", &field, SHELL.into_iter()));
        }
        let found = match known {
            StaticKind::Dyn => StaticKind::Dyn,
            StaticKind::Map(key, found) if key.may_equal(&StaticKind::STRING) => *found,
            StaticKind::Plain(_) | StaticKind::List(_) | StaticKind::Map(..) => {
                return Err(format!("type '{known}' has no members, so there is no `{field}` in it"));
            }
        };
        let of = Box::new(of);
        Ok(if test { (Node::Has(of, field), StaticKind::BOOL) } else { (Node::Select(of, field), found) })
    }

    fn map(&mut self, it: MapExpr) -> Result<Typed, String> {
        let (mut entries, mut keys, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for entry in it.entries {
            let EntryExpr::MapEntry(entry) = entry.expr else {
                return Err("a map has keys and values, as in {\"a\": 1}".to_owned());
            };
            if entry.optional {
                return Err(NO_OPTIONALS.to_owned());
            }
            let (key, of_key) = self.lower(entry.key)?;
            let (value, of_value) = self.lower(entry.value)?;
            if !of_key.may_be(Kind::is_key) {
                return Err(format!("a map cannot have a key of type '{of_key}'"));
            }
            entries.push([key, value]);
            keys.push(of_key);
            values.push(of_value);
        }
        Ok((Node::Map(entries), StaticKind::Map(Box::new(StaticKind::any(keys)), Box::new(StaticKind::any(values)))))
    }

    fn walk(&mut self, mut it: Box<ComprehensionExpr>) -> Result<Typed, String> {
        let Some(found) = macros::read(&mut it) else { return Err("this macro is not available".to_owned()) };
        let (range, known) = self.lower(it.iter_range)?;
        let item = match known {
            StaticKind::Dyn => StaticKind::Dyn,
            StaticKind::List(of) => *of,
            StaticKind::Map(key, _) => *key,
            StaticKind::Plain(_) => return Err(format!("a value of type '{known}' cannot be walked by a macro")),
        };
        self.locals.push((it.iter_var, item));
        let with = self.with(found);
        self.locals.pop();
        let (with, known) = with?;
        Ok((Node::Walk(Box::new(Walk { range, with })), known))
    }

    fn with(&mut self, found: Macro) -> Result<(MacroBody, StaticKind), String> {
        Ok(match found {
            Macro::All(test) => (MacroBody::All(self.bool("all()", test)?), StaticKind::BOOL),
            Macro::Exists(test) => (MacroBody::Exists(self.bool("exists()", test)?), StaticKind::BOOL),
            Macro::One(test) => (MacroBody::One(self.bool("exists_one()", test)?), StaticKind::BOOL),
            Macro::Collect(test, make) => {
                let test = test.map(|test| self.bool("filter()", test)).transpose()?;
                let (make, known) = self.lower(make)?;
                (MacroBody::Collect(test, make), StaticKind::List(Box::new(known)))
            }
        })
    }
}

/// What is known of a variable.
fn known_of(var: Var) -> StaticKind {
    match var {
        Var::ToolInput | Var::Shell => StaticKind::object(),
        Var::Depth => StaticKind::INT,
        Var::FirstPrompt => StaticKind::BOOL,
        Var::ToolName | Var::Event | Var::AgentId | Var::SessionId | Var::RawInput | Var::RawToolName => {
            StaticKind::STRING
        }
    }
}

fn literal(it: LiteralValue) -> Typed {
    match it {
        LiteralValue::Null => (Node::Null, StaticKind::NULL),
        LiteralValue::Boolean(it) => (Node::Bool(*it.inner()), StaticKind::BOOL),
        LiteralValue::Int(it) => (Node::Int(*it.inner()), StaticKind::INT),
        LiteralValue::UInt(it) => (Node::Uint(*it.inner()), StaticKind::UINT),
        LiteralValue::Double(it) => (Node::Double(*it.inner()), StaticKind::DOUBLE),
        LiteralValue::String(it) => (Node::Text(it.inner().to_owned()), StaticKind::STRING),
        LiteralValue::Bytes(it) => (Node::Bytes(it.inner().to_vec()), StaticKind::BYTES),
    }
}
