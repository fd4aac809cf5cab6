//! What braces in a path stand for.

use std::borrow::Cow;

/// How many paths the braces of one text stand for at most; one with more is kept as it is. No person writes as many.
const MAX_FORMS: usize = 64;

/// All that the lists in `text` stand for, such as `{a,b}`; where that would be too much, with braces left.
pub(crate) fn listed(text: &str) -> Vec<String> {
    let (mut done, mut open) = (Vec::new(), vec![text.to_owned()]);
    while let Some(one) = open.pop() {
        match list(&one) {
            Some((before, inside, after)) if done.len() + open.len() + inside.split(',').count() <= MAX_FORMS => {
                open.extend(inside.split(',').map(|part| format!("{before}{part}{after}")));
            }
            Some(_) | None => done.push(one),
        }
    }
    done
}

/// The paths that `path` of a shell text stands for, where it has braces: those of its lists, and a sign for each range.
/// Braces that a shell leaves as they are, a program may take for a list, too.
pub(crate) fn of_shell(path: &str) -> Vec<Cow<'_, str>> {
    // Those of an expansion are no list.
    if !path.contains('{') || path.contains(['$', '`']) {
        return vec![path.into()];
    }
    listed(path).iter().map(|one| without_ranges(one).into()).collect()
}

/// Whether `path` has braces that stand for more paths than are looked at.
pub(crate) fn has_list(path: &str) -> bool {
    list(path).is_some()
}

/// What stands before, in and behind the innermost braces of `text` that stand for more than one text.
fn list(text: &str) -> Option<(&str, &str, &str)> {
    let (mut start, mut is_list) = (None, false);
    for (at, letter) in text.match_indices(['{', ',', '}']) {
        match (letter, start) {
            ("{", _) => (start, is_list) = (Some(at), false),
            (",", _) => is_list = true,
            (_, Some(begin)) if is_list => return Some((&text[..begin], &text[begin + 1..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}

/// `text` with a sign in the place of each range: a digit for numbers, of which no name of ours has any, and `?` for letters.
fn without_ranges(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        plain.push_str(before);
        let range = after.split_once('}').and_then(|(inside, behind)| Some((sign(inside)?, behind)));
        rest = if let Some((sign, behind)) = range {
            plain.push(sign);
            behind
        } else {
            plain.push('{');
            after
        };
    }
    plain.push_str(rest);
    plain
}

/// What stands for the range that is `inside` braces, such as `1..3`.
fn sign(inside: &str) -> Option<char> {
    let (first, rest) = inside.split_once("..")?;
    let (last, step) = rest.split_once("..").unwrap_or((rest, "1"));
    let is_number = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_letter = |text: &str| text.len() == 1 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    if !is_number(step) {
        None
    } else if is_number(first) && is_number(last) {
        Some('0')
    } else {
        (is_letter(first) && is_letter(last)).then_some('?')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_of_a_shell_are_all_that_they_stand_for() {
        for (path, expected) in [
            ("/w/a", "/w/a"),
            ("/w/{a,b}/{d,e}", "/w/a/d /w/a/e /w/b/d /w/b/e"),
            ("/w/{a,b}{1,2}.txt", "/w/a1.txt /w/a2.txt /w/b1.txt /w/b2.txt"),
            ("/w/.{x,{claude,y}}", "/w/.claude /w/.x /w/.x /w/.y"),
            ("/w/*.{ts,tsx}", "/w/*.ts /w/*.tsx"),
            ("/w/a{1..3}.md", "/w/a0.md"),
            ("/w/a{-1..9..2}", "/w/a0"),
            ("/w/.{a..z}laude", "/w/.?laude"),
            ("/w/{a}/{}/{a..3}", "/w/{a}/{}/{a..3}"),
            ("/w/{a{1..2}..c}", "/w/{a0..c}"),
            ("/w/${x}{a,b}", "/w/${x}{a,b}"),
            ("/w/{a", "/w/{a"),
        ] {
            let mut found = of_shell(path);
            found.sort();
            assert_eq!(found.join(" "), expected, "{path}");
        }
        let many = format!("/w/{}", "{a,b}".repeat(20));
        let found = of_shell(&many);
        assert!(found.len() <= MAX_FORMS && found.iter().any(|one| one.contains('{')), "{}", found.len());
    }

    #[test]
    fn a_long_text_of_braces_is_read_once() {
        for text in ["}".repeat(4_000_000), format!("{{{}", "}".repeat(4_000_000))] {
            assert!(!has_list(&text));
        }
    }
}
