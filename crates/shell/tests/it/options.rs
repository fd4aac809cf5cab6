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
