//! The models that can be asked, and who serves them.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_providers::Provider;

/// The configured providers by name.
#[derive(Clone, Default)]
pub struct Models {
    providers: BTreeMap<String, Arc<dyn Provider>>,
}

/// No provider serves this model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no provider serves model `{model}`; a model is written PROVIDER/MODEL; providers: {known}")]
pub struct UnknownModel {
    /// The model that was asked for.
    pub model: String,
    /// The providers there are, separated by commas.
    pub known: String,
}

impl Models {
    /// Adds a provider.
    #[must_use]
    pub fn with(mut self, name: &str, provider: Arc<dyn Provider>) -> Self {
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

    /// Who serves `model`, and its name there. It is written as in a configuration: `provider/model`; what follows
    /// the first slash may have slashes of its own.
    ///
    /// # Errors
    /// Nobody does.
    pub fn resolve<'a>(&self, model: &'a str) -> Result<(Arc<dyn Provider>, &'a str), UnknownModel> {
        let found = model.split_once('/').and_then(|(name, rest)| Some((self.providers.get(name)?, rest)));
        match found {
            Some((provider, model)) if !model.is_empty() => Ok((provider.clone(), model)),
            Some(_) | None => Err(UnknownModel {
                model: model.to_owned(),
                known: self.providers.keys().cloned().collect::<Vec<_>>().join(", "),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use pintle_providers::scripted::Scripted;

    use super::*;

    #[test]
    fn a_model_names_its_provider() {
        let provider = || Arc::new(Scripted::from_json(r#"{"replies": []}"#, "test").unwrap());
        let models = Models::default().with("a", provider()).with("b", provider());
        let check = |model: &str| match models.resolve(model) {
            Ok((found, name)) => {
                let by = models.names().find(|name| Arc::ptr_eq(models.provider(name).unwrap(), &found));
                format!("{name} of {}", by.unwrap())
            }
            Err(unknown) => unknown.to_string(),
        };
        assert_eq!(check("a/x"), "x of a");
        assert_eq!(check("b/org/x"), "org/x of b");
        for unknown in ["x", "c/x", "a/", "a", "/x", ""] {
            let text =
                format!("no provider serves model `{unknown}`; a model is written PROVIDER/MODEL; providers: a, b");
            assert_eq!(check(unknown), text);
        }
    }
}
