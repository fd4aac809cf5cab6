//! The name that somebody probably meant.

/// The one of `among` that is nearest to `name`, if it is near enough for a typing mistake:
/// at most a third of the letters differ. Transposed letters count once, upper and lower case are the same.
pub fn nearest<'a>(name: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = (name.chars().count() / 3).max(1);
    among
        .into_iter()
        .map(|known| (edits(name, known), known))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= near)
        .map(|(_, known)| known)
}

/// Every one of `among` that no other is nearer to `name` than, however far.
pub fn closest<'a>(name: &str, among: &[&'a str]) -> Vec<&'a str> {
    let least = among.iter().map(|known| edits(name, known)).min();
    among.iter().filter(|known| Some(edits(name, known)) == least).copied().collect()
}

/// The number of letters that differ between two words. Transposed letters count once, upper and lower case are the
/// same.
pub fn edits(a: &str, b: &str) -> usize {
    strsim::osa_distance(&a.to_lowercase(), &b.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_mistake_is_near_and_another_word_is_not() {
        let known = ["timeout_ms", "command", "dir"];
        assert_eq!(nearest("timout_ms", known), Some("timeout_ms"));
        assert_eq!(nearest("COMMAND", known), Some("command"));
        assert_eq!(nearest("dri", known), Some("dir"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn the_closest_may_be_several() {
        assert_eq!(closest("approve", &["before_tool", "approve_tool"]), ["approve_tool"]);
        assert_eq!(closest("cd", &["ab", "cd", "ce"]), ["cd"]);
        assert_eq!(closest("x", &["ab", "cd"]), ["ab", "cd"]);
    }
}
