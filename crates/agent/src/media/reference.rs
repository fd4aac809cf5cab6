//! `media://ID`: 128 random bits, so nobody comes by a reference that he was not given.

use uuid::Uuid;

/// How a reference begins.
pub(super) const SCHEME: &str = "media://";

/// The prefix of the name of a folder that is not complete yet.
pub(super) const DRAFT: &str = ".new-";
/// The prefix of the name of a folder that is about to go.
pub(super) const GONE: &str = ".gone-";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id(Uuid);

impl Id {
    pub(super) fn fresh() -> Self {
        Self(Uuid::new_v4())
    }

    /// The id in `reference`, which must be spelled exactly as it was given out.
    pub(super) fn of(reference: &str) -> Option<Self> {
        Self::of_folder(reference.strip_prefix(SCHEME)?)
    }

    /// The id whose folder has this name.
    pub(super) fn of_folder(name: &str) -> Option<Self> {
        let id = Self(Uuid::try_parse(name).ok()?);
        (id.folder() == name).then_some(id)
    }

    pub(super) fn reference(self) -> String {
        format!("{SCHEME}{}", self.folder())
    }

    pub(super) fn folder(self) -> String {
        self.0.simple().to_string()
    }

    pub(super) fn draft(self) -> String {
        format!("{DRAFT}{}", self.folder())
    }

    pub(super) fn gone(self) -> String {
        format!("{GONE}{}", self.folder())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_given_out_is_a_reference() {
        let id = Id::fresh();
        assert_eq!(Id::of(&id.reference()), Some(id));
        let folder = id.folder();
        assert_eq!((folder.len(), Id::of_folder(&folder)), (32, Some(id)));
        for other in [
            "media://".to_owned(),
            format!("media://{}", id.0),
            format!("media://{}", folder.to_uppercase().replace(char::is_numeric, "A")),
            format!("media://{{{folder}}}"),
            format!("media://../{folder}"),
            format!("media:{folder}"),
            format!("media://{folder}/"),
            folder,
        ] {
            assert_eq!(Id::of(&other), None, "{other}");
        }
    }
}
