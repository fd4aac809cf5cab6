//! What the client prints when nobody answers it: constant texts, so that nothing has to work for them.

/// The panic denies of one host.
pub(crate) struct PanicRow {
    /// The host, by its id.
    pub(crate) host: &'static str,
    /// Its events that can be denied, each with the text that does it.
    pub(crate) denies: &'static [(&'static str, &'static str)],
    /// What it prints where nothing is objected to, whatever the event.
    pub(crate) passes: &'static str,
}

impl PanicRow {
    /// The text that denies `event`; empty where it cannot be denied.
    pub(crate) fn deny(&self, event: &str) -> &'static str {
        self.denies.iter().find(|(name, _)| *name == event).map_or("", |(_, text)| text)
    }
}
