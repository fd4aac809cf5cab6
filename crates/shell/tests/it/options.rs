//! What options name.

use crate::facts;

#[test]
fn files_that_options_name_are_read() {
    let read = "/code/app/x.key".to_owned();
    for text in [
        "curl -b x.key http://u.test",
        "curl --cookie x.key http://u.test",
        "tar cT x.key",
        "tar -c --files-from=x.key",
        "pax -w x.key",
        "docker build --secret id=a,src=x.key .",
        "docker build --secret=source=x.key .",
        "docker cp x.key c:/x",
        "rsync --files-from x.key . d",
    ] {
        assert!(facts(text).reads.contains(&read), "{text}: {:?}", facts(text).reads);
    }
    // These are patterns, texts, or files on the other side.
    for text in [
        "tar cf x.tar --exclude x.key src",
        "rsync -a --exclude x.key src d",
        "curl -b a=x.key http://u.test",
        "docker cp c:x.key d",
        "docker build --secret id=x.key .",
    ] {
        assert!(!facts(text).reads.contains(&read), "{text}");
    }
}

#[test]
fn a_proxy_is_told_that_a_container_is_given() {
    for option in
        ["--build-arg http_proxy=http://u.test:1", "--env=HTTPS_PROXY=u.test:1", "-e http_proxy=http://u.test:1"]
    {
        assert_eq!(facts(&format!("docker build {option} .")).urls, ["http://u.test:1"], "{option}");
    }
    assert!(facts("docker build --build-arg VERSION=u.test .").urls.is_empty());
}

#[test]
fn names_in_a_list_of_the_texts_own_are_read() {
    let env = "/code/app/.env".to_owned();
    for text in ["tar cT <(echo .env)", "echo .env > list; tar cf x.tar -T list", "tar -cf- --files-from=<(echo .env)"]
    {
        assert!(facts(text).reads.contains(&env), "{text}: {:?}", facts(text).reads);
    }
    assert!(!facts("tar xT <(echo .env)").reads.contains(&env));
}

#[test]
fn what_git_ignores_is_hidden_and_a_pattern_is_no_file() {
    let hidden = |text: &str| facts(text).reads.iter().any(|path| path.ends_with("/.*"));
    for options in
        ["-oi --exclude-standard", "-o -i --exclude-standard -z", "--others --ignored --exclude-standard", "-o"]
    {
        assert!(hidden(&format!("git ls-files {options} | xargs cat")), "{options}");
    }
    assert!(!hidden("git ls-files -o --exclude-standard | xargs cat"));
    assert!(!hidden("git ls-files | xargs cat"));
    let env = "/code/app/.env".to_owned();
    assert!(!facts("git grep -n .env").reads.contains(&env));
    for text in ["git grep -n x .env", "git grep -e x .env", "git grep x -- .env"] {
        assert!(facts(text).reads.contains(&env), "{text}: {:?}", facts(text).reads);
    }
}

#[test]
fn a_search_of_common_files_shows_no_hidden_ones() {
    let hidden = |text: &str| facts(text).reads.iter().any(|path| path == "/code/app/**/.*");
    assert!(!hidden("grep -rn . --include='*.rs'"));
    for text in ["grep -rn .", "grep -rn . --include='*'", "grep -rn . --include='*.rs' --include='.e*'"] {
        assert!(hidden(text), "{text}");
    }
}

#[test]
fn a_tokenizer_is_no_token() {
    let environment = "/proc/self/environ".to_owned();
    for name in ["TOKENIZER_PATH", "TOKENIZERS_PARALLELISM"] {
        assert!(!facts(&format!("echo ${name}")).reads.contains(&environment), "{name}");
    }
    for name in ["TOKEN", "GITHUB_TOKEN", "TOKENIZER_TOKEN"] {
        assert!(facts(&format!("echo ${name}")).reads.contains(&environment), "{name}");
    }
}

#[test]
fn jobs_of_the_shell_are_its_own_to_end() {
    for text in ["kill $(jobs -p)", "kill $(jobs -pr)", "trap 'kill $(jobs -p)' EXIT", "jobs -p | xargs kill"] {
        assert_eq!(facts(text).unknown_why, "", "{text}");
    }
    for text in ["kill $(jobs)", "kill $(jobs -p; pgrep x)", "kill $(pgrep x)", "kill \"$(jobs -l)\""] {
        assert!(facts(text).unknown, "{text}");
    }
}

