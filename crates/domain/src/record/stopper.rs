//! The hook that stopped what an event was about.

use crate::approval::is_refused_by_person;
use crate::reason::VerdictKind;

/// The place of the hook that stopped an event whose ruling has this `text`, among the `words` of its hooks in running
/// order: the first that refused. Where none did, it is the first that asked, because an ask that nobody answers is
/// refused; but what a person refused, no hook stopped.
pub fn stopper(words: impl IntoIterator<Item = Option<VerdictKind>>, text: Option<&str>) -> Option<usize> {
    let mut asked = None;
    for (at, word) in words.into_iter().enumerate() {
        if word.is_some_and(VerdictKind::refuses) {
            return Some(at);
        }
        if word == Some(VerdictKind::Ask) && asked.is_none() {
            asked = Some(at);
        }
    }
    asked.filter(|_| !text.is_some_and(is_refused_by_person))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::refusal;

    #[test]
    fn an_ask_that_nobody_answered_stopped_it_and_one_that_a_person_refused_did_not() {
        use VerdictKind::{AbortTurn, Ask, Continue, Deny, HardAbort};
        let person = refusal(Some("anna"), "use a branch");
        for (words, text, expected) in [
            (vec![], None, None),
            (vec![None, Some(Continue)], Some("why"), None),
            (vec![None, Some(Continue), Some(Deny), Some(HardAbort)], Some("why"), Some(2)),
            (vec![Some(Ask), Some(AbortTurn)], Some("why"), Some(1)),
            (vec![None, Some(Ask), Some(Ask)], None, Some(1)),
            (vec![None, Some(Ask)], Some("Tool execution refused: nobody answered within 4 s"), Some(1)),
            (vec![Some(Ask)], Some(person.as_str()), None),
            (vec![Some(Ask), Some(Deny)], Some(person.as_str()), Some(1)),
        ] {
            assert_eq!(stopper(words.clone(), text), expected, "{words:?} {text:?}");
        }
    }
}
