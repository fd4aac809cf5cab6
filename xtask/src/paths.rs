//! Questions about paths from the root of the repository, as text.

/// Whether `file` is in `folder` or below it.
pub fn is_below(file: &str, folder: &str) -> bool {
    file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether one of the folders of `path` is called `name`.
pub fn is_in(path: &str, name: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(folders, _)| folders.split('/').any(|folder| folder == name))
}
