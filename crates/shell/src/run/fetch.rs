//! Programs that talk to other machines.

use crate::programs::Fetches;
use crate::read::{Content, List, Reading};
use crate::run::Run;
use crate::state::{Certainty, Field, Output, State};

/// Options of curl that take the next word.
const CURL: &str = "-o --output -d --data --data-raw --data-binary --data-urlencode --data-ascii -H --header -X --request -u --user -A --user-agent \
    -e --referer -b --cookie -c --cookie-jar -F --form --form-string -T --upload-file -x --proxy -m --max-time --connect-timeout --retry \
    --retry-delay --retry-max-time -w --write-out -K --config -D --dump-header --cacert --capath -E --cert --key -r --range -C --continue-at --resolve \
    --limit-rate -z --time-cond --url --output-dir --json --interface --dns-servers --ciphers -Y -y -t --telnet-option -Q --quote --trace --trace-ascii \
    --stderr --netrc-file --unix-socket --abstract-unix-socket --max-filesize --max-redirs --proto --proto-redir --tls-max --noproxy --socks5 \
    --preproxy -P --ftp-port --mail-from --mail-rcpt --oauth2-bearer --aws-sigv4 --hsts --alt-svc --etag-save --etag-compare --libcurl --engine --connect-to --socks4 --socks4a --socks5-hostname --proxy1.0 --doh-url --variable --ssl-sessions --proxy-user --proxy-cacert --proxy-cert --proxy-key --haproxy-clientip --ip-tos --vlan-priority --url-query --trace-config --dns-interface --rate --retry-max-time --keepalive-time --speed-time --speed-limit --happy-eyeballs-timeout-ms --expect100-timeout --pass --key-type --cert-type --crlfile --pinnedpubkey --service-name --delegation --login-options --sasl-authzid";

/// Options with which somebody else says how the files are called that `wget` writes.
const NAMED_ELSEWHERE: &[&str] = &[
    "-i",
    "--input-file",
    "-r",
    "--recursive",
    "-m",
    "--mirror",
    "-p",
    "--page-requisites",
    "--content-disposition",
    "--trust-server-names",
];

