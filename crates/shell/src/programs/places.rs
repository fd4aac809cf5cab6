//! Options whose values are paths, whatever the program does with its operands.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A row: programs, options whose values they write, options whose values they read.
pub(crate) struct Place {
    pub(crate) names: &'static str,
    pub(crate) written: &'static str,
    pub(crate) read: &'static str,
}

const fn place(names: &'static str, written: &'static str, read: &'static str) -> Place {
    Place { names, written, read }
}

const PLACES: &[Place] = &[
    place("unzip", "-d", ""),
    place("7z 7za 7zr 7zz", "-o", ""),
    place("cpio", "-D --directory -O", "-I"),
    place("ar", "--output", ""),
    place("strip", "-o", ""),
    place("iconv", "-o --output", ""),
    place("tree", "-o", ""),
    place("sort", "-T --temporary-directory", ""),
    place("tar bsdtar gtar", "--index-file -g --listed-incremental --volno-file", "-T --files-from -X --exclude-from"),
    place(
        "rsync",
        "--log-file --write-batch --only-write-batch --backup-dir --partial-dir -T --temp-dir",
        "--files-from --exclude-from --include-from --password-file",
    ),
    place("zip", "-b -O --out -lf --logfile-path", "-i@ -x@"),
    place("script", "-O -I -B -T --log-out --log-in --log-io --log-timing --timing", ""),
    place("valgrind", "--log-file --xml-file --massif-out-file --callgrind-out-file --cachegrind-out-file", ""),
    place("awk gawk", "-o -p -d --pretty-print --profile --dump-variables", ""),
    place("less", "-o -O --log-file --LOG-FILE", ""),
    place("ssh", "-E", ""),
    place("screen", "-Logfile", ""),
    place("gcc g++ cc c++ clang clang++", "-MF -dumpdir -dumpbase -aux-info", ""),
    place("ld", "-Map --Map", ""),
    place("rustc", "--out-dir", ""),
    place("javac", "-d -s -h", ""),
    place("tsc", "--outDir --outFile --declarationDir --tsBuildInfoFile", ""),
    place("esbuild rollup webpack vite", "--outfile --outdir --outDir --output-path -o --file --dir", ""),
    place("pytest py.test", "--junitxml --junit-xml --basetemp --log-file --result-log --resultlog --report-log", ""),
    place(
        "eslint stylelint ruff mypy pylint",
        "-o --output-file --cache-location --cache-dir --junit-xml --output",
        "",
    ),
    place("terraform tofu", "-out", "-var-file"),
    place("helm", "--output-dir -d --destination", "-f --values"),
    place("aria2c", "-d --dir -o --out -l --log --save-session --save-cookies", "-i --input-file --load-cookies"),
    place("wget", "-a --append-output --save-cookies --hsts-file --warc-file --rejected-log", "--load-cookies"),
    place("gh glab", "-D --dir -O --output", "-F --body-file --notes-file --input"),
    place("yt-dlp youtube-dl", "-o --output -P --paths --download-archive --cookies --cache-dir", "-a --batch-file"),
    place("bison flex lex yacc ctags etags indent", "-o --output --output-file -f", ""),
    place("xargs gxargs", "", "-a --arg-file"),
    place("parallel", "--joblog --results --tmpdir --tempdir", "-a --arg-file"),
    place("twine gpgv logger", "", "-f --file"),
    place("csplit", "-f --prefix", ""),
    place("strace ltrace time gtime perf", "-o --output", ""),
    place("mktemp", "-p --tmpdir", ""),
    place(
        "openssl",
        "-out -keyout -CAserial -writerand -keylogfile -sess_out -outdir -msgfile -reqout -respout",
        "-in -inkey -key -CA -CAkey -cert -kfile -pass",
    ),
    place("ssh-keygen", "-f", ""),
    place("gpg gpg2 age sops", "-o --output --homedir --export-secret-keys", "-i"),
    place("pg_dump pg_dumpall mysqldump mariadb-dump mongodump", "-f --file -r --result-file -o --out", ""),
    place("cmake meson", "--prefix --install-prefix -B", "-P"),
    place("cargo", "--root --target-dir", "--manifest-path"),
    place(
        "pip pip2 pip3",
        "--target --prefix --root -t -d --dest -w --wheel-dir --log --log-file --report --cache-dir --src",
        "-r --requirement -c --constraint",
    ),
    place("npm pnpm yarn", "--prefix --cache -C --dir --cwd --pack-destination", ""),
    place("patch", "-d --directory -o --output -r --reject-file", "-i --input"),
    place("date", "", "-f --file -r --reference"),
    place("wc du sort", "", "--files0-from"),
    place(
        "go",
        "-o -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace -outputdir -modcacherw",
        "",
    ),
    place("ffmpeg", "", "-i"),
    place("convert magick pandoc dot protoc", "-o --output --cpp_out --java_out --python_out", ""),
    place("jq yq", "", "--rawfile --slurpfile -f --from-file"),
    place("docker podman", "--iidfile --cidfile -o --output", "--env-file"),
    place("ssh scp sftp", "", "-i -F"),
    place("curl", "", "--netrc-file"),
    place("journalctl", "", "--file -D --directory"),
    place("diff", "", "--from-file --to-file"),
    place("shuf", "-o --output", ""),
    place("grep egrep fgrep rg ag ack", "", "-f --file --ignore-file"),
    place("file", "", "-f --files-from -m --magic-file"),
    place("useradd usermod", "-d --home", ""),
    place("tcpdump tshark dumpcap", "-w", "-r"),
    place("logrotate", "-s --state -l --log", ""),
];

/// The rows for `name`.
pub(crate) fn places(name: &str) -> &'static [&'static Place] {
    BY_NAME.get(name).map(Vec::as_slice).unwrap_or_default()
}

static BY_NAME: LazyLock<HashMap<&'static str, Vec<&'static Place>>> = LazyLock::new(|| {
    let mut by_name: HashMap<&str, Vec<&Place>> = HashMap::new();
    for place in PLACES {
        for name in place.names.split(' ') {
            by_name.entry(name).or_default().push(place);
        }
    }
    by_name
});

/// Whether the value of the variable `name` is one that people keep to themselves.
pub(crate) fn is_secret_variable(name: &str) -> bool {
    let marks = [
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "API_KEY",
        "APIKEY",
        "PRIVATE_KEY",
        "ACCESS_KEY",
        "CREDENTIAL",
        "DATABASE_URL",
    ];
    // A tokenizer cuts texts into words.
    let upper = name.to_ascii_uppercase().replace("TOKENIZER", "");
    marks.iter().any(|mark| upper.contains(mark))
}
