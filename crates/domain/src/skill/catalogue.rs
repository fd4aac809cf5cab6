//! What a model is told of skills before it needs them: their names, and what each is for.

use serde::{Deserialize, Serialize};

/// Most characters of a description that are told. Source: the published format of skills, which allows no more.
pub const MAX_DESCRIPTION_CHARS: usize = 1024;

/// The text that stands before the list.
const HEAD: &str = "You have skills: instructions for certain kinds of work. When a task fits one of them, read it \
first by calling `load_skill` with its name, and follow what it says. The skills:";

/// The skills that a model may load, in the order in which they are enabled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogue {
    /// Each with its description: one line, never empty.
    entries: Vec<(String, String)>,
}

impl Catalogue {
    /// The skills that have a description.
    pub fn new<'a>(skills: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let entries = skills.into_iter().map(|(name, description)| (name.to_owned(), one_line(description)));
        Self { entries: entries.filter(|(_, description)| !description.is_empty()).collect() }
    }

    /// Whether there are none: then there is no text and no tool.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    /// `system` with the list at its end.
    pub fn ending(&self, system: &str) -> String {
        if self.is_empty() {
            return system.to_owned();
        }
        let lines: String =
            self.entries.iter().map(|(name, description)| format!("\n- {name}: {description}")).collect();
        let break_between = if system.trim().is_empty() { "" } else { "\n\n" };
        format!("{}{break_between}{HEAD}{lines}", system.trim_end())
    }
}

/// `text` on one line, without its end if it is too long.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_DESCRIPTION_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_ends_the_system_text_and_nothing_is_said_of_nothing() {
        let catalogue = Catalogue::new([("beta", "Writes\n  reports. "), ("gone", " "), ("alpha", "Reads them.")]);
        assert_eq!(catalogue.names().collect::<Vec<_>>(), ["beta", "alpha"]);
        let text = catalogue.ending("Be brief.\n");
        assert!(text.starts_with("Be brief.\n\nYou have skills"), "{text}");
        assert!(text.ends_with("The skills:\n- beta: Writes reports.\n- alpha: Reads them."), "{text}");
        assert!(catalogue.ending("").starts_with("You have skills"));
        assert_eq!(Catalogue::default().ending("Be brief.\n"), "Be brief.\n");
    }

    #[test]
    fn a_long_description_is_cut() {
        let catalogue = Catalogue::new([("a", "ü".repeat(5000).as_str())]);
        assert_eq!(catalogue.ending("").chars().filter(|c| *c == 'ü').count(), MAX_DESCRIPTION_CHARS);
    }
}