impl Reading<'_> {
    pub(super) fn fetching(&mut self, run: &Run<'_>, fetches: Fetches, state: &mut State) -> Output {
        match fetches {
            Fetches::Curl => self.curl(run, state),
            Fetches::Wget => self.wget(run, state),
            Fetches::Remote => self.remote(run, state),
        }
        Output::Unknown
    }

    fn urls(&mut self, operands: &[Field], bare: bool) {
        for field in operands {
            if !field.is_known() {
                self.unknown(format!("which URL `{}` is cannot be known", field.text));
            } else if let Some(file) = file_of(&field.text) {
                self.note(List::Reads, &crate::paths::resolve(&file, Some("/")).unwrap_or(file));
            } else if crate::paths::is_url(&field.text) {
                self.url(&field.text);
            } else if let Some(rest) = other_url(&field.text) {
                self.url(&format!("http://{rest}"));
            } else if bare && !field.text.is_empty() {
                self.url(&format!("http://{}", field.text));
            }
        }
    }

    /// Notes the machine that `text` names, with or without a scheme, by which others are reached.
    pub(crate) fn host(&mut self, text: &str) {
        let host = text.split_once("://").map_or(text, |(_, host)| host);
        if !host.is_empty() {
            self.url(&format!("http://{host}"));
        }
    }

    /// Notes a URL, and the address that its host stands for if it is written as a number.
    pub(crate) fn url(&mut self, text: &str) {
        self.note(List::Urls, text);
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let host = rest.split('/').next().unwrap_or_default();
        if host.contains(['{', '[']) && !host.contains("[:") && !host.starts_with('[') || host.contains('{') {
            self.unknown(format!("`{text}` stands for several hosts"));
        }
        // Only of some schemes hosts are read as numbers.
        let Ok(parsed) = url::Url::parse(&format!("http://{rest}")) else { return };
        let address = match parsed.host() {
            Some(url::Host::Ipv4(address)) => address.to_string(),
            Some(url::Host::Ipv6(address)) => format!("[{address}]"),
            Some(url::Host::Domain(_)) | None => return,
        };
        if !host.contains(&address) {
            self.note(List::Urls, &format!("{}://{address}{}", scheme.to_ascii_lowercase(), parsed.path()));
        }
    }

    fn curl(&mut self, run: &Run<'_>, state: &mut State) {
        self.home_of_client(state);
        let run = Run { argv: run.argv, name: run.name, valued: CURL };
        let arguments = run.arguments();
        if run.argv.iter().any(|field| field.certainty == Certainty::Many) {
            self.unknown("the arguments of `curl` cannot be known".to_owned());
        }
        let mut urls = arguments.operands.clone();
        let folder = arguments.value(&["--output-dir"]).cloned();
        let below = |name: &Field| match &folder {
            Some(folder) => Field {
                text: format!("{}/{}", folder.text, name.text),
                certainty: folder.certainty.max(name.certainty),
            },
            None => name.clone(),
        };
        let remote_name = arguments.has(&["-O", "--remote-name", "--remote-name-all", "-J"]);
        for option in &arguments.options {
            let Some(value) = &option.value else { continue };
            match option.name.as_str() {
                "-o" | "--output" if value.text != "-" => {
                    self.writes(&below(value), run.name, state);
                }
                "-c" | "--cookie-jar" | "-D" | "--dump-header" | "--trace" | "--trace-ascii" | "--stderr"
                | "--libcurl" | "--etag-save" | "--hsts" | "--alt-svc" | "--ssl-sessions"
                    if value.text != "-" =>
                {
                    self.writes(value, run.name, state);
                }
                // Without `=` it is no cookie, but the name of a file that holds some.
                "-b" | "--cookie" if !value.text.is_empty() && !value.text.contains('=') => self.reads(value, state),
                "-T" | "--upload-file" | "--netrc-file" | "--key" | "--cert" | "-E" | "--cacert" => {
                    self.reads(value, state)
                }
                "-d" | "--data" | "--data-binary" | "--data-ascii" | "--json" | "-F" | "--form"
                | "--data-urlencode" | "-H" | "--header" | "-b" | "--cookie" => {
                    self.sent(value, state);
                }
                "-w" | "--write-out" if value.text.contains("%output{") || value.text.starts_with('@') => {
                    self.unknown("`curl -w` writes to files".to_owned());
                }
                "-K" | "--config" => self.unknown("`curl -K` reads its arguments from a file".to_owned()),
                "--url" if value.text.starts_with('@') => {
                    self.unknown("`curl --url @` reads what it fetches from a file".to_owned());
                }
                "--url" => urls.push(value.clone()),
                "--resolve" | "--connect-to" | "-x" | "--proxy" | "--socks5" | "--preproxy" | "--socks4"
                | "--socks4a" | "--socks5-hostname" | "--proxy1.0" | "--doh-url" => {
                    // Where it goes in truth stands last.
                    let mut parts = value.text.splitn(3, ':');
                    let host = if option.name.starts_with("--resolve") || option.name == "--connect-to" {
                        parts.nth(2).unwrap_or_default()
                    } else {
                        value.text.as_str()
                    };
                    self.host(host);
                }
                _ => {}
            }
        }
        self.urls(&urls, true);
        if arguments.has(&["-J", "--remote-header-name"]) {
            // The other side says the name.
            self.touches(folder.as_ref().unwrap_or(&Field::known(".")), run.name, state);
        }
        for url in urls.iter().filter(|_| remote_name) {
            let name = url.text.split(['?', '#']).next().unwrap_or_default();
            let name = Field { text: crate::paths::base_name(name).to_owned(), certainty: url.certainty };
            self.writes(&below(&name), run.name, state);
        }
    }

    /// `@file` in what is sent.
    fn sent(&mut self, value: &Field, state: &State) {
        for mark in ["@", "=@", "=<"] {
            let at = if mark == "@" {
                value.text.strip_prefix('@')
            } else {
                value.text.split_once(mark).map(|(_, file)| file)
            };
            if let Some(file) = at {
                let file = file.split(';').next().unwrap_or_default();
                self.reads(&Field { text: file.to_owned(), certainty: value.certainty }, state);
            }
        }
    }

    fn wget(&mut self, run: &Run<'_>, state: &mut State) {
        self.home_of_client(state);
        self.proxied(run);
        let arguments = run.arguments();
        if run.argv.iter().any(|field| field.certainty == Certainty::Many) {
            self.unknown(format!("the arguments of `{}` cannot be known", run.name));
        }
        if arguments
            .options
            .iter()
            .any(|option| ["--use-askpass", "--execute", "-e", "--config"].contains(&option.name.as_str()))
            && run.name == "wget"
        {
            self.unknown("`wget` is told to do something by a setting".to_owned());
        }
        for name in ["--post-file", "--body-file", "-i", "--input-file"] {
            if let Some(file) = arguments.value(&[name]) {
                self.reads(file, state);
                if name.starts_with("-i") || name == "--input-file" {
                    self.listed_urls(file, run, state);
                }
            }
        }
        let browses = matches!(run.name, "lynx" | "w3m" | "links" | "links2" | "elinks");
        let bare = matches!(run.name, "wget" | "http" | "https" | "xh") || browses;
        let operands: Vec<Field> = if bare && run.name != "wget" && !browses {
            arguments
                .operands
                .iter()
                .filter(|field| field.text.contains(['.', ':', '/']) && !field.text.contains(['=', '@']))
                .take(1)
                .cloned()
                .collect()
        } else {
            arguments.operands.clone()
        };
        self.urls(&operands, bare);
        if !matches!(run.name, "wget" | "aria2c" | "axel")
            && !arguments.has(&["-o", "-O", "--output", "-d", "--download"])
        {
            return;
        }
        let output = arguments.value(&["-O", "--output-document"]);
        let folder_named = arguments.value(&["-P", "--directory-prefix", "-d"]);
        let folder = folder_named.map_or(".", |field| field.text.as_str());
        match output {
            Some(file) if file.text == "-" => {}
            Some(file) => {
                self.writes(file, run.name, state);
            }
            None if arguments.has(&["--spider", "--version", "--help"]) => {}
            None => {
                if arguments.has(NAMED_ELSEWHERE) {
                    let certainty = folder_named.map_or(Certainty::Known, |field| field.certainty);
                    self.touches(&Field { text: folder.to_owned(), certainty }, run.name, state);
                }
                for url in &arguments.operands {
                    let name = crate::paths::base_name(url.text.split(['?', '#']).next().unwrap_or_default());
                    let name = if name.is_empty() || !url.text.contains("://") { "index.html" } else { name };
                    self.writes(&Field { text: format!("{folder}/{name}"), certainty: url.certainty }, run.name, state);
                }
            }
        }
        if let Some(log) = arguments.value(&["-o", "--output-file"]) {
            self.writes(log, run.name, state);
        }
    }

    /// The URLs in a file that the text made; one of the workspace is as good as a script in it.
    fn listed_urls(&mut self, file: &Field, run: &Run<'_>, state: &State) {
        let stdin = (file.text == "-").then(|| crate::run::stdin_text(state));
        if crate::paths::is_url(&file.text) {
            self.url(&file.text);
            return;
        }
        let texts = match (stdin, self.content(file, state)) {
            (Some(Output::Known(text)), _) => vec![text],
            (None, Some(Content::OneOf(texts))) => texts,
            (None, None) => return,
            (Some(Output::Files(_) | Output::Unknown), _) | (None, Some(Content::Names(_) | Content::Unknown)) => {
                self.unknown(format!("what `{}` fetches cannot be known", run.name));
                return;
            }
        };
        for line in texts.iter().flat_map(|text| text.lines()) {
            self.spend(1);
            self.urls(&[Field::known(line.trim())], true);
        }
    }

    /// Options that lead to another machine, whatever the program: `--proxy`, `--https-proxy=…`, `--registry`.
    pub(super) fn proxied(&mut self, run: &Run<'_>) {
        for (index, field) in run.argv.iter().enumerate().filter(|(_, field)| field.text.starts_with("--")) {
            let (name, attached) = match field.text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (field.text.as_str(), None),
            };
            let leads = ["proxy", "-registry", "-index", "-mirror"].iter().any(|end| name.ends_with(end))
                || ["--registry", "--index-url", "--default-index", "--find-links", "--endpoint-url", "--server"]
                    .contains(&name);
            let value = attached.or(run.argv.get(index + 1).map(|next| next.text.as_str()));
            if let Some(value) = value.filter(|value| leads && !name.contains("no-") && value.contains(['.', ':', 'x']))
            {
                self.host(value);
            }
        }
    }

    /// Programs that talk to the machines among their operands: `ping`, `nc`.
    pub(super) fn contacts(&mut self, run: &Run<'_>) {
        for field in run.argv[1..].iter().filter(|field| !field.text.starts_with('-') && field.is_known()) {
            let text = match field.text.split_once(':') {
                // `TCP:host:port` of `socat`.
                Some((kind, rest)) if run.name == "socat" && !kind.contains('.') => {
                    rest.split(',').next().unwrap_or(rest)
                }
                _ => field.text.as_str(),
            };
            let text = text.rsplit('@').next().unwrap_or(text);
            let text = text.split_once("://").map_or(text, |(_, rest)| rest);
            // A port or a count is not an address.
            let number = text.parse::<u64>().is_ok_and(|number| number <= 0xffff);
            let path = text.starts_with(['/', '.', '~']);
            if !number && !path && text.contains(|letter: char| letter.is_ascii_digit() || letter == '.') {
                let bare = text.contains("::") && !text.starts_with('[');
                self.url(&if bare { format!("tcp://[{text}]") } else { format!("tcp://{text}") });
            }
        }
    }

    /// `scp`, `sftp` and `pip`.
    fn remote(&mut self, run: &Run<'_>, state: &mut State) {
        self.proxied(run);
        let arguments = run.arguments();
        for field in &arguments.operands {
            if field.is_known()
                && (crate::paths::is_url(&field.text) || crate::paths::is_url(field.text.trim_start_matches("git+")))
            {
                self.url(&field.text);
            }
        }
        for name in ["-i", "--index-url", "--extra-index-url", "-t", "-f"] {
            if let Some(url) = arguments.value(&[name]).filter(|url| crate::paths::is_url(&url.text)) {
                self.url(&url.text);
            }
        }
        if run.name == "sftp" && arguments.operands.len() > 1 {
            self.scp(&arguments.operands, run, state);
        }
        if run.name == "scp" {
            self.scp(&arguments.operands, run, state);
            if arguments.has(&["-S", "-o", "-F", "-D"]) {
                self.unknown("an option of `scp` may run a command".to_owned());
            }
        } else if run.name == "sftp"
            && (arguments.has(&["-S", "-o", "-F", "-D", "-b"]) || state.stdin != crate::state::Stdin::Inherited)
        {
            self.unknown("what `sftp` does cannot be known".to_owned());
        } else if run.name.starts_with("pip")
            && arguments
                .operands
                .first()
                .is_some_and(|verb| verb.text == "install" || verb.text == "download" || verb.text == "wheel")
        {
            self.fetched_package(&arguments.operands[1..], run);
        }
    }

    fn fetched_package(&mut self, packages: &[Field], run: &Run<'_>) {
        for package in packages {
            if !package.is_known() {
                self.unknown(format!("what `{}` installs cannot be known", run.name));
            } else if package.text.contains("://") {
                self.pipes(format!("`{}` runs the installation of `{}`", run.name, package.text));
            }
        }
    }

    fn scp(&mut self, operands: &[Field], run: &Run<'_>, state: &mut State) {
        let is_remote = |field: &Field| field.text.split('/').next().is_some_and(|first| first.contains(':'));
        let Some((target, sources)) = operands.split_last() else { return };
        for source in sources.iter().filter(|source| !is_remote(source)) {
            self.reads(source, state);
        }
        if !is_remote(target) {
            self.writes(target, run.name, state);
            for source in sources {
                let base = source.text.rsplit(['/', ':']).next().unwrap_or_default();
                self.writes(
                    &Field {
                        text: format!("{}/{base}", target.text),
                        certainty: target.certainty.max(source.certainty),
                    },
                    run.name,
                    state,
                );
            }
        }
    }
}

/// The file that a `file:` URL names.
fn file_of(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once(':')?;
    let rest = scheme.eq_ignore_ascii_case("file").then_some(rest)?;
    match rest.strip_prefix("//") {
        // A host stands before the path.
        Some(rest) => Some(rest.find('/').map_or_else(|| "/".to_owned(), |at| rest[at..].to_owned())),
        None => Some(rest.to_owned()),
    }
}

/// What follows the scheme of a URL that is not written as usual, or of a kind that hardly anybody uses.
fn other_url(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let known = ["http", "https", "ftp", "ftps"].iter().any(|own| scheme.eq_ignore_ascii_case(own));
    let named = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+');
    let rest = if known { Some(rest) } else { rest.strip_prefix("//").filter(|_| named) };
    rest.map(|rest| rest.trim_start_matches('/')).filter(|rest| !rest.is_empty())
}
