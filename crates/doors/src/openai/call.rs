//! One call of a model, put together from what the wire says of it.

use pintle_domain::json::{Object, Value};

use super::form::CallForm;
use super::free_text;
use crate::answer::{WantedCall, arguments};

/// A call, as far as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WrittenCall {
    /// Its id.
    pub(super) id: String,
    /// The tool.
    pub(super) name: String,
    /// Its arguments as text.
    pub(super) written: String,
    /// Whether it is of a tool that takes a text and no object.
    pub(super) is_custom: bool,
    /// Whether anything said so, or the other thing.
    is_kind_said: bool,
}

impl WrittenCall {
    /// Takes what comes of it.
    ///
    /// # Errors
    /// It says another thing than before, in words.
    pub(super) fn grow(&mut self, form: CallForm<'_>) -> Result<(), String> {
        if let Some(is_custom) = form.is_custom {
            if self.is_kind_said && self.is_custom != is_custom {
                return Err("a call has parts of a `function` and of a `custom`".into());
            }
            (self.is_custom, self.is_kind_said) = (is_custom, true);
        }
        for (what, old, new) in [("id", &mut self.id, form.id), ("name", &mut self.name, form.name)] {
            match new {
                Some(new) if old.is_empty() => *old = new,
                Some(new) if *old != new => return Err(format!("a call has one {what}, and later another")),
                Some(_) | None => {}
            }
        }
        self.written.push_str(&form.written.unwrap_or_default());
        Ok(())
    }

    /// The call, if it is whole.
    pub(super) fn wanted(&self) -> Option<WantedCall> {
        let arguments = match self.is_custom {
            true => free_text(&self.written),
            false => arguments(&self.written)?,
        };
        (!self.name.is_empty()).then(|| WantedCall { id: self.id.clone(), name: self.name.clone(), arguments })
    }

    /// The call as it goes back to the model.
    pub(super) fn told(&self) -> String {
        let (kind, member) = if self.is_custom { ("custom", "input") } else { ("function", "arguments") };
        let text = |text: &str| Value::from(text).to_string();
        let (id, name, written) = (text(&self.id), text(&self.name), text(&self.written));
        format!(r#"{{"id":{id},"type":"{kind}","{kind}":{{"name":{name},"{member}":{written}}}}}"#)
    }

    /// The text that says the arguments `with`; none where such a call cannot say them.
    pub(super) fn rewritten(&self, with: &Object) -> Option<String> {
        match self.is_custom {
            true => with.get("input").and_then(Value::as_str).filter(|_| with.len() == 1).map(str::to_owned),
            false => Some(Value::Object(with.clone()).to_string()),
        }
    }
}

/// Why a call cannot go on as a hook changed it.
pub(super) const NOT_SAID: &str =
    "a hook changed its arguments, and a call of this kind takes one text and nothing else";
