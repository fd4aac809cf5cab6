//! The macros, as the parser has written them out, seen again as what they are.

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, operators};

/// The work that a macro does with each item.
#[derive(Debug)]
pub(super) enum Macro {
    /// `all`
    All(IdedExpr),
    /// `exists`
    Exists(IdedExpr),
    /// `exists_one`
    One(IdedExpr),
    /// `map` and `filter`: which items, and what is made of each.
    Collect(Option<IdedExpr>, IdedExpr),
}

/// Reads the loop of a macro; nothing if it is no loop that the parser writes.
pub(super) fn read(of: &mut ComprehensionExpr) -> Option<Macro> {
    let result = std::mem::take(&mut of.accu_var);
    let Expr::Call(CallExpr { func_name, mut args, target: None }) = std::mem::take(&mut of.loop_step.expr) else {
        return None;
    };
    let last = args.pop()?;
    match (func_name.as_str(), args.len()) {
        (operators::LOGICAL_AND, 1) => is(&args[0], &result).then_some(Macro::All(last)),
        (operators::LOGICAL_OR, 1) => is(&args[0], &result).then_some(Macro::Exists(last)),
        (operators::ADD, 1) => Some(Macro::Collect(None, one_more(&args[0], last, &result)?)),
        (operators::CONDITIONAL, 2) if is(&last, &result) => {
            let Expr::Call(mut then) = args.pop()?.expr else { return None };
            let test = args.pop()?;
            let more = then.args.pop()?;
            let before = then.args.pop()?;
            if then.func_name != operators::ADD {
                return None;
            }
            if matches!(more.expr, Expr::Literal(LiteralValue::Int(_))) {
                return is(&before, &result).then_some(Macro::One(test));
            }
            Some(Macro::Collect(Some(test), one_more(&before, more, &result)?))
        }
        _ => None,
    }
}

/// The item of `before + [item]`.
fn one_more(before: &IdedExpr, more: IdedExpr, result: &str) -> Option<IdedExpr> {
    let Expr::List(mut list) = more.expr else { return None };
    let item = list.elements.pop()?;
    (is(before, result) && list.elements.is_empty()).then_some(item)
}

/// Whether it is this name.
fn is(it: &IdedExpr, name: &str) -> bool {
    matches!(&it.expr, Expr::Ident(it) if it == name)
}
