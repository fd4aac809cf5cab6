//! Texts that nobody wrote for reading: deep, long, broken, random.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use crate::facts;

/// Much longer than any text may take in a debug build; only what grows without end is caught by it.
const LONG: Duration = Duration::from_secs(20);

/// Reads `text` with a small stack, in bounded time, with bounded facts.
fn bounded(text: String) {
    let shown: String = text.chars().take(60).collect();
    let reader = std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
        let begin = Instant::now();
        let facts = facts(&text);
        (facts, begin.elapsed())
    });
    let (facts, took) = reader.expect("a thread").join().expect("no panic");
    assert!(took < LONG, "`{shown}…` took {took:?}");
    assert!(facts.commands.len() <= 1000, "`{shown}…`: {} commands", facts.commands.len());
    assert!(facts.commands.iter().all(|command| command.depth <= 20), "`{shown}…` is told too deep");
    for paths in [&facts.reads, &facts.writes, &facts.deletes, &facts.urls, &facts.outside] {
        assert!(paths.len() <= 1000, "`{shown}…`: {} paths", paths.len());
    }
    assert_eq!(facts.unknown, !facts.unknown_why.is_empty(), "`{shown}…`");
}

#[test]
fn deep_texts_end_and_are_unknown() {
    let deep = |open: &str, inner: &str, close: &str| format!("{}{inner}{}", open.repeat(3000), close.repeat(3000));
    for text in [
        deep("(", "ls", ")"),
        deep("( ", "ls", " )"),
        deep("{ ", "ls;", " };"),
        deep("$(", "ls", ")"),
        deep("echo \"$(", "ls", ")\""),
        deep("${x:-", "ls", "}"),
        deep("if ", "ls", "; then ls; fi"),
        deep("for x in a; do ", "ls", "; done"),
        deep("while ", "ls", "; do ls; done"),
        deep("case x in x) ", "ls", ";; esac"),
        deep("f() { ", "ls;", " };"),
        deep("<(", "ls", ")"),
        deep("a=(", "ls", ")"),
        deep("((", "1", "))"),
        deep("$((", "1", "))"),
        deep("(( $(", "1", ") ))"),
        deep("coproc ", "ls", ""),
        deep("sudo ", "ls", ""),
        deep("eval ", "ls", ""),
        deep("env ", "ls", ""),
        deep("command ", "ls", ""),
        deep("xargs ", "ls", ""),
        "(".repeat(60_000),
        "`".repeat(60_000),
        "$(".repeat(30_000),
        "if ".repeat(20_000),
        "\"$(".repeat(20_000),
        "((".repeat(30_000),
        ":(){ :|:& };:".to_owned(),
        "f() { f; }; f".to_owned(),
        "x='eval \"$x\"'; eval \"$x\"".to_owned(),
        "alias a='a a'; a".to_owned(),
    ] {
        let facts = std::thread::Builder::new().stack_size(1 << 20).spawn({
            let text = text.clone();
            move || facts(&text)
        });
        let facts = facts.expect("a thread").join().expect("no panic");
        // Arithmetic runs nothing however deep it is, and an alias stands for itself once.
        let plain = ["coproc", "alias", "``", "((1", "((((", "$(((("].iter().any(|begin| text.starts_with(begin))
            && !text.ends_with('(');
        assert!(facts.unknown || plain, "{}", text.chars().take(40).collect::<String>());
        bounded(text);
    }
}

#[test]
fn long_texts_end() {
    for text in [
        "echo hi;\n".repeat(7000),
        format!("echo {}", "a ".repeat(32_000)),
        format!("echo {}", "{a,b}".repeat(40)),
        format!("echo {{1..{}}}", i64::MAX),
        "echo {a..z}{a..z}{a..z}{a..z}".to_owned(),
        "{".repeat(60_000),
        "{,".repeat(30_000),
        "cat <<E\nfoo\nE\n".repeat(4000),
        "cat <<A <<B <<C\n".repeat(3000),
        format!("x=a; {} echo $x", "x=$x$x; ".repeat(60)),
        format!("x=(a b); {} rm \"${{x[@]}}\"", "x+=(\"${x[@]}\"); ".repeat(60)),
        (0..9000).map(|number| format!("v{number}=1;")).collect(),
        (0..2000).map(|number| format!("v{number}=1;(:);")).collect(),
        format!("{}ls{}", "for i in 1 2 3 4 5 6 7 8 9; do ".repeat(10), "; done".repeat(10)),
        format!("{}x=$y; y=$z; z=$x{}", "while a; do ".repeat(10), "; done".repeat(10)),
        format!(
            "{}f0",
            (1..20)
                .map(|number| format!("f{}() {{ f{number}; f{number}; f{number}; }};", number - 1))
                .collect::<String>()
        ),
        "ln -s a a/b; ln -s a/b a; cat a/b/c".to_owned(),
        "ln -s /x/y x; ln -s /code/app/x /x; rm x/1".to_owned(),
        format!("echo {} | sh", "x".repeat(60_000)),
        "a | ".repeat(10_000) + "b",
        "a && ".repeat(10_000) + "b",
        "rm /x; ".repeat(8000),
        (0..5000).map(|number| format!("rm {number};")).collect(),
        format!("python3 -c '{}'", "f\"{x}\" ".repeat(5000)),
        format!("awk '{}'", "{ print > \"x\" }".repeat(3000)),
        format!("sed '{}'", "s/a/b/;".repeat(8000)),
        format!("perl -e '{}'", "$x{$y} ".repeat(8000)),
        format!("env -S \"{}\"", "-S ".repeat(8000)),
        "x".repeat(70_000),
    ] {
        bounded(text);
    }
}

#[test]
fn what_is_too_long_is_unknown() {
    let facts = facts(&"# a comment\n".repeat(10_000));
    assert!(facts.unknown);
    assert_eq!(facts.unknown_why, "the shell text is longer than 65536 bytes");
    assert!(facts.commands.is_empty());
}

/// Texts to be broken in all ways.
const SEEDS: &str = concat!(include_str!("../corpus/harmless.txt"), include_str!("../corpus/ways_round.txt"));

fn seeds() -> Vec<&'static str> {
    SEEDS.split("\n---\n").collect()
}

/// Every text is cut after each of its words, so each option is the last word once.
#[test]
fn an_option_may_miss_its_value() {
    for seed in seeds() {
        let words: Vec<&str> = seed.split_whitespace().collect();
        for end in 1..=words.len() {
            bounded(words[..end].join(" "));
        }
    }
    for text in
        ["sudo -u", "sudo -u -g", "env -u", "timeout -s", "xargs -I", "nice -n", "flock -w", "ssh -o", "bash -O"]
    {
        bounded(text.to_owned());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_letters_are_read(text in "\\PC{0,200}") {
        bounded(text);
    }

    #[test]
    fn random_signs_are_read(text in "[-a-c $(){}\\[\\]<>|&;'\"`\\\\\n=!#*?~/,.@:%^+0-9]{0,300}") {
        bounded(text);
    }

    #[test]
    fn random_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        bounded(String::from_utf8_lossy(&bytes).into_owned());
    }

    #[test]
    fn broken_commands_are_read(one in any::<prop::sample::Index>(), two in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), sign in "[$(){}<>|&;'\"`\\\\\n=]{0,3}", cut in any::<bool>()) {
        let seeds = seeds();
        let (first, second) = (seeds[one.index(seeds.len())], seeds[two.index(seeds.len())]);
        let (head, tail) = first.split_at(first.floor_char_boundary(at.index(first.len() + 1)));
        bounded(format!("{head}{sign}{}", if cut { second } else { tail }));
    }
}
