//! What models of some families want otherwise, as tables.
//!
//! Two things are known of a family. One is the name under which it takes the length of an answer: a `max_tokens` goes
//! to it under that name, whoever asks, since it means the same and the other name is refused. The other is whether it
//! takes a `temperature`: one that somebody set is never left out in silence, so this wire sends it and the vendor
//! refuses it by name; who sets one of its own accord, as judges do, asks [`takes_temperature`] first.
//!
//! Of Anthropic's models it is known how much they write at most, since their wire wants to be told.
//!
//! A name is matched by its beginning; the first line counts, and a model that no line names is an ordinary one.
//! Vendors: OpenAI's guide to reasoning models, Anthropic's migration guides, both as of November 2026.

use pintle_domain::json::Object;

/// The usual name of the bound of an answer.
const MAX_TOKENS: &str = "max_tokens";
/// Its name with models that think before they answer, whose thoughts count too.
const MAX_COMPLETION_TOKENS: &str = "max_completion_tokens";

/// Models whose names begin alike.
struct Family {
    /// How their names begin.
    prefix: &'static str,
    /// What they call the bound of an answer.
    length: &'static str,
    /// Whether they take another temperature than their own.
    temperature: bool,
}

const fn family(prefix: &'static str, length: &'static str, temperature: bool) -> Family {
    Family { prefix, length, temperature }
}

/// The families that differ.
const FAMILIES: [Family; 13] = [
    // OpenAI's models that reason; the chat models of the fifth generation do not.
    family("gpt-5-chat", MAX_TOKENS, true),
    family("gpt-5", MAX_COMPLETION_TOKENS, false),
    family("gpt-6", MAX_COMPLETION_TOKENS, false),
    family("o1", MAX_COMPLETION_TOKENS, false),
    family("o3", MAX_COMPLETION_TOKENS, false),
    family("o4", MAX_COMPLETION_TOKENS, false),
    // Anthropic's from 4.7 on.
    family("claude-opus-4-7", MAX_TOKENS, false),
    family("claude-opus-4-8", MAX_TOKENS, false),
    family("claude-opus-5", MAX_TOKENS, false),
    family("claude-sonnet-5", MAX_TOKENS, false),
    family("claude-haiku-5", MAX_TOKENS, false),
    family("claude-fable", MAX_TOKENS, false),
    family("claude-mythos", MAX_TOKENS, false),
];

/// Whether `model` takes a temperature. Brokers write the vendor before the name, and some a dot for a hyphen.
pub fn takes_temperature(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase().replace('.', "-");
    of(&name).is_none_or(|family| family.temperature)
}

/// The name under which `model` takes the option `name`, unless `options` has that one as well. A vendor before the
/// model's name is a broker's way to write it, and brokers know both names.
pub(crate) fn option_name<'a>(model: &str, name: &'a str, options: &Object) -> &'a str {
    match of(model) {
        Some(family) if name == MAX_TOKENS && !options.contains_key(family.length) => family.length,
        Some(_) | None => name,
    }
}

/// The most tokens that a model of Anthropic's writes in one answer, by the beginning of its name; the first line counts.
/// A model of theirs that no line names is newer than these.
const LONGEST: [(&str, u32); 14] = [
    ("claude-3-7", 64_000),
    ("claude-3-5", 8_192),
    ("claude-3", 4_096),
    ("claude-sonnet-4-6", 128_000),
    ("claude-sonnet-4", 64_000),
    ("claude-opus-4-5", 64_000),
    ("claude-opus-4-6", 128_000),
    ("claude-opus-4-7", 128_000),
    ("claude-opus-4-8", 128_000),
    ("claude-opus-4", 32_000),
    ("claude-haiku-4", 64_000),
    ("claude-opus-5", 128_000),
    ("claude-fable-5", 128_000),
    ("claude-", 64_000),
];

/// The most tokens that `model` writes in one answer, as far as that is known.
pub(crate) fn longest_answer(model: &str) -> Option<u32> {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase().replace('.', "-");
    LONGEST.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, tokens)| *tokens)
}

fn of(model: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| model.starts_with(family.prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_told_by_the_beginning_of_their_names() {
        let table = [
            ("gpt-4.1", "max_tokens", true),
            ("gpt-5", "max_completion_tokens", false),
            ("gpt-5-mini", "max_completion_tokens", false),
            ("gpt-5.6-luna", "max_completion_tokens", false),
            ("gpt-5-chat-latest", "max_tokens", true),
            ("gpt-6-sol", "max_completion_tokens", false),
            ("gpt-oss-120b", "max_tokens", true),
            ("o1", "max_completion_tokens", false),
            ("o3-mini", "max_completion_tokens", false),
            ("o4-mini", "max_completion_tokens", false),
            ("openai/o3", "max_tokens", false),
            ("anthropic/claude-opus-4.7", "max_tokens", false),
            ("claude-haiku-4-5", "max_tokens", true),
            ("claude-opus-4-6", "max_tokens", true),
            ("claude-haiku-5-5", "max_tokens", false),
            ("qwen3-4b", "max_tokens", true),
            ("", "max_tokens", true),
        ];
        let options = [("max_tokens".to_owned(), 5.into())].into_iter().collect();
        for (model, length, temperature) in table {
            assert_eq!(option_name(model, "max_tokens", &options), length, "{model}");
            assert_eq!(takes_temperature(model), temperature, "{model}");
            assert_eq!(option_name(model, "temperature", &options), "temperature", "{model}");
        }
    }

    #[test]
    fn an_answer_may_be_as_long_as_its_model_writes() {
        for (model, tokens) in [
            ("claude-3-opus-20240229", Some(4_096)),
            ("claude-3-5-haiku-latest", Some(8_192)),
            ("claude-opus-4-20250514", Some(32_000)),
            ("claude-opus-4-1", Some(32_000)),
            ("claude-sonnet-4-5-20250929", Some(64_000)),
            ("anthropic/claude-sonnet-4.6", Some(128_000)),
            ("claude-opus-5-5", Some(128_000)),
            ("claude-haiku-5-5", Some(64_000)),
            ("kimi-k3", None),
        ] {
            assert_eq!(longest_answer(model), tokens, "{model}");
        }
    }

    #[test]
    fn the_right_name_is_never_sent_twice() {
        let options = ["max_tokens", "max_completion_tokens"].map(|name| (name.to_owned(), 5.into()));
        let options = options.into_iter().collect();
        for name in ["max_tokens", "max_completion_tokens"] {
            assert_eq!(option_name("o3", name, &options), name);
        }
    }
}
