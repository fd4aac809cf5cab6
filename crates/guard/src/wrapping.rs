//! Our script where a host takes one executable for an event and somebody else's stands there already: ours is asked
//! first, and theirs runs behind it.
//!
//! Where ours refuses, theirs is never started. Where ours objects to nothing, the host hears what theirs says, but for
//! other arguments: the guard has not seen those. Where ours changes something, theirs can still refuse.

use crate::host::{ClientEntry, MARGIN_S};
use crate::shell_text::{SCRIPT, joined, quoted, starts_client, words};

/// Half of what the host gives is ours, and a bit less is theirs: a host that waits in vain lets the call run.
const THEIRS_S: &str = "50";

/// The client is asked as in our other scripts: a tab behind its output says that it ended well.
const ASK: &str = concat!(
    "trap \"\" 1 2 3 10 12 13 14 15;in=\"$(cat;printf .)\";",
    "ours=\"$(printf %s \"${in%.}\"|\"$@\"&&printf \"\t\")\";",
    "case \"$ours\" in *\"\t\")ours=\"${ours%?}\";;*)ours="
);

/// Behind our refusal.
const REFUSED: &str = concat!(
    ";;esac;case \"$ours\" in '{\"cancel\":true'*)printf %s \"$ours\";exit;;esac;",
    "if command -v timeout >/dev/null;then theirs=\"$(printf %s \"${in%.}\"|timeout -k 1 50 "
);

/// Between the two ways in which theirs is started.
const OR: &str = ")\";else theirs=\"$(printf %s \"${in%.}\"|";

/// Behind theirs.
const SAID: &str = concat!(
    ")\";fi;flat=\"$(printf %s \"$theirs\"|tr -d \"[:space:]\")\";case \"$ours\" in \"\"|\"{}\")case \"$flat\" in ",
    "*'\"overrideInput\":'*)printf %s '{\"cancel\":true,\"errorMessage\":\"another hook changed the arguments after the guard ",
    "of Pintle saw them, so this call is refused.\"}';;\"\")printf %s \"$ours\";;*)printf %s \"$theirs\";;esac;;",
    "*)case \"$flat\" in *'\"cancel\":true'*)printf %s '{\"cancel\":true,\"errorMessage\":\"another hook refused this.\"}';;",
    "*)printf %s \"$ours\";;esac;;esac"
);

impl ClientEntry<'_> {
    /// What the host executes at `event`, where `theirs` is somebody else's executable; `deny` is the refusal there.
    pub(crate) fn wrapping(&self, event: &str, (deny, theirs): (&str, &str)) -> String {
        let half = ClientEntry { timeout_s: self.timeout_s / 2 + MARGIN_S, ..*self };
        let own = std::iter::once(self.program.to_owned()).chain(half.arguments(event)).collect::<Vec<_>>();
        let (own, deny, theirs) = (joined(&own), quoted(deny), quoted(theirs));
        debug_assert!(REFUSED.contains(THEIRS_S), "theirs has its time");
        format!("{SCRIPT}set -- {own}\n{ASK}{deny}{REFUSED}{theirs}{OR}{theirs}{SAID}\n")
    }
}

/// Whose executable `text` runs behind ours, if it is such a script of ours.
pub(crate) fn wrapped(text: &str) -> Option<String> {
    let (own, rest) = text.strip_prefix(SCRIPT)?.strip_prefix("set -- ")?.split_once('\n')?;
    let own = words(own)?;
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let (deny, rest) = rest.strip_suffix('\n')?.strip_prefix(ASK)?.split_once(REFUSED)?;
    let (theirs, again) = rest.strip_suffix(SAID)?.split_once(OR)?;
    let is_whole = starts_client(&own) && theirs == again && words(deny)?.len() == 1;
    words(theirs).filter(|words| is_whole && words.len() == 1)?.pop()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::host::EntryDaemon;

    const DENY: &str = r#"{"cancel":true,"errorMessage":"it's nobody"}"#;

    fn entry(program: &str) -> ClientEntry<'_> {
        let daemon = EntryDaemon::Named { socket: "/s o", key_file: "/k" };
        ClientEntry { host: "cline", program, daemon, timeout_s: 120, allows_away: false, events: None }
    }

    fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
        let file = folder.join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    /// What the host hears where ours and theirs say so, each with how it ends, and whether theirs was started.
    fn heard(ours: (&str, u8), theirs: &str) -> (String, bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let (ran, said) = (path.join("ran"), path.join("said"));
        let client = format!("#!/bin/sh\ncat >{}\nprintf %s '{}'\nexit {}\n", said.display(), ours.0, ours.1);
        let client = script(path, "pintle-hook", &client);
        let text = format!("#!/bin/sh\nprintf x >{}\ncat >/dev/null\nprintf '%s\\n' '{theirs}'\n", ran.display());
        let theirs = script(path, "Pre o'Tool", &text);
        let whole = entry(client.to_str().unwrap()).wrapping("PreToolUse", (DENY, theirs.to_str().unwrap()));
        assert_eq!(wrapped(&whole).as_deref(), theirs.to_str());
        let hook = script(path, "PreToolUse", &whole);
        let mut child = Command::new(hook).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"{\"a\": \"b\"}\n").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(fs::read_to_string(said).unwrap(), "{\"a\": \"b\"}\n", "the client hears every byte");
        (String::from_utf8(output.stdout).unwrap().trim_end().to_owned(), ran.exists())
    }

    #[test]
    fn whoever_refuses_is_heard() {
        const OURS: &str = r#"{"cancel":true,"errorMessage":"no"}"#;
        const CHANGED: &str = r#"{"overrideInput":{"a":1}}"#;
        for (ours, theirs, expected, runs) in [
            ((OURS, 0), "{}", OURS, false),
            (("", 1), r#"{"context":"x"}"#, DENY, false),
            (("{", 9), "{}", DENY, false),
            (("{}", 0), r#"{ "cancel" : true }"#, r#"{ "cancel" : true }"#, true),
            (("{}", 0), r#"{"context":"x"}"#, r#"{"context":"x"}"#, true),
            (("{}", 0), "", "{}", true),
            (("", 0), "", "", true),
            ((CHANGED, 0), r#"{"context":"true"}"#, CHANGED, true),
        ] {
            assert_eq!(heard(ours, theirs), (expected.to_owned(), runs), "{ours:?} {theirs}");
        }
        for (ours, theirs) in [("{}", r#"{"overrideInput": {}}"#), (CHANGED, r#"{"cancel": true}"#)] {
            let (said, _) = heard((ours, 0), theirs);
            assert!(said.starts_with(r#"{"cancel":true,"errorMessage":"another hook"#), "{said}");
        }
    }

    #[test]
    fn only_a_whole_script_of_ours_is_one() {
        let whole = entry("/p/pintle-hook").wrapping("PreToolUse", (DENY, "/theirs"));
        assert_eq!(wrapped(&whole).as_deref(), Some("/theirs"));
        assert!(whole.contains("60000"), "half of the time: {whole}");
        for other in [whole.replacen("/theirs", "/other", 1), whole.replace("pintle-hook", "hook"), format!("{whole}x")]
        {
            assert_eq!(wrapped(&other), None, "{other}");
        }
        assert_eq!(wrapped(&entry("/p/pintle-hook").script("PreToolUse", DENY)), None);
    }
}
