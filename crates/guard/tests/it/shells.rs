//! What hosts run through the shell of a person, whichever one that is.

use pintle_guard::{ClientEntry, EntryDaemon, HOSTS, panic_deny};

/// Folders that break what is not quoted well.
const HOSTILE: [&str; 6] = ["/plain", "/a b", "/o'neill's", "/back\\slash\\'s", "/$HOME/`x`", "/\\"];

/// Whether a backslash stands within single quotes of `text`: fish reads it there as an escape, others do not.
fn is_read_in_two_ways(text: &str) -> bool {
    let (mut is_quoted, mut chars) = (false, text.chars());
    while let Some(c) = chars.next() {
        match (c, is_quoted) {
            ('\'', _) => is_quoted = !is_quoted,
            ('\\', true) => return true,
            ('\\', false) => {
                chars.next();
            }
            _ => {}
        }
    }
    false
}

#[test]
fn fish_reads_every_entry_as_others_do() {
    for host in HOSTS {
        for folder in HOSTILE {
            let (program, key_file) = (format!("{folder}/pintle-hook"), format!("{folder}/guard.key"));
            let entry = ClientEntry {
                host: host.id,
                program: &program,
                daemon: EntryDaemon::Named { socket: folder, key_file: &key_file },
                timeout_s: 600,
                allows_away: false,
                events: None,
            };
            for row in host.events {
                let text = entry.shell_text(row.name, panic_deny(host.id, row.name));
                assert!(!is_read_in_two_ways(&text), "{}: {text}", host.id);
            }
        }
    }
    assert!(is_read_in_two_ways(r"sh -c 'it'\''s \'") && !is_read_in_two_ways(r"'it'\''s'\\"));
}
