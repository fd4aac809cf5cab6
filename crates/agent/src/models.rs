//! The models that can be asked, and who serves them.

use std::collections::BTreeMap;
use std::sync::Arc;

use providers::Provider;

/// The configured providers by name.
#[derive(Clone, Default)]
pub struct Models {
    providers: BTreeMap<String, Arc<dyn Provider>>,
    default: Option<String>,
}

/// No provider serves this model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no provider serves model `{model}`; providers: {known}")]
pub struct UnknownModel {
    /// The model that was asked for.
    pub model: String,
    /// The providers there are, separated by commas.
    pub known: String,
}

impl Models {
    /// Adds a provider. The first one serves models that name none.
    #[must_use]
    pub fn with(mut self, name: &str, provider: Arc<dyn Provider>) -> Self {
        self.default.get_or_insert_with(|| name.to_owned());
        self.providers.insert(name.to_owned(), provider);
        self
    }

    /// The names of the providers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.providers.keys().map(String::as_str)
    }

    /// The provider called `name`.
    pub fn provider(&self, name: &str) -> Option<&Arc<dyn Provider>> {
        self.providers.get(name)
    }

    /// Who serves `model`, and its name there: `provider/model`, or a bare model of the default provider.
    ///
    /// # Errors
    /// Nobody does.
    pub fn resolve<'a>(&self, model: &'a str) -> Result<(Arc<dyn Provider>, &'a str), UnknownModel> {
        let named = model.split_once('/').and_then(|(name, rest)| Some((self.providers.get(name)?, rest)));
        // A bare model may have slashes of its own, such as `org/model`, but never the name of nothing.
        let bare = || Some((self.providers.get(self.default.as_ref()?)?, model));
        let found = named.or_else(|| if model.contains('/') { None } else { bare() });
        match found {
            Some((provider, model)) if !model.is_empty() => Ok((provider.clone(), model)),
            Some(_) | None => Err(UnknownModel {
                model: model.to_owned(),
                known: self.providers.keys().cloned().collect::<Vec<_>>().join(", "),
            }),
        }
    }
}
