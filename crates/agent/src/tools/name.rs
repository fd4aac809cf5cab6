//! Which tool a model means.

/// Names under which other agents know our tools, folded as [`fold`] does; models were trained on them.
const ALIASES: [(&str, &str); 30] = [
    ("bash", "exec"),
    ("shell", "exec"),
    ("sh", "exec"),
    ("terminal", "exec"),
    ("run", "exec"),
    ("runcommand", "exec"),
    ("runshellcommand", "exec"),
    ("execcommand", "exec"),
    ("execute", "exec"),
    ("executecommand", "exec"),
    ("read", "read_file"),
    ("view", "read_file"),
    ("cat", "read_file"),
    ("openfile", "read_file"),
    ("write", "write_file"),
    ("createfile", "write_file"),
    ("edit", "edit_file"),
    ("strreplace", "edit_file"),
    ("replaceinfile", "edit_file"),
    ("ls", "list_dir"),
    ("list", "list_dir"),
    ("listdirectory", "list_dir"),
    ("listfiles", "list_dir"),
    ("glob", "find_files"),
    ("find", "find_files"),
    ("grep", "search_text"),
    ("ripgrep", "search_text"),
    ("search", "search_text"),
    ("fetch", "web_fetch"),
    ("fetchurl", "web_fetch"),
];

/// The prefixes that models put before a name.
const PREFIXES: [&str; 5] = ["functions.", "function.", "tools.", "tool.", "default_api."];

/// The one of `names` that `asked` means.
pub(super) fn canonical<'a, I: Iterator<Item = &'a str>>(asked: &str, names: impl Fn() -> I) -> Option<&'a str> {
    let asked = asked.trim();
    let bare = PREFIXES.iter().find_map(|prefix| asked.strip_prefix(prefix)).unwrap_or(asked);
    let exact = |wanted: &str| names().find(|name| *name == wanted);
    let folded = fold(bare);
    let alike = || {
        let mut found = names().filter(|name| fold(name) == folded);
        // Two tools that differ only in case are not told apart by guessing.
        found.next().filter(|_| found.next().is_none())
    };
    let alias = || ALIASES.iter().find(|(alias, _)| *alias == folded).and_then(|(_, tool)| exact(tool));
    exact(asked).or_else(|| exact(bare)).or_else(alike).or_else(alias)
}

/// The one of `names` that looks most like `asked`, or that it is an alias of.
pub(super) fn nearest(asked: &str, names: &[&'static str]) -> Option<&'static str> {
    let meant = canonical(asked, || names.iter().copied());
    meant.or_else(|| pintle_domain::nearest::nearest(asked, names.iter().copied()))
}

/// `name` without what people spell differently: case, `_` and `-`.
fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(asked: &str, names: &[&'static str]) -> Option<&'static str> {
        canonical(asked, || names.iter().copied())
    }

    #[test]
    fn names_prefixes_cases_and_aliases_lead_to_the_tool() {
        let all = super::super::BUILTIN;
        for (asked, tool) in [
            ("exec", Some("exec")),
            ("bash", Some("exec")),
            ("Bash", Some("exec")),
            ("shell", Some("exec")),
            ("functions.Bash", Some("exec")),
            ("functions.exec", Some("exec")),
            ("Read", Some("read_file")),
            ("ReadFile", Some("read_file")),
            ("read-file", Some("read_file")),
            ("READ_FILE", Some("read_file")),
            ("Write", Some("write_file")),
            ("Edit", Some("edit_file")),
            ("ls", Some("list_dir")),
            ("glob", Some("find_files")),
            ("grep", Some("search_text")),
            ("fetch", Some("web_fetch")),
            ("WebFetch", Some("web_fetch")),
            ("functions.functions.exec", None),
            ("functions.", None),
            ("", None),
            ("exe", None),
            ("mcp__bash", None),
        ] {
            assert_eq!(means(asked, &all), tool, "{asked}");
        }
    }

    #[test]
    fn an_alias_of_a_tool_that_is_not_there_means_nothing_and_a_real_name_wins() {
        assert_eq!(means("bash", &["read_file"]), None);
        assert_eq!(means("bash", &["exec", "bash"]), Some("bash"));
        assert_eq!(means("Look", &["look", "LOOK"]), None);
        assert_eq!(means("look", &["look", "LOOK"]), Some("look"));
        assert_eq!(means("functions.x", &["x", "functions.x"]), Some("functions.x"));
    }

    #[test]
    fn every_alias_is_folded_and_leads_to_a_built_in_tool() {
        for (alias, tool) in ALIASES {
            assert_eq!(fold(alias), alias);
            assert!(super::super::BUILTIN.contains(&tool), "{tool}");
        }
    }

    #[test]
    fn the_nearest_name_is_near() {
        let all = super::super::BUILTIN;
        for (asked, near) in [
            ("red_file", Some("read_file")),
            ("bash", Some("exec")),
            ("webfech", Some("web_fetch")),
            ("teleport", None),
            ("", None),
        ] {
            assert_eq!(nearest(asked, &all), near, "{asked}");
        }
    }
}
