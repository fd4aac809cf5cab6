//! Names that stand for one file or folder, and lead nowhere else on any system.

/// Longest name, in bytes: what file systems take.
pub const MAX_NAME_BYTES: usize = 255;

/// What every text ends in.
const SUFFIX: &str = ".md";

/// Whether `name` is one plain path component.
///
/// # Errors
/// What is wrong with it, behind `it `.
pub fn component(name: &str) -> Result<(), &'static str> {
    let mut start = name.bytes();
    let drive = start.next().is_some_and(|first| first.is_ascii_alphabetic()) && start.next() == Some(b':');
    let wrong = [
        (name.is_empty(), "is empty"),
        (name == "." || name == "..", "stands for a folder"),
        (name.contains('\0'), "holds a zero byte"),
        (name.contains('/'), "holds a `/`"),
        (name.contains('\\'), "holds a `\\`"),
        (drive, "begins with a drive letter"),
        (name.ends_with(['.', ' ']), "ends in a dot or a blank"),
        (name.len() > MAX_NAME_BYTES, "is longer than 255 bytes"),
    ];
    wrong.into_iter().find(|(is, _)| *is).map_or(Ok(()), |(_, why)| Err(why))
}

/// Whether `name` is one of a text: a plain component that ends in `.md`.
///
/// # Errors
/// What is wrong with it, behind `it `.
pub fn text(name: &str) -> Result<(), &'static str> {
    component(name)?;
    match is_text(name) {
        true if name.len() > SUFFIX.len() => Ok(()),
        true => Err("has nothing before `.md`"),
        false => Err("does not end in `.md`"),
    }
}

/// Whether `name` ends as texts do.
pub fn is_text(name: &str) -> bool {
    let end = name.as_bytes().last_chunk::<3>();
    end.is_some_and(|end| end.eq_ignore_ascii_case(SUFFIX.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_plain_component_and_nothing_else() {
        for good in ["cite-sources", "a", "ünï", ".hidden", "a.b", "...x", "日本"] {
            assert_eq!(component(good), Ok(()), "{good:?}");
        }
        for (bad, why) in [
            ("", "is empty"),
            (".", "stands for a folder"),
            ("..", "stands for a folder"),
            ("/etc", "holds a `/`"),
            ("a/b", "holds a `/`"),
            ("..\\x", "holds a `\\`"),
            ("C:x", "begins with a drive letter"),
            ("a\0b", "holds a zero byte"),
            ("a.", "ends in a dot or a blank"),
            ("a ", "ends in a dot or a blank"),
        ] {
            assert_eq!(component(bad), Err(why), "{bad:?}");
        }
        assert_eq!(component(&"x".repeat(255)), Ok(()));
        assert_eq!(component(&"x".repeat(256)), Err("is longer than 255 bytes"));
    }

    #[test]
    fn a_text_ends_in_md() {
        for good in ["a.md", "A.MD", "a.mD", "a.b.md", "é.md"] {
            assert_eq!(text(good), Ok(()), "{good:?}");
        }
        assert_eq!(text(".md"), Err("has nothing before `.md`"));
        assert_eq!(text("a.markdown"), Err("does not end in `.md`"));
        assert_eq!(text("md"), Err("does not end in `.md`"));
        assert_eq!(text("../a.md"), Err("holds a `/`"));
        assert_eq!(text("é"), Err("does not end in `.md`"));
    }
}
