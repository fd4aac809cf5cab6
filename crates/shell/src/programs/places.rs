//! Options whose values are paths, whatever the program does with its operands.

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
    place("7z 7za 7zz", "-o", ""),
    place("cpio", "-D --directory -O -F", "-I"),
    place("csplit", "-f --prefix", ""),
    place("strace ltrace time gtime perf", "-o --output", ""),
    place("mktemp", "-p --tmpdir", ""),
    place("openssl", "-out -keyout -CAserial -writerand", "-in -inkey -key -CA -CAkey -cert -kfile -pass"),
    place("ssh-keygen", "-f", ""),
    place("gpg gpg2 age sops", "-o --output --homedir --export-secret-keys", "-i"),
    place("pg_dump pg_dumpall mysqldump mariadb-dump mongodump", "-f --file -r --result-file -o --out", ""),
    place("cmake meson", "--prefix --install-prefix", "-P"),
    place("cargo", "--root --target-dir", "--manifest-path"),
    place("pip pip2 pip3", "--target --prefix --root -t", "-r --requirement -c --constraint"),
    place("npm pnpm yarn", "--prefix --cache -C --dir --cwd", ""),
    place("patch", "-d --directory -o --output -r --reject-file", "-i --input"),
    place("date", "", "-f --file -r --reference"),
    place("wc du sort", "", "--files0-from"),
    place("go", "-o", ""),
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
];

/// The rows for `name`.
pub(crate) fn places(name: &str) -> impl Iterator<Item = &'static Place> {
    PLACES.iter().filter(move |place| place.names.split(' ').any(|known| known == name))
}

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
    let upper = name.to_ascii_uppercase();
    marks.iter().any(|mark| upper.contains(mark))
}