#[test]
fn a_text_in_one_word_with_its_option_is_run() {
    for text in [
        "script -qc'git push -f' /dev/null",
        "script -qc 'git push -f' /dev/null",
        "script -c'git push -f'",
        "script -aqc'git push -f' x",
        "script --comm='git push -f' x",
        "script --c 'git push -f' x",
        "sg root -c'git push -f'",
        "sg root 'git push -f'",
        "tmux -c'git push -f'",
        "tmux -2c'git push -f'",
        "su -c'git push -f'",
        "su -lc'git push -f' root",
        "su --comm='git push -f'",
        "su --session-command='git push -f'",
        "runuser -lc'git push -f' x",
        "hyperfine -w1 -p'git push -f' ls",
        "ansible all -a'git push -f'",
        "gnome-terminal -e'git push -f'",
        "nodemon -x'git push -f'",
        "git rebase -ix'git push -f' HEAD~2",
        "git grep -nO'git push -f' x",
        "git grep --open='git push -f' x",
        "git clone -qu'git push -f' /x y",
        "git clone -qu 'git push -f' /x y",
        "git fetch --upload-p='git push -f' x",
        "dpkg --pre-invoke='git push -f' -l",
        "svn diff --diff-cmd='git push -f'",
    ] {
        let facts = facts(text);
        let pushes = |argv: &[String]| argv.starts_with(&["git".into(), "push".into(), "-f".into()]);
        assert!(facts.commands.iter().any(|command| pushes(&command.argv)), "{text}: {facts:?}");
    }
}

#[test]
fn an_option_that_may_run_something_is_unknown() {
    for text in [
        "git --frobnicate HEAD push -f",
        "git --no-frob push",
        "git send-email --sendmail-cmd=x y",
        "git send-email --header-cmd x y",
        "git instaweb --httpd=x",
        "git svn fetch --authors-prog=./x",
        "git difftool -yx'x'",
        "git clone -ccore.sshCommand=\"$x\" x:y",
        "apt-get -o APT::Update::Pre-Invoke::=x update",
        "apt-get -oAPT::Update::Pre-Invoke::=x update",
        "apt-get -qqo APT::Update::Pre-Invoke::=x update",
        "apt-get -o Acquire::http::Proxy-Auto-Detect=./x update",
        "apt-get --config-f=x update",
        "rpm -E '%(x)'",
        "hg --config hooks.pre-status=x status",
    ] {
        assert!(facts(text).unknown, "{text}");
    }
    for text in [
        "git --attr-source HEAD log",
        "git --attr-source=HEAD --no-pager log",
        "git --version",
        "git -p --no-optional-locks status",
        "git grep -n -O x",
        "git rebase -i HEAD~2",
        "git clone -b main --depth 1 http://u.test/x y",
        "apt-get -y -o Dpkg::Options::=--force-confold update",
        "apt-get -qq -o Acquire::Retries=3 update",
        "script -qc 'ls -la' /dev/null",
        "watch -n1 -d ls",
        "hyperfine -w 3 -n 'my bench' 'ls'",
        "poetry run pytest -xvs",
        "rpm -qa",
        "hg status",
    ] {
        assert!(!facts(text).unknown, "{text}: {:?}", facts(text));
    }
}

#[test]
fn the_command_of_git_is_found_behind_options_that_take_a_word() {
    for text in
        ["git --attr-source HEAD push -f", "git --shallow-file x push -f", "git -C . --attr-source=HEAD push -f"]
    {
        let facts = facts(text);
        assert!(!facts.unknown && facts.commands.len() == 1, "{text}: {facts:?}");
    }
}

