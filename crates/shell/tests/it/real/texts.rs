//! Texts from a seed, made of what shells read differently, and of what can go wrong.

/// Programs that have a recorder.
pub(super) const PROGRAMS: &[&str] = &[
    "rm",
    "ls",
    "mv",
    "cp",
    "git",
    "make",
    "tar",
    "find",
    "env",
    "sudo",
    "nohup",
    "timeout",
    "time",
    "xargs",
    "touch",
    "mkdir",
    "cat",
    "tee",
    "base64",
    "which",
    "mktemp",
    "grep",
    "sed",
    "[[",
    "declare",
    "typeset",
    "source",
    "pushd",
    "popd",
    "let",
    "shopt",
    "function",
    "select",
    "coproc",
    "builtin",
    "mapfile",
    "readarray",
    "enable",
    "x=1",
    "5",
    "{rm,ls}",
    "x+=rm",
    "-e",
    "-p",
    "-o",
    "x",
    "$rm",
    "a",
    "b",
    "f",
    "g",
    "history",
    "logout",
    "{fd}",
    "12",
    "]]",
    "compgen",
    "0",
];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("it is below a `usize`")
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }
}

/// The text of `seed`.
pub(super) fn generate(seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let lines = 1 + random.below(4);
    // What is not set at all is not known, and then there is little to compare.
    let mut text = random.one(&["", "x=ls y=a\n", "x=ls; y=b; ", "x=a\ny='a b'\n", "export x=rm y=c\n"]).to_owned();
    for _ in 0..lines {
        text.push_str(&list(&mut random, 0));
        text.push('\n');
    }
    text
}

fn list(random: &mut Random, depth: usize) -> String {
    let mut text = pipeline(random, depth);
    for _ in 0..random.below(3) {
        text.push_str(random.one(&["; ", " && ", " || ", " & ", "\n", "; "]));
        text.push_str(&pipeline(random, depth));
    }
    text
}

fn pipeline(random: &mut Random, depth: usize) -> String {
    let start = random.one(&["", "", "", "", "", "", "! ", "time ", "time -p "]);
    let mut text = format!("{start}{}", command(random, depth));
    if random.below(8) == 0 {
        text.push_str(random.one(&[" | ", " | ", " |& "]));
        text.push_str(&command(random, depth));
    }
    text
}

fn command(random: &mut Random, depth: usize) -> String {
    if depth > 2 {
        return simple(random);
    }
    let inner = depth + 1;
    match random.below(40) {
        0 => format!("({})", list(random, inner)),
        1 => format!("{{ {}; }}", list(random, inner)),
        2 => format!("if {}; then {}; else {}; fi", list(random, inner), list(random, inner), list(random, inner)),
        3 => format!("for x in {} {}; do {}; done", word(random), word(random), list(random, inner)),
        4 => format!("case {} in a) {};; *) {};; esac", word(random), list(random, inner), list(random, inner)),
        5 => format!("f() {{ {}; }}; f {}", list(random, inner), word(random)),
        6 => format!("(({}))", list(random, inner)),
        7 => format!("[[ {} {} {} ]]", word(random), random.one(&["==", "||", "&&", "<", ">", "-o"]), simple(random)),
        8 => format!("eval {}", quoted(&list(random, inner))),
        9 => format!("{} -c {}", random.one(&["sh", "bash", "dash"]), quoted(&list(random, inner))),
        10 => {
            format!("echo {} | {}", quoted(&list(random, inner)), random.one(&["sh", "bash", "dash", "cat", "sh -s"]))
        }
        11 => format!("while false; do {}; done", list(random, inner)),
        12 => format!("trap {} EXIT", quoted(&list(random, inner))),
        13 => format!("{} <<E\n{}\n$x\nE\n", random.one(&["sh", "bash", "cat"]), list(random, inner).replace('E', "")),
        14 => format!("until true; do {}; done", list(random, inner)),
        15 => format!("function g {{ {}; }}; g", list(random, inner)),
        16 => {
            format!("printf {} | sh", random.one(&["'rm %s\\n' a", "'\\162\\155 a'", "'\\x72m a'", "'%b' 'ls\\nrm b'"]))
        }
        _ => simple(random),
    }
}

fn simple(random: &mut Random) -> String {
    if random.below(40) == 0 {
        return calculated(random);
    }
    if random.below(60) == 0 {
        return written(random);
    }
    match random.below(32) {
        0 => format!("cd {}", random.one(&["a", "b", "..", "/", "-", "a/b", "/tmp", "$x", ".", "a && ls", "b || ls"])),
        1 => format!("{}={}", random.one(&["x", "y", "x", "IFS"]), word(random)),
        2 => format!("{}={} {}", random.one(&["x", "y"]), word(random), plain(random)),
        3 => format!("export {}={}", random.one(&["x", "y"]), word(random)),
        4 => format!("declare {}={}; $x {}", random.one(&["x", "y"]), word(random), word(random)),
        5 => random
            .one(&[
                "pushd a",
                "popd",
                "set -e",
                "set +e",
                "set -a",
                "unset x",
                "shift",
                "set -- rm a",
                "set -- ls 'a b'; \"$@\"",
                "set -- rm a; x=\"$@\"; $x",
                "set -- rm a; sh -c \"$*\"",
                "IFS=, x=a,rm; $x",
                "exit",
                "return",
            ])
            .to_owned(),
        6 => format!("{} &>/dev/null {}", plain(random), plain(random)),
        7 => format!(
            "{} {} {}",
            plain(random),
            random.one(&[">", ">>", "2>", "<", ">|", "<>", "12>", ">&", "2>&1 >"]),
            random.one(&["o", "/dev/null", "1", "a/o", "$y"])
        ),
        8 => format!("alias {}={}", random.one(&["ls", "rm", "e"]), quoted(&plain(random))),
        9 => format!("x+={}; $x {}", word(random), word(random)),
        10 => format!("time -o {} {}", word(random), plain(random)),
        11 => format!("printf -v x {}; $x a", random.one(&["rm", "ls", "%s rm"])),
        12 => format!("exec {}", random.one(&["ls a", "-a b rm c", "", "> o"])),
        13 => format!("command {}", plain(random)),
        14 => format!("read x{}", random.one(&["", " y", " <<< rm", " < o"])),
        15 => format!("local {}={}", random.one(&["x", "y"]), word(random)),
        _ => plain(random),
    }
}

