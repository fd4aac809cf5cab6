//! How agents are started so that no hook guards them: an agent that starts one could do everything by it.

use domain::shell::{ShellCommand, ShellFacts};

/// What of one agent starts it without its hooks.
#[derive(Debug)]
pub(crate) struct UnguardedStart {
    /// Its programs and packages.
    pub(crate) programs: &'static [&'static str],
    /// Options that leave hooks out, whatever their value is.
    pub(crate) options: &'static [&'static str],
    /// How words begin that set what turns hooks off, in small letters.
    pub(crate) settings: &'static [&'static str],
    /// Words that turn hooks off where they follow one another.
    pub(crate) words: &'static [&'static [&'static str]],
    /// Variables of the environment that move its settings elsewhere, beside `HOME`.
    pub(crate) variables: &'static [&'static str],
}

/// Programs that start another one which they are told of.
const RUNNERS: [&str; 9] = ["npx", "bunx", "pnpx", "npm", "pnpm", "yarn", "bun", "node", "deno"];

/// The variable by which every agent finds the settings of its person.
const HOME: &str = "HOME";

impl UnguardedStart {
    /// Why `text`, of which `facts` tell, must not run: it starts this agent without its hooks, or turns them off.
    pub(crate) fn found_in(&self, text: &str, facts: &ShellFacts) -> Option<String> {
        let told: Vec<&[String]> = facts.commands.iter().filter_map(|command| self.told(command)).collect();
        let program = self.programs.first().filter(|_| !told.is_empty())?;
        let mut variables = self.variables.iter().copied().chain([HOME]);
        let by_word = told.iter().find_map(|words| self.switch_in(words));
        let switch = by_word.or_else(|| variables.find(|name| sets(text, name)).map(str::to_owned))?;
        Some(format!("`{switch}` would start `{program}` without its guard, or turn that off"))
    }

    /// The words that `command` tells this agent; none where it does not start it.
    fn told<'c>(&self, command: &'c ShellCommand) -> Option<&'c [String]> {
        let is_it = |word: &String| {
            let file = word.rsplit('/').next().unwrap_or_default();
            let name = file.split('@').next().unwrap_or_default();
            self.programs.iter().any(|own| if own.starts_with('@') { word.contains(own) } else { name == *own })
        };
        if self.programs.contains(&command.name.as_str()) {
            return command.argv.get(1..);
        }
        let is_runner = RUNNERS.contains(&command.name.as_str());
        let at = command.argv.iter().position(is_it).filter(|_| is_runner)?;
        command.argv.get(at + 1..)
    }

    /// What among `words` leaves hooks out.
    fn switch_in(&self, words: &[String]) -> Option<String> {
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        let words = &words[..end];
        let is_option = |word: &String| {
            let name = word.split('=').next().unwrap_or_default();
            self.options.iter().any(|option| word == option || name == *option)
        };
        let single = words.iter().find(|word| is_option(word) || self.is_setting(word));
        let row = || self.words.iter().find(|row| words.windows(row.len()).any(|window| window == **row));
        single.cloned().or_else(|| row().map(|row| row.join(" ")))
    }

    /// Whether `word` sets what turns hooks off, alone or behind its option in one word.
    fn is_setting(&self, word: &str) -> bool {
        let plain = word.chars().filter(|letter| !letter.is_whitespace() && !matches!(letter, '"' | '\''));
        let plain: String = plain.flat_map(char::to_lowercase).collect();
        let said = plain.strip_prefix("--config=").or_else(|| plain.strip_prefix("-c")).unwrap_or(&plain);
        self.settings.iter().any(|setting| said.trim_start_matches('=').starts_with(setting))
    }
}

/// Whether `text` sets the variable `name`.
fn sets(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let is_whole = !text[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        is_whole && text[at + name.len()..].starts_with('=')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_set_under_its_whole_name() {
        for (text, set) in [
            ("HOME=/x claude", true),
            ("export HOME=/x; claude", true),
            ("env 'HOME=/x' claude", true),
            ("MY_HOME=/x claude", false),
            ("echo $HOME && claude", false),
        ] {
            assert_eq!(sets(text, HOME), set, "{text}");
        }
    }
}
