//! What a host keeps of the hooks that somebody accepted: the tables `[hooks.state."KEY"]` of a TOML file, which the host
//! writes by itself.

use pintle_domain::json::Value;

use super::KeptFile;
use super::others::NotEdited;
use super::toml_block;

/// Where they stand.
const STATE: [&str; 2] = ["hooks", "state"];

/// `current` without what came in between the two texts of `kept`, where that stands as the host writes it.
///
/// # Errors
/// A text cannot be read.
pub fn forget(current: &str, kept: &KeptFile) -> Result<String, NotEdited> {
    if current == kept.after {
        return Ok(kept.before.clone().unwrap_or_default());
    }
    let before = names(kept.before.as_deref().unwrap_or_default())?;
    let ours: Vec<String> = names(&kept.after)?.into_iter().filter(|name| !before.contains(name)).collect();
    let mut text = current.to_owned();
    for name in &ours {
        text = without(&text, &format!("[hooks.state.{}]", Value::from(name.as_str())));
    }
    let is_empty = names(&text)?.is_empty() && !has_table(kept.before.as_deref().unwrap_or_default());
    Ok(if is_empty { without(&text, "[hooks.state]") } else { text })
}

fn names(text: &str) -> Result<Vec<String>, NotEdited> {
    let state = toml_block::at(text, &STATE)?;
    let members = state.as_ref().and_then(Value::as_object);
    Ok(members.map(|members| members.iter().map(|(name, _)| name.clone()).collect()).unwrap_or_default())
}

fn has_table(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "[hooks.state]")
}

/// `text` without the table under the line `header`, and without the blank lines before it.
fn without(text: &str, header: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        let said = line.trim();
        if said == header {
            inside = true;
            while kept.last().is_some_and(|last| last.trim().is_empty()) {
                kept.pop();
            }
            continue;
        }
        if inside && said.starts_with('[') {
            inside = false;
            // What follows stays apart from what is before it.
            if !kept.is_empty() {
                kept.push(if line.ends_with("\r\n") { "\r\n" } else { "\n" });
            }
        }
        if !inside {
            kept.push(line);
        }
    }
    kept.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "# mine\nmodel = \"m\"\n\n[tui]\ntheme = \"x\" # odd\n";
    const STATES: &str = "\n[hooks.state]\n\n[hooks.state.\"/h/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:1\"\n";

    fn kept(before: &str) -> KeptFile {
        KeptFile { before: Some(before.to_owned()), after: format!("{before}{STATES}") }
    }

    #[test]
    fn what_was_accepted_is_forgotten() {
        for more in ["", "\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n"] {
            let current = format!("{OLD}{STATES}{more}");
            assert_eq!(forget(&current, &kept(OLD)).unwrap(), format!("{OLD}{more}"));
        }
        assert_eq!(forget(STATES, &kept("")).unwrap(), "");
    }

    #[test]
    fn what_others_accepted_stays() {
        let theirs =
            format!("{OLD}\n[hooks.state]\n\n[hooks.state.\"/h/hooks.json:stop:1:0\"]\ntrusted_hash = \"2\"\n");
        let ours = "\n[hooks.state.\"/h/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:1\"\n";
        let kept = KeptFile { before: Some(theirs.clone()), after: format!("{theirs}{ours}") };
        let more = "\n[x]\ny = 1\n";
        assert_eq!(forget(&format!("{theirs}{ours}{more}"), &kept).unwrap(), format!("{theirs}{more}"));
    }

    #[test]
    fn a_text_that_cannot_be_read_is_left() {
        assert!(forget("= [", &kept(OLD)).is_err());
    }
}