/// What a text writes, below the folder that it works in.
fn written(text: &str) -> String {
    let found = facts(text).writes;
    found.iter().map(|path| path.trim_start_matches("/code/app/")).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_put_into_a_folder_is_written_under_its_name() {
    for (text, writes) in [
        ("cp a/b c", "c c/b"),
        ("cp -vt c a/b x", "c c/b c/x"),
        ("mv --backup a/b c", "c c/b"),
        ("install -Dt c a", "c c/a"),
        ("rsync -a a/ c", "c"),
        ("rsync h:a/b c", "c c/b"),
        ("cp -r a/. c", "c"),
        ("git mv a/b c", "c c/b"),
        ("tar xfC a.tar c b/d", "c c/b/d c/d"),
        ("unzip -od c a.zip b", "c c/b"),
        ("7z x a.7z -oc b", "c c/b"),
        ("unzip -d c a.zip 'b/*'", "c c/b/[^.]*"),
        ("unzip -jd c a.zip 'b/*'", "c c/b/[^.]* c/*"),
        ("unzip -d c a.zip '*/b'", "c c/*/b c/b"),
        ("tar xf a.tar -C c --wildcards 'b/*'", "c c/b/[^.]*"),
        ("ln -sf $x c", "c"),
        ("ln -s \"a/$x\" c", "c"),
    ] {
        assert_eq!(written(text), writes, "{text}");
    }
}

#[test]
fn what_programs_write_that_no_table_tells_of_is_known() {
    for (text, writes) in [
        ("gunzip a/b.json.gz", "a/b.json.gz a/b.json"),
        ("gzip -dk b.json.gz", "b.json.gz b.json"),
        ("xz --decompress b.json.xz", "b.json.xz b.json"),
        ("zstd -d b.json.zst", "b.json.zst b.json"),
        ("unlz4 b.json.lz4", "b.json.lz4 b.json"),
        ("gunzip -N a/b.gz", "a/b.gz a a/b"),
        ("gunzip -c b.json.gz", ""),
        ("gzip b.json", "b.json"),
        ("rename x settings a/x.json", "a/settings.json"),
        ("rename 's/x/settings/' a/x.json", "a/settings.json"),
        ("rename 's/^.*$/settings.json/' a/x", "a/settings.json"),
        ("tcpdump -i lo -w a.pcap", "a.pcap"),
        ("logrotate -s a.state b.conf", "a.state"),
        ("setfattr -n user.x -v y a", "a"),
        ("dpkg -x a.deb b", "b"),
        ("dpkg -l a", ""),
        ("jar xf a.jar -C b", "b"),
        ("uv venv --python 3.12 b", "b"),
        ("sqlite3 'file:a.db?mode=rw' 'select 1'", "a.db"),
        ("sqlite3 'file:///code/app/a.db' 'select 1'", "a.db"),
    ] {
        assert_eq!(written(text), writes, "{text}");
    }
}

#[test]
fn code_of_perl_that_renames_is_not_known() {
    for (text, unknown) in [
        ("rename 's/x/y/' a", false),
        ("rename 's/^(.*)$/b.md/gi' a c", false),
        ("rename 'y/A-Z/a-z/' a b", false),
        ("rename foo bar a b", false),
        ("rename '$_ = \".x/settings.json\"' a", true),
        ("rename 's/x/\"y\"/e' a", true),
        ("rename 's/x/y/; s/y/z/' a", true),
        ("rename 's{x}{y}' a", true),
        ("prename 's/x/@{[unlink 1]}/' a", true),
        ("perl-rename 'system(1)' a b", true),
    ] {
        let facts = facts(text);
        assert_eq!(facts.unknown, unknown, "{text}: {}", facts.unknown_why);
    }
}

#[test]
fn zeros_before_a_number_of_a_range_stay() {
    for (text, expected) in [
        ("touch /t/{08..10}", &["/t/08", "/t/09", "/t/10"][..]),
        ("touch /t/{-1..01}", &["/t/-1", "/t/00", "/t/01"]),
        ("touch /t/{9..10}", &["/t/9", "/t/10"]),
        ("find -x /t -delete", &["/t"]),
        ("find -f /t -delete", &["/t"]),
    ] {
        let found = facts(text);
        let all: Vec<&String> = found.writes.iter().chain(&found.deletes).collect();
        assert!(expected.iter().all(|path| all.iter().any(|one| one == path)), "{text}: {all:?}");
    }
}

#[test]
fn a_command_behind_one_word_of_another_is_read() {
    for text in [
        "cmake -E chdir b rm x",
        "cmake -E env A=b rm b/x",
        "cmake -E rm -f b/x",
        "just --command rm b/x",
        "podman unshare rm b/x",
        "cargo watch -s 'rm b/x'",
    ] {
        assert!(facts(text).deletes.contains(&"/code/app/b/x".to_owned()), "{text}: {:?}", facts(text).deletes);
    }
    let copied = facts(r"find docs -type f -exec cp {} b \;").writes;
    assert!(copied.contains(&"/code/app/b/*".to_owned()), "{copied:?}");
}
