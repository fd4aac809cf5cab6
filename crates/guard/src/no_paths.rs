//! Texts of tools that no host has which are no paths, although they may look like ones. Pure.

/// The members that name a file in which texts are replaced, and those with the texts, in small letters without `_` and `-`.
const EDITED: [&str; 5] = ["path", "filepath", "relativepath", "file", "filename"];
const REPLACED: [&str; 8] = ["oldtext", "newtext", "oldstring", "newstring", "oldstr", "newstr", "regex", "repl"];

/// The tools of the reference server for a graph of what agents remember.
const OF_GRAPH: [&str; 9] = [
    "add_observations",
    "create_entities",
    "create_relations",
    "delete_entities",
    "delete_observations",
    "delete_relations",
    "open_nodes",
    "read_graph",
    "search_nodes",
];

/// Whether `member` names a file in which texts may be replaced.
pub(crate) fn names_edited(member: &str) -> bool {
    EDITED.contains(&member)
}

/// Whether `member` holds a text that is replaced, or put in its place.
pub(crate) fn is_replaced(member: &str) -> bool {
    REPLACED.contains(&member)
}

/// Whether `text` is an address of the web, which leads to no file of ours in any reading.
pub(crate) fn is_url(text: &str) -> bool {
    let begins = |scheme: &str| text.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    (begins("http://") || begins("https://")) && !text.contains("..")
}

/// Whether the tool `native` keeps what agents remember in a graph of its own, by names that are no files.
pub(crate) fn is_of_graph(native: &str) -> bool {
    native.rsplit("__").next().is_some_and(|tool| OF_GRAPH.contains(&tool))
}