/// What bash calculates, with a command in an index.
fn calculated(random: &mut Random) -> String {
    let command = plain(random).replace(['\'', '\n'], "");
    let index = format!("'c[$({command})]'");
    let form = random.one(&[
        "c=(1); unset -v @",
        "printf -v @ 1",
        "read @ <<< 1",
        "test -v @",
        "[ -v @ ] && ls",
        "[[ -v @ ]]",
        "let @=1",
        "declare @=1",
        "typeset -i n=@",
        "z=@; echo $((z))",
        "z=@; ((z)) || ls",
        "z=@; [[ z -eq 0 ]]",
        "[[ @ -gt 1 ]]",
        "z=@; : ${PWD:z}",
        "z=@; : ${!z}",
        "z=@; y=z; for ((;y;)); do break; done",
        "z=@; c[z]=1",
        "z=@; c=([z]=1)",
        "z=@; : ${c[z]}",
        "read z <<< @; echo $((z + 1))",
        "set -- @; echo $(($1))",
        "f() { echo $(($1)); }; f @",
        "RANDOM=@",
        ": & wait -n -p @",
        "compgen -W @",
        "declare -i n; for n in @; do :; done",
        "n=0; while [[ n -lt 2 ]]; do ((n++)); ls $n; done",
        "for n in 1 2; do echo $((n * 2)); rm $((n)); done",
        "declare -A k; z=@; k[$z]=1; ls \"${k[$z]}\"",
        "declare -a 'k=(@)'",
    ]);
    form.replace('@', &index)
}

/// A file that the text writes, and then runs in some way.
fn written(random: &mut Random) -> String {
    let body = quoted(&plain(random));
    let ways = [
        "sh ./s",
        ". ./s",
        "bash ./s",
        "sh < s",
        "cat s | sh",
        "for f in ./s*; do sh $f; done",
        "sh ./[s]",
        "exec sh ./s",
        "sh -s < s",
        "eval \"$(cat s)\"",
        "BASH_ENV=s bash -c ls",
        "ENV=./s sh -i",
        "HOME=. bash -i -c ls",
        "x=./s; sh $x",
        "(. ./s)",
        "sh ./s a b",
        "sh ./$((1 - 1))",
        "dash ./s | cat",
    ];
    let file = random.one(&["s", "s", "s", "./s", ".bashrc", "0", "s1"]);
    format!("echo {body} > {file}; {}", random.one(&ways))
}

fn plain(random: &mut Random) -> String {
    let program = match random.below(20) {
        0 => "$x".to_owned(),
        1 => word(random),
        2 => random
            .one(&[
                "r''m",
                "\\rm",
                "\"ls\"",
                "$'rm'",
                "$'\\x6cs'",
                "{rm,ls}",
                "${RANDOM:-rm}",
                "${x:-ls}",
                "$(echo rm)",
                "`echo ls`",
                "$y",
                "${x-rm}",
            ])
            .to_owned(),
        _ => random.one(&["rm", "ls", "mv", "git", "make", "cp", "touch", "rm", "rm"]).to_owned(),
    };
    let mut text = program;
    for _ in 0..random.below(4) {
        text.push(' ');
        text.push_str(&word(random));
    }
    text
}

fn word(random: &mut Random) -> String {
    match random.below(40) {
        0 => "$x".to_owned(),
        1 => "\"$x\"".to_owned(),
        2 => "'a b'".to_owned(),
        3 => random.one(&["$'a\\tb'", "$'it\\'s'", "$\"a\"", "$'rm'", "$[1+1]", "$((1+1))", "$'a'b"]).to_owned(),
        4 => random.one(&["{a,b}", "{1..3}", "a{b,c}", "{a", "{}", "x{,y}"]).to_owned(),
        5 => {
            random.one(&["${x:-a b}", "${x:+rm}", "${#x}", "${x%b}", "\"${x:-'a'}\"", "${x:=rm}", "${y-ls}"]).to_owned()
        }
        6 => format!("$({})", random.one(&["echo a", "echo rm", "ls", "echo 'a b'", "cd a && pwd", "printf 'a\\nb'"])),
        7 => format!("`{}`", random.one(&["echo a", "echo rm", "ls"])),
        8 => random
            .one(&["$RANDOM", "$?", "$#", "$SECONDS", "$UID", "\"$@\"", "\"$*\"", "$*", "$1", "$PWD", "$HOME", "~"])
            .to_owned(),
        9 => random.one(&["\\a", "a\\ b", "\"a\\$x\"", "'$x'", "\"\"", "''", "a#b", "#a", "\\\na"]).to_owned(),
        10 => random.one(&["-rf", "--", "-f", "-", "/", "..", "*", "a*", "[ab]", "a=b", "x=rm"]).to_owned(),
        11 => random.one(&["rm", "ls", "sh", "time", "[[", "!", "in", "do", "declare", "{", "}"]).to_owned(),
        _ => random.one(&["a", "b", "c", "o", "a/b", "./a", "1", "rm"]).to_owned(),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
