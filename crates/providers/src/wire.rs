//! What is known of a kind of provider beside its code: its row in [`WIRES`](crate::WIRES).

use std::sync::Arc;

use pintle_domain::llm::LlmRequest;
use reqwest::Url;

use crate::abilities::Abilities;
use crate::http::KeyHeader;
use crate::lower::TurnPosition;
use crate::spec::{ProviderSpec, ToolMode, WireKind};
use crate::{Provider, ProviderError, WIRES};

/// A kind of provider.
pub(crate) struct WireRow {
    /// Which.
    pub(crate) kind: WireKind,
    /// The word for it in a configuration.
    pub(crate) word: &'static str,
    /// What people need to know of it beside the word; may be empty.
    pub(crate) about: &'static str,
    /// Whether tools can be offered in another way than the wire's own.
    pub(crate) has_tool_modes: bool,
    /// Where its models see images, as far as one can tell without asking.
    pub(crate) sight: Sight,
    /// Makes one. Nothing is sent yet.
    pub(crate) connect: fn(&ProviderSpec) -> Result<Arc<dyn Provider>, ProviderError>,
    /// What its servers are sent; `None` where there is no server, but a file of replies.
    pub(crate) server: Option<ServerWire>,
}

/// Where models see images: those of the vendors do, those of any other server often do not and then refuse the whole
/// request.
pub(crate) enum Sight {
    /// Wherever they are served.
    Anywhere,
    /// At the vendor's own address.
    AtTheVendor,
    /// Nowhere.
    Never,
}

/// What the servers of a kind are sent.
pub(crate) struct ServerWire {
    /// The body of a request.
    pub(crate) body: fn(&Outgoing<'_>) -> Vec<u8>,
    /// How they are asked for their models.
    pub(crate) models: fn(&ProviderSpec) -> Result<ModelList, ProviderError>,
}

/// A request on its way to a model.
pub(crate) struct Outgoing<'a> {
    /// The provider.
    pub(crate) spec: &'a ProviderSpec,
    /// What its models take.
    pub(crate) abilities: &'a Abilities,
    /// The model.
    pub(crate) model: &'a str,
    /// The request.
    pub(crate) request: &'a LlmRequest,
    /// The place in a turn that it has, if it has one.
    pub(crate) turn: Option<TurnPosition<'a>>,
}

/// How a server is asked for its models.
pub(crate) struct ModelList {
    /// Where.
    pub(crate) url: Url,
    /// How the key goes along.
    pub(crate) key_header: KeyHeader,
    /// A header that has to be there.
    pub(crate) header: Option<(&'static str, &'static str)>,
}

impl WireKind {
    pub(crate) fn row(self) -> &'static WireRow {
        &WIRES[self as usize]
    }

    /// The word for it in a configuration.
    pub fn word(self) -> &'static str {
        self.row().word
    }

    /// The kind that `word` names.
    pub fn named(word: &str) -> Option<Self> {
        WIRES.iter().find(|row| row.word == word).map(|row| row.kind)
    }

    /// The words for all of them.
    pub fn words() -> impl Iterator<Item = &'static str> + Clone {
        WIRES.iter().map(|row| row.word)
    }

    /// Whether a server answers; else a file of replies is played.
    pub fn has_server(self) -> bool {
        self.row().server.is_some()
    }

    /// Whether tools can be offered in another way than the wire's own.
    pub fn has_tool_modes(self) -> bool {
        self.row().has_tool_modes
    }

    /// Whether models see images, as far as one can tell without asking.
    pub fn sees(self, at_own_address: bool, tool_mode: ToolMode) -> bool {
        match self.row().sight {
            Sight::Anywhere => true,
            Sight::AtTheVendor => at_own_address && tool_mode == ToolMode::Native,
            Sight::Never => false,
        }
    }

    /// All of them for people, in a sentence without a verb.
    pub fn explained() -> String {
        let mut text = String::new();
        for (at, WireRow { word, about, .. }) in WIRES.iter().enumerate() {
            let before = if at == 0 { "" } else { ", " };
            let or = if at > 0 && at + 1 == WIRES.len() { "or " } else { "" };
            let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
            text.push_str(&format!("{before}{or}`{word}`{about}"));
        }
        text + "."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_where_their_kind_points() {
        for (at, row) in WIRES.iter().enumerate() {
            assert_eq!(row.kind as usize, at, "{}", row.word);
            assert_eq!(WireKind::named(row.word), Some(row.kind));
        }
        assert_eq!(WireKind::words().collect::<Vec<_>>(), ["openai", "anthropic", "scripted"]);
        let explained = "`openai` (any compatible server), `anthropic`, or `scripted` (plays a file of replies).";
        assert_eq!(WireKind::explained(), explained);
    }
}
