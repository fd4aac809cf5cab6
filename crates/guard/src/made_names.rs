//! Names of files that a command puts together: of a name that it is told and a suffix, or by a template. And paths that stand
//! in URLs.

use pintle_domain::shell::ShellCommand;

use crate::path_pattern::path_meant;

/// How a text tells programs that copy which suffix the copy of a file gets which they would overwrite.
const SUFFIX_VARIABLE: &str = "SIMPLE_BACKUP_SUFFIX=";

/// What stands for the letters or digits that tell pieces of a file apart.
const NEXT: &str = "[^.]*";

/// What a command puts behind the names of files, or makes of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MadeName {
    /// This stands behind the name.
    Behind(String),
    /// This is the name, in which `*` stands for the one before.
    Template(String),
}

impl MadeName {
    fn of_suffix(suffix: &str) -> Self {
        if suffix.contains('*') { Self::Template(suffix.to_owned()) } else { Self::Behind(suffix.to_owned()) }
    }

    /// What `path` may be called then. A template with a folder is meant from where the command runs by some programs.
    pub(crate) fn of(&self, path: &str) -> Vec<String> {
        match self {
            Self::Behind(end) => vec![format!("{path}{end}")],
            Self::Template(template) => {
                let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
                let called = template.replace('*', name);
                vec![format!("{folder}/{called}"), called]
            }
        }
    }
}

/// What `command` makes of the names of files that it is told; a variable tells it `others`.
pub(crate) fn made_names(command: &ShellCommand, others: &[String]) -> Vec<MadeName> {
    let words = command.argv.get(1..).unwrap_or_default();
    let behind = |suffixes: Vec<String>| suffixes.into_iter().map(MadeName::Behind).collect::<Vec<MadeName>>();
    match command.name.as_str() {
        "cp" | "mv" | "ln" | "install" => behind([values(words, Some('S'), "suffix"), others.to_vec()].concat()),
        "patch" => behind([values(words, Some('z'), "suffix"), others.to_vec()].concat()),
        "gzip" | "pigz" | "xz" | "lzma" => behind(values(words, Some('S'), "suffix")),
        "rsync" => behind(values(words, None, "suffix")),
        "split" => {
            let ends = values(words, None, "additional-suffix");
            vec![MadeName::Behind(format!("{NEXT}{}", ends.last().map_or("", String::as_str)))]
        }
        "csplit" => vec![MadeName::Behind(NEXT.to_owned())],
        "sed" | "gsed" => in_place(words, "efl"),
        name if name.starts_with("perl") || name.starts_with("ruby") => in_place(words, "eEIMmCDFxrKW"),
        _ => Vec::new(),
    }
}

/// The values among `words` of an option: behind its `letter` in a row of letters, or behind its `long` name, which may be
/// shortened; in the same word or the next one.
pub(crate) fn values(words: &[String], letter: Option<char>, long: &str) -> Vec<String> {
    let value = |(at, word): (usize, &String)| {
        let next = || words.get(at + 1).cloned();
        if let Some(told) = word.strip_prefix("--") {
            let (name, value) = told.split_once('=').map_or((told, None), |(name, value)| (name, Some(value)));
            let is_it = name.len() > 1 && long.starts_with(name);
            return value.map(str::to_owned).or_else(next).filter(|_| is_it);
        }
        let (_, rest) = word.strip_prefix('-')?.split_once(letter?)?;
        if rest.is_empty() { next() } else { Some(rest.to_owned()) }
    };
    words.iter().enumerate().filter_map(value).filter(|value| !value.is_empty()).collect()
}

/// The suffixes that `text` gives programs by a variable.
pub(crate) fn suffixes_of_variable(text: &str) -> Vec<String> {
    let ends = |letter: char| letter.is_whitespace() || "\"';&|)".contains(letter);
    let values = text.split(SUFFIX_VARIABLE).skip(1);
    let values = values.filter_map(|rest| rest.trim_start_matches(['"', '\'']).split(ends).next());
    values.filter(|value| !value.is_empty()).map(str::to_owned).collect()
}

/// What an editor that changes files in place makes of their names, of which the letters `valued` take what stands behind them.
fn in_place(words: &[String], valued: &str) -> Vec<MadeName> {
    let suffix = |(at, word): (usize, &String)| {
        if let Some(suffix) = word.strip_prefix("--in-place=") {
            return Some(suffix.to_owned());
        }
        let row = word.strip_prefix('-').filter(|row| !row.starts_with('-'))?;
        let place = row.find(|letter: char| letter == 'i' || valued.contains(letter))?;
        let rest = row[place..].strip_prefix('i')?;
        // BSD takes it from the next word.
        let next = || words.get(at + 1).filter(|next| next.starts_with('.')).cloned();
        if rest.is_empty() { next() } else { Some(rest.to_owned()) }
    };
    let suffixes = words.iter().enumerate().filter_map(suffix).filter(|suffix| !suffix.is_empty());
    suffixes.map(|suffix| MadeName::of_suffix(&suffix)).collect()
}

