//! The files that a command names, as far as its text alone says.

use std::ffi::OsStr;
use std::path::Path;

/// Endings of files that are handed to an interpreter: such a word of a command is a file that has to be there.
const SCRIPTS: [&str; 10] = ["py", "js", "mjs", "cjs", "ts", "sh", "rb", "pl", "php", "lua"];

/// What a shell reads more into than a word. From there on the text may make the file that it names.
const SIGNS: [char; 17] = [';', '|', '&', '<', '>', '(', ')', '$', '`', '*', '?', '[', '{', '#', '~', '=', '\n'];

/// The first script that `command` hands to its interpreter and that is not in `folder`.
pub(super) fn missing_file(command: &str, folder: &Path) -> Option<String> {
    let plain = command.split(SIGNS).next().unwrap_or_default();
    let words = plain.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    words.skip(1).find(|word| is_script(word) && !folder.join(word).exists()).map(str::to_owned)
}

/// Whether `word` of a command is a file that is handed to an interpreter.
pub fn is_script(word: &str) -> bool {
    let ending = Path::new(word).extension().and_then(OsStr::to_str);
    !word.starts_with('-') && ending.is_some_and(|ending| SCRIPTS.contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("there.py"), "").unwrap();
        let check = |command: &str, missing: Option<&str>| {
            assert_eq!(missing_file(command, folder.path()).as_deref(), missing, "{command}");
        };
        check("python3 gone.py", Some("gone.py"));
        check("python3 -u 'gone.py' --strict", Some("gone.py"));
        check("sh ./hooks/gone.sh | tee log", Some("./hooks/gone.sh"));
        for fine in
            ["python3 there.py", "./gone.sh", "true", "echo > gone.py", "cat $1/gone.py", "test -f x; sh gone.sh"]
        {
            check(fine, None);
        }
    }
}
