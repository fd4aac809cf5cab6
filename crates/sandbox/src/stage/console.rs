//! What a script writes for its author.

use std::cell::RefCell;
use std::rc::Rc;

use rquickjs::function::Rest;
use rquickjs::{Ctx, Function, Object, Value};

use crate::limits;

use super::text;

/// Lines, up to a bound.
#[derive(Debug, Default)]
pub(super) struct Console {
    text: String,
    cut: bool,
}

impl Console {
    /// Adds text as far as there is room.
    fn add(&mut self, text: &str) {
        if self.cut {
            return;
        }
        let room = limits::CONSOLE_BYTES - self.text.len();
        self.text.push_str(text::head(text, room));
        self.cut = text.len() > room;
    }

    pub(super) fn into_text(self) -> String {
        let end = if self.cut { limits::CONSOLE_CUT } else { "" };
        self.text + end
    }
}

/// The script's `console`.
pub(super) fn object<'js>(ctx: &Ctx<'js>, console: &Rc<RefCell<Console>>) -> rquickjs::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    for (name, prefix) in [("log", "log:"), ("error", "error:")] {
        let console = console.clone();
        let write = Function::new(ctx.clone(), move |values: Rest<Value<'_>>| {
            // No borrow is held while a value is read: that may run the script's own code, which may write as well.
            if console.borrow().cut {
                return;
            }
            let shown: Vec<String> = values.0.iter().map(show).collect();
            let mut console = console.borrow_mut();
            console.add(prefix);
            for text in &shown {
                console.add(" ");
                console.add(text);
            }
            console.add("\n");
        })?;
        object.set(name, write.with_name(name)?)?;
    }
    Ok(object)
}

/// Strings as they are, objects as JSON.
fn show(value: &Value<'_>) -> String {
    if !value.is_object() || value.is_function() || value.is_error() {
        return text::plain(value).unwrap_or_else(|| format!("[{}]", value.type_name()));
    }
    let json = value.ctx().json_stringify(value.clone());
    let shown = json.ok().flatten().and_then(|json| text::read(&json, limits::CONSOLE_BYTES + 1));
    shown.unwrap_or_else(|| {
        // What went wrong while showing something is not the script's failure.
        drop(value.ctx().catch());
        format!("[{}]", value.type_name())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_cut_between_characters_and_says_so() {
        let mut console = Console::default();
        console.add(&"ü".repeat(limits::CONSOLE_BYTES));
        console.add("more");
        let text = console.into_text();
        let kept = text.strip_suffix(limits::CONSOLE_CUT).unwrap();
        assert_eq!(kept, "ü".repeat(limits::CONSOLE_BYTES / 2));
    }

    #[test]
    fn exactly_full_is_not_cut() {
        let mut console = Console::default();
        console.add(&"x".repeat(limits::CONSOLE_BYTES));
        assert_eq!(console.into_text().len(), limits::CONSOLE_BYTES);
    }
}
