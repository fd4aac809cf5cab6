//! The parser's tree, walked without recursion, so that no depth of it can use up a stack.

use cel::common::ast::{EntryExpr, Expr, IdedExpr};

/// How deep an expression may be nested, chains such as `a + b + c` included; `&&` and `||` are one level, however many
/// parts they have. Honest conditions stay below twenty, and what recurses over this depth fits a small stack.
const MAX_LEVELS: usize = 100;

/// How many steps an expression may have, those of written-out macros included; honest conditions have below a hundred.
const MAX_STEPS: usize = 2_000;

/// This tree, if it is within bounds.
///
/// # Errors
/// Which bound it is beyond.
pub(super) fn bounded(mut tree: IdedExpr) -> Result<IdedExpr, String> {
    let (mut steps, mut levels) = (0, 0);
    let mut open = vec![(&mut tree, 1)];
    while let Some((it, level)) = open.pop() {
        steps += 1;
        levels = levels.max(level);
        open.extend(parts(it).into_iter().map(|part| (part, level + 1)));
    }
    let beyond = if levels > MAX_LEVELS {
        format!("nested deeper than {MAX_LEVELS} levels; split it into several hooks")
    } else if steps > MAX_STEPS {
        format!("more than {MAX_STEPS} steps; split it into several hooks")
    } else {
        return Ok(tree);
    };
    take_apart(tree);
    Err(beyond)
}

/// Drops a tree part by part.
fn take_apart(tree: IdedExpr) {
    let mut open = vec![tree];
    while let Some(mut it) = open.pop() {
        open.extend(parts(&mut it).into_iter().map(std::mem::take));
    }
}

/// The parts that an expression is made of.
fn parts(it: &mut IdedExpr) -> Vec<&mut IdedExpr> {
    match &mut it.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Select(it) => vec![&mut it.operand],
        Expr::Call(it) => it.target.as_deref_mut().into_iter().chain(&mut it.args).collect(),
        Expr::List(it) => it.elements.iter_mut().collect(),
        Expr::Map(it) => it.entries.iter_mut().flat_map(|entry| entry_parts(&mut entry.expr)).collect(),
        Expr::Struct(it) => it.entries.iter_mut().flat_map(|entry| entry_parts(&mut entry.expr)).collect(),
        Expr::Comprehension(it) => {
            vec![&mut it.iter_range, &mut it.accu_init, &mut it.loop_cond, &mut it.loop_step, &mut it.result]
        }
    }
}

fn entry_parts(entry: &mut EntryExpr) -> Vec<&mut IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&mut field.value],
        EntryExpr::MapEntry(entry) => vec![&mut entry.key, &mut entry.value],
    }
}
