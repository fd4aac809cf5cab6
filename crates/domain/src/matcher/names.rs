//! The names that a pattern means, where it means a few and nothing else.

use regex_syntax::hir::{Hir, HirKind, Look};

/// The most names that are compared one after the other.
const MAX_NAMES: usize = 32;

/// The names that `pattern` matches whole, such as those of `^(read|write)$`; `None` if it is of another kind.
pub(super) fn named_by(pattern: &str) -> Option<Box<[Box<str>]>> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let HirKind::Concat(parts) = hir.kind() else { return None };
    let [start, inner @ .., end] = parts.as_slice() else { return None };
    if !matches!((start.kind(), end.kind()), (HirKind::Look(Look::Start), HirKind::Look(Look::End))) {
        return None;
    }
    product(inner)?.into_iter().map(|name| String::from_utf8(name).ok().map(String::into_boxed_str)).collect()
}

/// The texts that `hir` stands for.
fn texts(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    match hir.kind() {
        HirKind::Empty => Some(vec![Vec::new()]),
        HirKind::Literal(literal) => Some(vec![literal.0.to_vec()]),
        HirKind::Capture(capture) => texts(&capture.sub),
        HirKind::Concat(parts) => product(parts),
        HirKind::Alternation(ways) => {
            let mut all = Vec::new();
            for way in ways {
                all.extend(texts(way)?);
            }
            (all.len() <= MAX_NAMES).then_some(all)
        }
        HirKind::Class(_) | HirKind::Look(_) | HirKind::Repetition(_) => None,
    }
}

/// The texts that `parts` stand for one after the other.
fn product(parts: &[Hir]) -> Option<Vec<Vec<u8>>> {
    let mut all = vec![Vec::new()];
    for part in parts {
        let next = texts(part)?;
        if all.len() * next.len() > MAX_NAMES {
            return None;
        }
        all = all.iter().flat_map(|text| next.iter().map(move |more| [text.as_slice(), more].concat())).collect();
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_few_names_are_seen_and_nothing_else() {
        let named = |pattern: &str| named_by(pattern).map(|names| names.join(" "));
        assert_eq!(named("^exec$").as_deref(), Some("exec"));
        assert_eq!(named("^(?:read|write|edit)$").as_deref(), Some("read write edit"));
        assert_eq!(named("^(exec|execute)$").as_deref(), Some("exec execute"));
        assert_eq!(named("^mcp_(aa|éé)_(x_|y_)z$").as_deref(), Some("mcp_aa_x_z mcp_aa_y_z mcp_éé_x_z mcp_éé_y_z"));
        assert_eq!(named("^$").as_deref(), Some(""));
        for other in ["exec", "^exec", "exec$", "^a|b$", "^exe.$", "^(?i)exec$", "^a?$", "(?m)^exec$", "^[", ""] {
            assert_eq!(named(other), None, "{other}");
        }
        let many = (0..=MAX_NAMES).map(|at| format!("name_{at}_")).collect::<Vec<_>>().join("|");
        assert_eq!(named(&format!("^({many})$")), None);
        assert_eq!(named(&format!("^{}$", "(aa|bb)".repeat(6))), None);
    }

    fn patterns() -> impl Strategy<Value = String> {
        const PIECES: &[&str] = &[
            "^", "$", "a", "b", "ab", "é", "(", ")", "(?:", "|", "(?i)", "[ab]", "?", "\\.", ".", "\\A", "\\z", "\\b",
        ];
        prop::collection::vec(prop::sample::select(PIECES), 0..8)
            .prop_flat_map(|pieces| prop::sample::select(vec![pieces.concat(), format!("^({})$", pieces.concat())]))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn they_are_what_the_expression_matches(pattern in patterns(), names in prop::collection::vec("[abé.A\n]{0,4}", 1..8)) {
            if let Some(named) = named_by(&pattern) {
                let expression = regex::Regex::new(&pattern).unwrap();
                for name in names.iter().map(String::as_str).chain(named.iter().map(|name| &**name)) {
                    let found = named.iter().any(|one| **one == *name);
                    prop_assert_eq!(found, expression.is_match(name), "{} {}", pattern, name);
                }
            }
        }
    }
}
