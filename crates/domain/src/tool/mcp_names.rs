//! The names under which hooks and models know the tools of MCP servers.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use crate::hex::hex;

/// Longest name of a tool, in bytes: what providers take.
pub const MAX_TOOL_NAME_BYTES: usize = 64;

/// Hexadecimal digits that tell cut and clashing names apart: among 512 tools, two alike are one in 30,000.
const MARK_DIGITS: usize = 8;

/// Our name for each of the tools `own` of `server`; none for an empty one and for the second of two that are the same.
///
/// Names that need no change are given first, so that a server cannot take the name of one of its tools away by
/// listing another before it.
pub fn mcp_tool_names(server: &str, own: &[&str]) -> Vec<Option<String>> {
    let mut named: Vec<Option<String>> = vec![None; own.len()];
    let (mut seen, mut taken) = (BTreeSet::new(), BTreeSet::new());
    let fresh: Vec<bool> = own.iter().map(|own| !own.is_empty() && seen.insert(*own)).collect();
    let plain = |own: &str| format!("mcp_{}_{own}", clean(server));
    for (at, own) in own.iter().enumerate().filter(|(at, own)| fresh[*at] && clean(own) == **own) {
        let name = plain(own);
        if name.len() <= MAX_TOOL_NAME_BYTES && taken.insert(name.clone()) {
            named[at] = Some(name);
        }
    }
    for (at, own) in own.iter().enumerate().filter(|(at, _)| fresh[*at]) {
        if named[at].is_none() {
            let name = plain(&clean(own));
            let candidates = [(name.len() <= MAX_TOOL_NAME_BYTES).then(|| name.clone()), Some(marked(&name, own))];
            named[at] = candidates.into_iter().flatten().find(|name| taken.insert(name.clone()));
        }
    }
    named
}

/// `text` with what providers do not take in a name replaced.
fn clean(text: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    text.chars().map(keep).collect()
}

/// `name`, cut if need be, with digits that only `own` has.
fn marked(name: &str, own: &str) -> String {
    let digits = hex(&Sha256::digest(own));
    // ASCII, since it is clean.
    let kept = name.len().min(MAX_TOOL_NAME_BYTES - MARK_DIGITS - 1);
    format!("{}_{}", &name[..kept], &digits[..MARK_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_clean_short_and_their_own() {
        let check = |own: &[&str]| {
            let names = mcp_tool_names("my.srv", own);
            let too_long = names.iter().flatten().find(|name| name.len() > MAX_TOOL_NAME_BYTES);
            assert_eq!(too_long, None);
            names.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>()
        };
        assert_eq!(check(&["read", "a/b", "größe"]), ["mcp_my_srv_read", "mcp_my_srv_a_b", "mcp_my_srv_gr__e"]);
        assert_eq!(
            check(&["a.b", "a_b", "a/b"]),
            ["mcp_my_srv_a_b_2e7336dc", "mcp_my_srv_a_b", "mcp_my_srv_a_b_c14cddc0"]
        );
        assert_eq!(check(&["x", "x", ""]), ["mcp_my_srv_x", "", ""]);
        let long = check(&[&"l".repeat(200), &"l".repeat(53), &"l".repeat(54), &format!("{}m", "l".repeat(199))]);
        assert_eq!(long[1], format!("mcp_my_srv_{}", "l".repeat(53)));
        assert_eq!(BTreeSet::from_iter(&long).len(), 4, "{long:?}");
    }
}
