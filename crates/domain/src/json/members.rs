//! A canonical object that is written member by member, without a tree of values in between.

use super::{Object, write_object, write_string};

/// Writes the canonical form of an object. The names are literals of the program: plain ASCII, and in order.
#[derive(Debug)]
pub struct Members {
    out: String,
    last: &'static str,
}

impl Members {
    /// An object without members; its text is expected to take about `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut out = String::with_capacity(bytes);
        out.push('{');
        Self { out, last: "" }
    }

    /// A member that is a text, or null.
    pub fn text(&mut self, name: &'static str, text: Option<&str>) {
        self.name(name);
        match text {
            Some(text) => write_string(text, &mut self.out),
            None => self.out.push_str("null"),
        }
    }

    /// A member that is a number.
    pub fn number(&mut self, name: &'static str, number: u64) {
        self.name(name);
        self.out.push_str(&number.to_string());
    }

    /// A member that is an object.
    pub fn object(&mut self, name: &'static str, members: &Object) {
        self.name(name);
        write_object(members, &mut self.out);
    }

    /// The text of the whole object.
    pub fn finish(mut self) -> String {
        self.out.push('}');
        self.out
    }

    fn name(&mut self, name: &'static str) {
        debug_assert!(self.last < name, "`{name}` stands behind `{}`", self.last);
        if !self.last.is_empty() {
            self.out.push(',');
        }
        self.last = name;
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
    }
}

#[cfg(test)]
mod tests {
    use crate::json::json;

    use super::*;
    use crate::json::canonical;

    #[test]
    fn what_is_written_is_what_a_tree_of_values_gives() {
        let value = json!({ "a": "\"\n\u{1f}é", "b": null, "c": u64::MAX, "d": { "z": [1, {}], "y": 1.50 } });
        let mut members = Members::with_capacity(0);
        members.text("a", value["a"].as_str());
        members.text("b", None);
        members.number("c", u64::MAX);
        members.object("d", value["d"].as_object().unwrap());
        assert_eq!(members.finish(), canonical(&value));
        assert_eq!(Members::with_capacity(0).finish(), "{}");
    }
}
