//! What is guarded, under a second name.

use pintle_domain::shell::ShellCommand;

use super::{Look, path_at};
use crate::filled::{copied_as_links, linked_to, twice};

impl Look<'_> {
    /// Whether `command` gives something that is guarded a second name that is no link: nothing would show later what is
    /// changed under that.
    pub(super) fn named_twice(&self, command: &ShellCommand) -> Option<String> {
        let links = copied_as_links(command).filter(|word| self.is_link_to_held(&path_at(word, command)));
        let mut words = twice(command).map(str::to_owned).chain(linked_to(command));
        let is_held = |word: &String| self.deleted(&path_at(word, command)).is_some();
        let word = words.find(is_held).or_else(|| links.map(str::to_owned).next())?;
        Some(format!(
            "`{word}` guards this agent or decides over it, and could be changed under the second name that it would get"
        ))
    }

    /// Whether nothing but a link at `path` leads to what is guarded.
    fn is_link_to_held(&self, path: &str) -> bool {
        let all = self.all_names(path);
        all.split_first()
            .is_some_and(|(own, behind)| !self.is_held(own) && behind.iter().any(|names| self.is_held(names)))
    }
}
