//! What a server said of its tools when they were first used, and what it says now.

use std::collections::BTreeMap;

use pintle_domain::json::{Object, Value, parse};

use super::tools::ToolDefinition;

/// What becomes of a tool whose definition changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnChange {
    /// It is withheld until a person accepts it.
    #[default]
    Ask,
    /// It is recorded, and the tool stays.
    Allow,
}

/// The definition of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedDefinition {
    /// Its digest.
    pub digest: String,
    /// As JSON.
    pub shown: String,
}

impl PinnedDefinition {
    fn of(definition: &ToolDefinition) -> Self {
        Self { digest: definition.digest.clone(), shown: definition.shown.clone() }
    }
}

/// A tool, as it was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPin {
    /// What was accepted, or was there first.
    pub accepted: PinnedDefinition,
    /// What the server says now, where that is something else and waits for a person.
    pub offered: Option<PinnedDefinition>,
}

/// What is found of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinFinding {
    /// The server's own name of it.
    pub tool: String,
    /// What it is.
    pub what: PinChange,
}

/// How a definition compares with the one that is pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinChange {
    /// It is used for the first time.
    New,
    /// It is the same.
    Same,
    /// It changed.
    Changed {
        /// Whether the tool is withheld.
        withheld: bool,
        /// Whether nobody saw this change before.
        is_news: bool,
    },
}

/// The pins of one server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolPins(BTreeMap<String, ToolPin>);

impl ToolPins {
    /// Compares `definitions` with what is pinned, and pins what is new.
    pub fn see(&mut self, definitions: &[ToolDefinition], on_change: OnChange) -> Vec<PinFinding> {
        definitions.iter().map(|one| PinFinding { tool: one.name.clone(), what: self.look(one, on_change) }).collect()
    }

    fn look(&mut self, definition: &ToolDefinition, on_change: OnChange) -> PinChange {
        let seen = PinnedDefinition::of(definition);
        let Some(pin) = self.0.get_mut(&definition.name) else {
            self.0.insert(definition.name.clone(), ToolPin { accepted: seen, offered: None });
            return PinChange::New;
        };
        if pin.accepted.digest == seen.digest {
            pin.offered = None;
            return PinChange::Same;
        }
        match on_change {
            OnChange::Allow => {
                *pin = ToolPin { accepted: seen, offered: None };
                PinChange::Changed { withheld: false, is_news: true }
            }
            OnChange::Ask => {
                let is_news = pin.offered.as_ref() != Some(&seen);
                pin.offered = Some(seen);
                PinChange::Changed { withheld: true, is_news }
            }
        }
    }

    /// The tools whose changes wait for a person.
    pub fn waiting(&self) -> impl Iterator<Item = (&str, &ToolPin)> {
        self.0.iter().filter(|(_, pin)| pin.offered.is_some()).map(|(name, pin)| (name.as_str(), pin))
    }

    /// Accepts what is offered of `tool`, if it still has the digest `digest`. Whether it had.
    pub fn accept(&mut self, tool: &str, digest: &str) -> bool {
        let Some(pin) = self.0.get_mut(tool) else { return false };
        match pin.offered.take_if(|offered| offered.digest == digest) {
            Some(offered) => {
                pin.accepted = offered;
                true
            }
            None => false,
        }
    }

    /// Reads what [`ToolPins::to_text`] wrote.
    ///
    /// # Errors
    /// It is something else.
    pub fn of_text(text: &str) -> Result<Self, String> {
        let value = parse(text)?;
        let tools = value.get("tools").and_then(Value::as_object).ok_or("`tools` is missing")?;
        let one = |value: &Value| {
            let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
            Some(PinnedDefinition { digest: text("digest")?, shown: text("definition")? })
        };
        let pin = |(name, value): (&String, &Value)| {
            let accepted = value.get("accepted").and_then(one).ok_or_else(|| format!("`{name}` has no pin"))?;
            Ok((name.clone(), ToolPin { accepted, offered: value.get("offered").and_then(one) }))
        };
        Ok(Self(tools.iter().map(pin).collect::<Result<_, String>>()?))
    }

    /// All of them, for a file.
    pub fn to_text(&self) -> String {
        let one = |definition: &PinnedDefinition| pintle_domain::json::json!({"digest": definition.digest, "definition": definition.shown});
        let mut tools = Object::new();
        for (name, pin) in &self.0 {
            let mut members = Object::new();
            members.insert("accepted".into(), one(&pin.accepted));
            if let Some(offered) = &pin.offered {
                members.insert("offered".into(), one(offered));
            }
            tools.insert(name.clone(), Value::Object(members));
        }
        let mut whole = Object::new();
        whole.insert("tools".into(), Value::Object(tools));
        format!("{}\n", Value::Object(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_domain::tool::Annotations;

    fn tool(name: &str, digest: &str) -> ToolDefinition {
        let shown = format!("{{\"name\":\"{name}\",\"description\":\"{digest}\"}}");
        ToolDefinition { name: name.into(), digest: digest.into(), shown, annotations: Annotations::default() }
    }

    #[test]
    fn a_changed_definition_waits_for_a_person() {
        let mut pins = ToolPins::default();
        let mut see = |digest: &str, on_change| pins.see(&[tool("a", digest)], on_change)[0].what;
        let changed = |withheld, is_news| PinChange::Changed { withheld, is_news };
        assert_eq!(see("1", OnChange::Ask), PinChange::New);
        assert_eq!(see("1", OnChange::Ask), PinChange::Same);
        assert_eq!(see("2", OnChange::Ask), changed(true, true));
        assert_eq!(see("2", OnChange::Ask), changed(true, false));
        assert_eq!(see("3", OnChange::Ask), changed(true, true));
        assert_eq!(see("1", OnChange::Ask), PinChange::Same);
        assert_eq!(see("2", OnChange::Allow), changed(false, true));
        assert_eq!(see("2", OnChange::Ask), PinChange::Same);
    }

    #[test]
    fn what_was_shown_is_what_is_accepted() {
        let mut pins = ToolPins::default();
        pins.see(&[tool("a", "1"), tool("b", "1")], OnChange::Ask);
        pins.see(&[tool("a", "2")], OnChange::Ask);
        assert_eq!(pins.waiting().map(|(name, _)| name).collect::<Vec<_>>(), ["a"]);
        assert!(!pins.accept("a", "3") && !pins.accept("b", "2") && !pins.accept("c", "2"));
        assert_eq!(ToolPins::of_text(&pins.to_text()).as_ref(), Ok(&pins));
        assert!(pins.accept("a", "2") && pins.waiting().next().is_none());
        assert_eq!(pins.see(&[tool("a", "2")], OnChange::Ask)[0].what, PinChange::Same);
        assert!(ToolPins::of_text("{}").is_err() && ToolPins::of_text("").is_err());
    }
}