/// The paths of the URLs of files in `text`, wherever in it they stand.
pub(crate) fn urls_of_files(text: &str) -> Vec<String> {
    let small = text.to_ascii_lowercase();
    let ends = |letter: char| letter.is_whitespace() || "\"'<>|;)".contains(letter);
    let urls = small.match_indices("file:/").map(|(at, _)| {
        let rest = &text[at..];
        &rest[..rest.find(ends).unwrap_or(rest.len())]
    });
    let all = urls.flat_map(|url| [url, url.split(['?', '#']).next().unwrap_or(url)]);
    all.map(|url| path_meant(url).into_owned()).collect()
}

/// The path on this machine that `word` names, which programs that copy take for one of another machine.
pub(crate) fn path_of_this_machine(word: &str) -> Option<String> {
    const NAMES: [&str; 4] = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"];
    let place = word.rsplit_once('@').map_or(word, |(_, place)| place);
    let path = NAMES.iter().find_map(|name| place.strip_prefix(*name)?.strip_prefix(':'))?;
    let is_whole = path.starts_with(['/', '~']);
    Some(if is_whole { path.to_owned() } else { format!("~/{path}") })
}

/// The paths, from the folder in which it saves, that `wget` may give to what it fetches from `url`, where it keeps folders.
pub(crate) fn saved_as(url: &str) -> Vec<&str> {
    let path = url.split_once("://").map_or(url, |(_, path)| path);
    let path = path.split(['?', '#']).next().unwrap_or(path);
    std::iter::once(path).chain(path.match_indices('/').map(|(at, _)| &path[at + 1..])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taken::tests::commands;

    #[test]
    fn a_name_is_put_together_of_what_the_options_say() {
        for (text, path, expected) in [
            ("cp -b -S .json a b/c", "b/c", "b/c.json"),
            ("cp -bS.json a b/c", "b/c", "b/c.json"),
            ("ln --suff .json a b/c", "b/c", "b/c.json"),
            ("install --suffix=.json a b/c", "b/c", "b/c.json"),
            ("patch -b -z .json c", "c", "c.json"),
            ("sed -i.json s/a/b/ c", "c", "c.json"),
            ("sed -ni.json s/a/b/ c", "c", "c.json"),
            ("sed -i .json s/a/b/ c", "c", "c.json"),
            ("sed --in-place=.json s/a/b/ c", "c", "c.json"),
            ("sed -is.* s/a/b/ b/c", "b/c", "b/s.c s.c"),
            ("perl -pi.json -e x c", "c", "c.json"),
            ("perl -0777 -i.json -pe x c", "c", "c.json"),
            ("ruby -pi.json c", "c", "c.json"),
            ("split -l1 --additional-suffix=.json a c", "c", "c[^.]*.json"),
            ("split a c", "c", "c[^.]*"),
            ("gzip -S .json c", "c", "c.json"),
            ("cp a c", "c", ""),
            ("sed -i s/a/b/ c", "c", ""),
            ("sed -ne s/i/b/ c", "c", ""),
            ("perl -pi -e x c", "c", ""),
            ("cat -S .json c", "c", ""),
        ] {
            let made = made_names(&commands(&[text])[0], &[]);
            let made: Vec<String> = made.iter().flat_map(|name| name.of(path)).collect();
            assert_eq!(made.join(" "), expected, "{text}");
        }
        let text = "SIMPLE_BACKUP_SUFFIX='.json' cp -b a c";
        let made = made_names(&commands(&["cp -b a c"])[0], &suffixes_of_variable(text));
        assert_eq!(made, [MadeName::Behind(".json".to_owned())]);
    }

    #[test]
    fn a_url_of_a_file_is_its_path_wherever_it_stands() {
        for (text, paths) in [
            ("file:///u/a", "/u/a /u/a"),
            ("url=FILE://localhost/u/%61#x", "/u/a#x /u/a"),
            ("\"file:///u/a\" b", "/u/a /u/a"),
            ("https://x/u/a", ""),
        ] {
            assert_eq!(urls_of_files(text).join(" "), paths, "{text}");
        }
    }

    #[test]
    fn this_machine_has_other_names() {
        for (word, path) in [
            ("localhost:.x/s", Some("~/.x/s")),
            ("ann@127.0.0.1:/u/s", Some("/u/s")),
            ("[::1]:~/s", Some("~/s")),
            ("localhost:", Some("~/")),
            ("host:.x/s", None),
            ("localhost", None),
        ] {
            assert_eq!(path_of_this_machine(word).as_deref(), path, "{word}");
        }
    }

    #[test]
    fn what_is_fetched_may_keep_any_of_its_folders() {
        assert_eq!(saved_as("http://h/.x/s?y"), ["h/.x/s", ".x/s", "s"]);
    }
}
