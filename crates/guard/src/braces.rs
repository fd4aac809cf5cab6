//! What braces in a path stand for.

use std::borrow::Cow;

/// How many paths the braces of one text stand for at most; one with more is kept as it is. No person writes as many.
const MAX_FORMS: usize = 64;

/// What stands for one digit, and how many letters a number of 64 bits has at most.
const DIGIT: &str = "[0-9]";
const MAX_DIGITS: usize = 20;

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

/// The paths that `path` of a shell text stands for, where it has braces: those of its lists and ranges, or patterns for those
/// of ranges. Braces that a shell leaves as they are, a program may take for a list, too.
pub(crate) fn of_shell(path: &str) -> Vec<Cow<'_, str>> {
    // Those of an expansion are no list.
    if !path.contains('{') || path.contains(['$', '`']) {
        return vec![path.into()];
    }
    let (mut done, mut open) = (Vec::new(), vec![path.to_owned()]);
    while let Some(one) = open.pop() {
        let left = MAX_FORMS.saturating_sub(done.len() + open.len());
        let listed = list(&one).filter(|(_, inside, _)| inside.split(',').count() <= left);
        let ranged = || range_of_numbers(&one).filter(|(_, numbers, _)| numbers.len() <= left);
        if let Some((before, inside, after)) = listed {
            open.extend(inside.split(',').map(|part| format!("{before}{part}{after}")));
        } else if let Some((before, numbers, after)) = ranged() {
            open.extend(numbers.iter().map(|number| format!("{before}{number}{after}")));
        } else {
            done.push(without_ranges(&one).into());
        }
    }
    done
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

/// What stands before the first range of numbers in `text`, what that stands for, and what stands behind it.
fn range_of_numbers(text: &str) -> Option<(&str, Vec<String>, &str)> {
    text.match_indices('{').find_map(|(at, _)| {
        let rest = &text[at + 1..];
        let (inside, after) = rest.split_at(rest.find(['{', '}'])?);
        Some((&text[..at], numbers(inside)?, after.strip_prefix('}')?))
    })
}

/// What the range of numbers `inside` braces stands for: each of them, or a pattern for each number of digits where they are
/// many or zeros stand before them. Steps leave some out.
fn numbers(inside: &str) -> Option<Vec<String>> {
    let (first, last) = ends(inside).filter(|(first, last)| is_number(first) && is_number(last))?;
    let longest = first.len().max(last.len());
    let is_padded = |text: &str| digits(text).len() > 1 && digits(text).starts_with('0');
    if let (Ok(first), Ok(last), false) =
        (first.parse::<i64>(), last.parse::<i64>(), is_padded(first) || is_padded(last))
        && first.abs_diff(last) < MAX_FORMS as u64
    {
        return Some((first.min(last)..=first.max(last)).map(|number| number.to_string()).collect());
    }
    let is_below = first.starts_with('-') || last.starts_with('-');
    let signs: &[&str] = if is_below { &["", "-"] } else { &[""] };
    let patterns =
        (1..=longest).flat_map(|count| signs.iter().map(move |sign| format!("{sign}{}", DIGIT.repeat(count))));
    (longest <= MAX_DIGITS).then(|| patterns.collect())
}

/// `text` with a pattern in the place of each range.
fn without_ranges(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        plain.push_str(before);
        let range = after.split_once('}').and_then(|(inside, behind)| Some((pattern(inside)?, behind)));
        rest = if let Some((pattern, behind)) = range {
            plain.push_str(pattern);
            behind
        } else {
            plain.push('{');
            after
        };
    }
    plain.push_str(rest);
    plain
}

/// The pattern for all that the range `inside` braces stands for, such as `1..3`.
fn pattern(inside: &str) -> Option<&'static str> {
    let (first, last) = ends(inside)?;
    let is_letter = |text: &str| text.len() == 1 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    if is_number(first) && is_number(last) {
        Some("[^.]*")
    } else {
        (is_letter(first) && is_letter(last)).then_some("?")
    }
}

/// The ends of the range `inside` braces.
fn ends(inside: &str) -> Option<(&str, &str)> {
    let (first, rest) = inside.split_once("..")?;
    let (last, step) = rest.split_once("..").unwrap_or((rest, "1"));
    is_number(step).then_some((first, last))
}

fn is_number(text: &str) -> bool {
    let digits = digits(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// `text` without its sign.
fn digits(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
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
            ("/w/a{1..3}.md", "/w/a1.md /w/a2.md /w/a3.md"),
            ("/w/a{+2..1}", "/w/a1 /w/a2"),
            ("/w/{b,c{3..4}}", "/w/b /w/b /w/c3 /w/c4"),
            ("/w/a{-1..1..2}", "/w/a-1 /w/a0 /w/a1"),
            ("/w/a{1..300}", "/w/a[0-9] /w/a[0-9][0-9] /w/a[0-9][0-9][0-9]"),
            ("/w/a{01..2}", "/w/a[0-9] /w/a[0-9][0-9]"),
            ("/w/.{a..z}laude", "/w/.?laude"),
            ("/w/{a}/{}/{a..3}", "/w/{a}/{}/{a..3}"),
            ("/w/{a{1..2}..c}", "/w/{a1..c} /w/{a2..c}"),
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
        let found = of_shell("/w/{1..60}/{1..60}");
        assert!(found.len() == 60 && found.contains(&"/w/7/[^.]*".into()), "{found:?}");
    }

    #[test]
    fn a_long_text_of_braces_is_read_once() {
        for text in ["}".repeat(4_000_000), format!("{{{}", "}".repeat(4_000_000))] {
            assert!(!has_list(&text));
        }
    }
}
