//! Characters of which nothing is seen or that turn the direction of reading: one list, and what of it stays where.
//!
//! A name keeps none of them, a text and a line those that languages and emoji need. Control characters are no part of
//! it: which of them may stay is for each place to say.

use std::ops::RangeInclusive;

/// Unicode's property `Default_Ignorable_Code_Point`, with all of `Bidi_Control`: nothing is shown where a font does
/// not know them. Source: `DerivedCoreProperties.txt`, Unicode 16.
const DEFAULT_IGNORABLE: [RangeInclusive<char>; 17] = [
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{202a}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fff8}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

/// Whether nothing is seen of `c`, or it turns the direction of reading. For names and marks, which need none of
/// them: two that differ only in these look the same.
pub fn is_unseen(c: char) -> bool {
    // Besides the property: the separators of lines and paragraphs, the marks of annotations, the empty braille pattern.
    let is_beside = matches!(c, '\u{2028}' | '\u{2029}' | '\u{2800}' | '\u{fff9}'..='\u{fffb}');
    !c.is_ascii() && (is_beside || DEFAULT_IGNORABLE.iter().any(|range| range.contains(&c)))
}

/// The same in a text for a model. What scripts and emoji need stays: the joiners, the variation selectors of Mongolian
/// and of emoji, the empty braille pattern. The other variation selectors do not: whole texts are hidden in them.
pub fn is_unseen_in_text(c: char) -> bool {
    let is_needed = matches!(c, '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{200c}' | '\u{200d}' | '\u{2800}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}');
    is_unseen(c) && !is_needed
}

/// The same in a name or a line that a person reads in any language. The marks of direction stay as well, which only
/// concern the letters beside them, and the fillers, which [take room](is_blank).
pub fn is_unseen_in_line(c: char) -> bool {
    let is_mark = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}');
    is_unseen_in_text(c) && !is_mark && !is_blank(c)
}

/// Whether `c` shows what follows in another order: the embeddings, overrides and isolates of `Bidi_Control`, without
/// its marks of direction.
pub fn turns_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether `c` takes room in which nothing is seen: the fillers of Hangul and the empty braille pattern.
pub fn is_blank(c: char) -> bool {
    matches!(c, '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}')
}

#[cfg(test)]
mod tests {
    use regex_syntax::hir::{Class, HirKind};

    use super::*;

    /// The characters that have `property`, by Unicode's own tables.
    fn having(property: &str) -> Vec<RangeInclusive<char>> {
        let hir = regex_syntax::parse(&format!(r"\p{{{property}}}")).unwrap();
        let HirKind::Class(Class::Unicode(class)) = hir.kind() else { panic!("{property} is no class") };
        class.ranges().iter().map(|range| range.start()..=range.end()).collect()
    }

    #[test]
    fn the_list_is_that_of_unicode() {
        assert_eq!(having("Default_Ignorable_Code_Point"), DEFAULT_IGNORABLE);
        let bidi: Vec<char> = having("Bidi_Control").into_iter().flatten().collect();
        assert!(bidi.iter().all(|c| is_unseen(*c) && is_unseen_in_text(*c)), "{bidi:?}");
        let marks: Vec<char> = bidi.into_iter().filter(|c| !turns_direction(*c)).collect();
        assert_eq!(marks, ['\u{61c}', '\u{200e}', '\u{200f}']);
    }

    #[test]
    fn a_name_keeps_none_of_them_and_a_text_and_a_line_what_languages_need() {
        let (seen, name, text, line) =
            ([false, false, false], [true, false, false], [true, true, false], [true, true, true]);
        for (characters, expected) in [
            ("a ß\u{301}あ👩\u{3000}\u{a0}\n\u{7f}", seen),
            ("\u{180b}\u{180f}\u{200c}\u{200d}\u{2800}\u{fe00}\u{fe0f}", name),
            ("\u{61c}\u{115f}\u{1160}\u{200e}\u{200f}\u{3164}\u{ffa0}", text),
            ("\u{ad}\u{34f}\u{17b4}\u{180e}\u{200b}\u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2066}\u{206f}", line),
            ("\u{feff}\u{fff0}\u{fff9}\u{fffb}\u{1bca0}\u{1d17a}\u{e0001}\u{e0041}\u{e0100}\u{e01ef}\u{e0fff}", line),
        ] {
            for c in characters.chars() {
                let found = [is_unseen(c), is_unseen_in_text(c), is_unseen_in_line(c)];
                assert_eq!(found, expected, "{}", c.escape_unicode());
            }
        }
    }
}
