//! The programs, one row each: their names, which of their options take a value, and what they do with the rest.

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Program {
    /// Names, separated by blanks.
    pub(crate) names: &'static str,
    /// Options that take the next word as their value, separated by blanks.
    pub(crate) valued: &'static str,
    pub(crate) role: Role,
}

/// What a program does with its operands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// Nothing that another fact would tell.
    Plain,
    /// Reads them, but for the first ones.
    Reads(usize),
    /// Writes them, but for the first ones.
    Writes(usize),
    /// Deletes them.
    Deletes,
    /// Reads all but the last, which it writes.
    Copies,
    /// Deletes all but the last, which it writes.
    Moves,
    /// Ends what they name.
    Ends,
    /// Runs them as a command.
    Wraps(Wrap),
    /// Runs a shell text.
    Shell,
    /// Runs a program in another language.
    Language(Language),
    Builtin(Builtin),
    Prints(Prints),
    Streams(Streams),
    Archives(Archives),
    Finds(Finds),
    Fetches(Fetches),
    Builds(Builds),
    Carries(Carries),
    Git,
}

/// A program that runs the command in its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrap {
    /// Operands before the command.
    pub(crate) skip: usize,
    /// Whether `NAME=value` may stand before it.
    pub(crate) assigns: bool,
}

/// A language whose code is looked through, or not read at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    Node,
    Perl,
    Ruby,
    Php,
    Other,
}

/// A command of the shell itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    Alias,
    Cd,
    Command,
    Eval,
    Exec,
    Exit,
    Jump,
    ReadVariable,
    Set,
    Shift,
    Silent,
    Source,
    Test,
    Trap,
    Unset,
}

/// A program whose output can be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prints {
    Base64,
    Cat,
    Echo,
    MakeTemp,
    Printf,
    Pwd,
    Tee,
    Which,
}

/// A program that edits text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streams {
    Awk,
    Sed,
    Sort,
}

/// A program that copies many bytes or files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Archives {
    Dd,
    Packs,
    Rsync,
    Tar,
    Zip,
}

/// A program that looks for files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finds {
    Fd,
    Find,
}

/// A program that talks to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetches {
    Curl,
    Remote,
    Wget,
}

/// A program that builds, edits or asks by rules of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builds {
    Compiles,
    Crontab,
    Database,
    Editor,
    Makes,
    Man,
}

/// A program that runs what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carries {
    At,
    BusyBox,
    Container,
    Env,
    Parallel,
    RunsText,
    Ssh,
    Su,
    Xargs,
}

const fn row(names: &'static str, valued: &'static str, role: Role) -> Program {
    Program { names, valued, role }
}

const fn wraps(names: &'static str, valued: &'static str, skip: usize) -> Program {
    row(names, valued, Role::Wraps(Wrap { skip, assigns: false }))
}

pub(crate) const PROGRAMS: &[Program] = &[
    // The shell's own commands.
    row("alias", "", Role::Builtin(Builtin::Alias)),
    row("cd pushd", "", Role::Builtin(Builtin::Cd)),
    row("command builtin", "", Role::Builtin(Builtin::Command)),
    row("echo", "", Role::Prints(Prints::Echo)),
    row("eval", "", Role::Builtin(Builtin::Eval)),
    row("exec", "-a", Role::Builtin(Builtin::Exec)),
    row("exit logout", "", Role::Builtin(Builtin::Exit)),
    row("return break continue", "", Role::Builtin(Builtin::Jump)),
    row("printf", "-v", Role::Prints(Prints::Printf)),
    row("pwd", "", Role::Prints(Prints::Pwd)),
    row("mktemp", "-p --tmpdir --suffix", Role::Prints(Prints::MakeTemp)),
    row("read mapfile readarray getopts", "", Role::Builtin(Builtin::ReadVariable)),
    row("set", "", Role::Builtin(Builtin::Set)),
    row("shift", "", Role::Builtin(Builtin::Shift)),
    row("source .", "", Role::Builtin(Builtin::Source)),
    row("test [", "", Role::Builtin(Builtin::Test)),
    row("trap", "", Role::Builtin(Builtin::Trap)),
    row("unset popd let enable hash complete compgen bind fc", "", Role::Builtin(Builtin::Unset)),
    row("which", "", Role::Prints(Prints::Which)),
    row(
        "true false : wait sleep unalias umask shopt setopt unsetopt ulimit disown bg fg jobs suspend caller times dirs",
        "",
        Role::Builtin(Builtin::Silent),
    ),
    // Programs that show or count what they read.
    row("cat", "", Role::Prints(Prints::Cat)),
    row("base64 base32", "-w --wrap", Role::Prints(Prints::Base64)),
    row("head tail", "-n -c --lines --bytes -s --pid", Role::Reads(0)),
    row(
        "wc tac rev unexpand comm cmp md5sum sha1sum sha256sum sha512sum sha224sum sha384sum b2sum cksum md5 readlink realpath \
         zcat bzcat xzcat zstdcat lzcat tsort dir vdir eza lsd namei getfacl lsattr zgrep zless zmore dirname numfmt size nm ldd lsof \
         fuser plutil sdiff colordiff bat batcat hd unrar",
        "",
        Role::Reads(0),
    ),
    row("ls exa", "-I --ignore -T --tabsize -w --width -L --level", Role::Reads(0)),
    row("tree", "-L -I -P -o --filelimit", Role::Reads(0)),
    row("du df", "-d --max-depth -B --block-size -t --threshold --exclude -x", Role::Reads(0)),
    row("paste", "-d --delimiters", Role::Reads(0)),
    row("join", "-t -1 -2 -j -o -e -a -v", Role::Reads(0)),
    row("nl", "-b -f -h -i -l -n -s -v -w -d", Role::Reads(0)),
    row("fold fmt", "-w --width", Role::Reads(0)),
    row("expand", "-t --tabs", Role::Reads(0)),
    row("sum shasum", "-a --algorithm", Role::Reads(0)),
    row("file", "-m -F -P --magic-file --separator", Role::Reads(0)),
    row("stat", "-c -f --format --printf -t", Role::Reads(0)),
    row("strings", "-n -t -e -T --bytes --radix --encoding", Role::Reads(0)),
    row("hexdump", "-n -s -e", Role::Reads(0)),
    row("od", "-A -j -N -t -w -S", Role::Reads(0)),
    row("column", "-s -o -c -N --separator --table-columns", Role::Reads(0)),
    row("pr", "-l -w -h -o -n", Role::Reads(0)),
    row("iconv", "-f -t -o --from-code --to-code --output", Role::Reads(0)),
    row("look basename", "-t -s --suffix", Role::Reads(1)),
    row("getfattr", "-n -m -e", Role::Reads(0)),
    row(
        "diff diff3",
        "-U -C -I -x -X -W -L --label --unified --context --exclude --exclude-from --ignore-matching-lines",
        Role::Reads(0),
    ),
    row("readelf", "-x -p -R", Role::Reads(0)),
    row("objdump", "-j -M -m -b --section", Role::Reads(0)),
    row(
        "less more most pg",
        "-p -t -k -P -o -O -T --pattern --log-file --LOG-FILE --lesskey-file --lesskey-src --lesskey-content",
        Role::Reads(0),
    ),
    row("cut", "-d -f -c -b --delimiter --fields --characters --bytes --output-delimiter", Role::Reads(0)),
    row("uniq", "-f -s -w", Role::Reads(0)),
    row(
        "grep egrep fgrep ggrep",
        "-e -f -m -A -B -C -d -D --regexp --file --max-count --after-context --before-context --context --include --exclude --exclude-dir --color",
        Role::Reads(1),
    ),
    row("ack ag", "-m -A -B -C -G --ignore", Role::Reads(1)),
    row("jq yq gojq jaq dasel xq tomlq", "--indent", Role::Reads(1)),
    row("xxd", "-l -s -c -g", Role::Prints(Prints::Base64)),
    row(
        "sort",
        "-k -t -o -T -S --key --field-separator --output --parallel --compress-program --temporary-directory",
        Role::Streams(Streams::Sort),
    ),
    row(
        "seq yes date cal uptime uname arch nproc hostname id whoami groups users tty printenv locale getconf lscpu lsblk free \
         vmstat iostat ps pgrep top htop pstree w who last lsusb lspci dmesg ipcs expr bc factor tput clear stty \
         tr shuf uuidgen uuid cowsay figlet notify-send whatis apropos info tldr \
         ping traceroute dig nslookup host ifconfig ss netstat route arp whois sync logger wall write mesg \
         journalctl systemctl service loginctl hostnamectl timedatectl resolvectl launchctl sysctl \
         reboot poweroff halt shutdown init telinit \
         mkfs mke2fs mkswap fdisk sfdisk cfdisk gdisk sgdisk parted wipefs blkdiscard hdparm fsck mount umount losetup \
         cryptsetup lvremove vgremove pvremove mdadm zfs zpool btrfs swapoff swapon dmsetup tune2fs resize2fs badblocks \
         useradd userdel usermod groupadd groupdel passwd chpasswd visudo iptables nft ufw setenforce modprobe insmod rmmod \
         type history help openssl gpg gpg2 age sops pass vault bw keyctl security ssh-keygen ssh-add ssh-copy-id ssh-keyscan secret-tool \
         apt apt-get dpkg yum dnf rpm pacman apk snap flatpak port nix-env",
        "",
        Role::Plain,
    ),
    row("kill pkill killall killall5 skill xkill", "", Role::Ends),
    row(
        "rg",
        "--pre-glob --hostname-bin -e -f -g -t -T -m -A -B -C --glob --type --max-count --regexp --file --pre",
        Role::Reads(1),
    ),
    // Programs that write, move and delete.
    row(
        "rm rmdir unlink shred srm rimraf trash trash-put del-cli wipe",
        "-n --iterations -s --size --random-source",
        Role::Deletes,
    ),
    row("mv", "-t --target-directory -S --suffix", Role::Moves),
    row("install", "-t --target-directory -S --suffix -m --mode -o --owner -g --group --strip-program", Role::Copies),
    row("cp ln", "-t --target-directory -S --suffix", Role::Copies),
    row("link rename.ul objcopy ditto", "", Role::Copies),
    row("scp sftp", "-i -P -F -o -c -J -l -S -D -X", Role::Fetches(Fetches::Remote)),
    row("mkdir mkfifo mknod", "-m --mode", Role::Writes(0)),
    row("touch", "-d --date -r --reference -t", Role::Writes(0)),
    row("truncate", "-s --size -r --reference", Role::Writes(0)),
    row("fallocate", "-l --length -o --offset", Role::Writes(0)),
    row("chmod chown chgrp chattr chcon", "--reference --from", Role::Writes(1)),
    row("setfacl", "-m -x -M -X --modify --remove --set --restore", Role::Writes(0)),
    row("split", "-b -l -n -a -C --bytes --lines --number --suffix-length --additional-suffix --filter", Role::Copies),
    row("csplit", "-f --prefix -n -b --digits --suffix-format", Role::Reads(0)),
    row("tee sponge", "", Role::Prints(Prints::Tee)),
    row("dd", "", Role::Archives(Archives::Dd)),
    row("sed gsed", "-e -f -l --expression --file --line-length", Role::Streams(Streams::Sed)),
    row(
        "awk gawk mawk nawk original-awk",
        "-F -v -f -e -i -l -E --field-separator --assign --file --source --include --load --exec",
        Role::Streams(Streams::Awk),
    ),
    row(
        "tar bsdtar gtar",
        "-f -C -T -X -I -b -H -F --file --directory --files-from --exclude --exclude-from --use-compress-program --transform --strip-components --owner --group --mode --to-command --info-script --rsh-command --checkpoint-action",
        Role::Archives(Archives::Tar),
    ),
    row("zip", "-x -i -P -b -t -n -TT", Role::Archives(Archives::Zip)),
    row("unzip", "-d -x -P", Role::Reads(0)),
    row("7z 7za 7zr 7zz cpio ar pax", "-D --directory -F -O -I -H --file -f -s -x", Role::Archives(Archives::Packs)),
    row(
        "gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lz4 unlz4 compress uncompress pigz unpigz pbzip2 lzma unlzma lzip lzop brotli ranlib strip",
        "-S --suffix -T",
        Role::Writes(0),
    ),
    row(
        "rsync",
        "-e --rsh -f --filter --exclude --include --exclude-from --include-from --files-from --max-size --min-size --bwlimit --port --timeout --backup-dir --suffix --rsync-path --log-file --chmod --chown -B -T -M -@ --remote-option --out-format --log-file-format --partial-dir --temp-dir --compare-dest --copy-dest --link-dest --skip-compress --compress-choice --compress-level --checksum-choice --checksum-seed --address --sockopts --outbuf --protocol --iconv --modify-window --stop-after --stop-at --contimeout --password-file --usermap --groupmap --block-size --max-delete --max-alloc --write-batch --only-write-batch --read-batch --debug --info --copy-as",
        Role::Archives(Archives::Rsync),
    ),
    row("patch", "-p -i -d -o -D -F -B -V -r --strip --input --directory --output --reject-file", Role::Writes(0)),
    row("dos2unix unix2dos perltidy", "", Role::Writes(0)),
    // Programs that run others.
    row(
        "sudo doas",
        "-u -g -U -C -D -R -T -p -r -t -h -c -a --user --group --prompt --chdir --host --chroot --role --type",
        Role::Wraps(Wrap { skip: 0, assigns: true }),
    ),
    row("su runuser", "-s --shell -g -G -w --group --supp-group", Role::Carries(Carries::Su)),
    row("env", "-u -C --unset --chdir", Role::Carries(Carries::Env)),
    wraps(
        "nohup setsid chronic unbuffer fakeroot eatmydata catchsegv torify torsocks tsocks linux32 linux64 x86_64 i386 dbus-launch nocache \
           trickle ccache sccache distcc command-not-found winpty caffeinate",
        "",
        0,
    ),
    wraps("proxychains proxychains4", "-f", 0),
    wraps("stdbuf", "-i -o -e --input --output --error", 0),
    wraps("nice", "-n --adjustment", 0),
    wraps("ionice", "-c -n -p -P -u --class --classdata --pid --pgid --uid", 0),
    wraps("time gtime", "-f -o --format --output", 0),
    wraps("strace ltrace", "-e -o -p -s -u -E -a -b -I -O -P -S -X -l -n -x -A --output --trace --attach", 0),
    wraps("valgrind", "", 0),
    wraps(
        "systemd-run",
        "-p -u -E -M -H --property --unit --slice --uid --gid --setenv --description --working-directory --on-active --service-type",
        0,
    ),
    wraps("systemd-inhibit", "--what --who --why --mode", 0),
    wraps("pkexec", "--user", 0),
    wraps("rlwrap", "-a -b -f -H -P -s -S -t -l", 0),
    wraps("numactl", "-i -m -N -C -p --interleave --membind --cpunodebind --physcpubind --preferred", 0),
    wraps("softlimit choom", "-a -d -f -l -m -n -o -p -r -s -t", 0),
    wraps("setarch", "", 0),
    wraps("dbus-run-session", "--config-file --dbus-daemon", 0),
    wraps("xvfb-run", "-e -f -n -p -s -w --error-file --auth-file --server-num --server-args --wait", 0),
    wraps(
        "firejail bwrap proot",
        "--bind --ro-bind --dev-bind --bind-try --ro-bind-try --symlink --chdir --setenv --unsetenv --tmpfs --proc --dev --dir -b -r -w -R -S -q",
        0,
    ),
    wraps("cgexec", "-g", 0),
    wraps("chrt", "-T -P -D", 1),
    wraps("perf", "-e -o -p -F -C", 1),
    wraps("flock", "-w -E --timeout --conflict-exit-code --wait", 1),
    wraps("timeout gtimeout", "-s -k --signal --kill-after", 1),
    wraps("chroot", "--userspec --groups", 1),
    wraps("taskset gosu su-exec setuidgid with-contenv faketime", "", 1),
    wraps("chpst", "-u -U -b -e -/ -n -l -L -m -d -o -p -f -c", 0),
    wraps("unshare", "-S -G -R -w --setuid --setgid --root --wd --map-user --map-group --propagation --setgroups", 0),
    wraps(
        "setpriv",
        "--reuid --regid --ruid --euid --rgid --egid --groups --inh-caps --ambient-caps --bounding-set --securebits --pdeathsig --selinux-label --apparmor-profile",
        0,
    ),
    wraps("nsenter", "-t -S -G --target --setuid --setgid", 0),
    wraps("prlimit", "-p --pid", 0),
    wraps("uclampset", "-m -M -p", 0),
    wraps(
        "ld.so ld-linux.so ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 ld-musl-x86_64.so.1",
        "--library-path --preload --argv0 --inhibit-rpath --audit",
        0,
    ),
    row("busybox toybox", "", Role::Carries(Carries::BusyBox)),
    row(
        "xargs gxargs",
        "-I -n -L -P -s -a -d -E --max-args --max-procs --delimiter --arg-file --max-chars --process-slot-var",
        Role::Carries(Carries::Xargs),
    ),
    row(
        "parallel rush",
        "-j --jobs -a --arg-file -N -n -L -I -d --delimiter --delay --timeout --joblog --colsep -S --sshlogin --tempdir --results --retries -C",
        Role::Carries(Carries::Parallel),
    ),
    row("find gfind bfs", "", Role::Finds(Finds::Find)),
    row(
        "fd fdfind",
        "-e -E -t -d -g -j -o -S --extension --exclude --type --max-depth --min-depth --exact-depth --threads --owner --size --changed-within --changed-before --base-directory --search-path --color",
        Role::Finds(Finds::Fd),
    ),
    row(
        "ssh dropbearclient dbclient",
        "-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w -B",
        Role::Carries(Carries::Ssh),
    ),
    row("rsh mosh sshpass autossh", "-p -f -e -P -M", Role::Carries(Carries::RunsText)),
    row(
        "docker podman nerdctl kubectl oc lxc incus crictl docker-compose machinectl flatpak-spawn toolbox distrobox vagrant wsl adb nomad",
        "-v --volume -w --workdir -e --env --env-file -p --publish --name -u --user --network --net -h --hostname -m --memory --cpus --entrypoint \
         --mount -l --label --platform --add-host --dns --ip --link --log-driver --log-opt --cap-add --cap-drop --security-opt --device --gpus \
         --ulimit --shm-size --tmpfs --restart --pull --stop-signal --pid --ipc --userns -a --attach -c --container -n --namespace --context \
         --kubeconfig -f --file --profile -s --sysctl --group-add --runtime --volumes-from --cidfile --image --target",
        Role::Carries(Carries::Container),
    ),
    row(
        "watch entr script tmux screen nix-shell nix dtach abduco zellij ssh-agent reptyr daemonize start-stop-daemon setlock lckdo run-parts \
             systemd-nspawn capsh gnome-terminal xterm konsole kitty alacritty foot x-terminal-emulator nodemon watchexec inotifywait chpwd goreman foreman \
             concurrently cross-env dotenv direnv op-run hyperfine poetry pipenv uv uvx pipx conda mamba micromamba pdm hatch rye bundle asdf mise rtx nvm \
             volta n fnm rvm rbenv pyenv op aws-vault doppler infisical dotenvx chamber teller envchain summon sg runcon \
             ansible pdsh clush salt pssh dsh fzf ip mispipe pee ifne zrun systemd-cat cpulimit run-one tsp sem delta",
        "-n -d -E -w -t -s -S -L -q -u -C --interval --warmup --runs -r -m --min-runs -M --shell --prepare --python --with --group --package -p",
        Role::Carries(Carries::RunsText),
    ),
    row("at batch", "-q -t -f -m", Role::Carries(Carries::At)),
    row("crontab", "-u", Role::Builds(Builds::Crontab)),
    row(
        "sh bash dash zsh ksh ksh93 mksh ash fish rbash yash oksh pdksh csh tcsh elvish nu xonsh",
        "-o +o -O +O --rcfile --init-file",
        Role::Shell,
    ),
    row(
        "python python2 python3 pypy pypy3 ipython ipython3 python3w",
        "-W -X --check-hash-based-pycs",
        Role::Language(Language::Python),
    ),
    row(
        "node nodejs",
        "-r --require --import -C --conditions --env-file --loader --experimental-loader --test-name-pattern --input-type --stack-trace-limit",
        Role::Language(Language::Node),
    ),
    row("perl", "-I -M -m", Role::Language(Language::Perl)),
    row("ruby jruby", "-I -r -C -E", Role::Language(Language::Ruby)),
    row("php php8 php7", "-d -c -S -t -z", Role::Language(Language::Php)),
    row(
        "dc lua luajit tclsh wish expect Rscript R julia elixir erl ghci runghc runhaskell swift groovy scala kotlin kotlinc jshell osascript \
         powershell pwsh cmd cmd.exe powershell.exe deno bun tsx ts-node guile sbcl clisp clojure racket raku ocaml gdb lldb gforth octave \
         matlab gst m4 gnuplot socat nc ncat netcat telnet pry irb csi dotnet-script qjs d8 jsc nim crystal v janet hy gjs cscript wscript mshta rundll32",
        "",
        Role::Language(Language::Other),
    ),
    row(
        "vim vi nvim view ex ed emacs nano gvim vimdiff rvim rview red joe micro kak hx helix code emacsclient",
        "",
        Role::Builds(Builds::Editor),
    ),
    row("man", "-P --pager -M -C --config-file -r --prompt", Role::Builds(Builds::Man)),
    row(
        "sqlite3 psql mysql mariadb mongosh mongo redis-cli duckdb sqlplus cqlsh clickhouse-client influx",
        "",
        Role::Builds(Builds::Database),
    ),
    // Programs that build, test and fetch.
    row(
        "make gmake mmake ninja meson cmake just task rake ant gradle mvn bazel buck scons tox nox ctest",
        "-f -C -I -o -W -j -l",
        Role::Builds(Builds::Makes),
    ),
    row(
        "npm npx pnpm pnpx yarn bunx corepack turbo nx lerna",
        "-w --workspace --prefix -p --package --registry",
        Role::Builds(Builds::Makes),
    ),
    row(
        "gcc g++ cc c++ clang clang++ tcc rustc javac go cargo zig dotnet java kotlinc-jvm ghc gfortran nasm as ld",
        "-o -I -L -l -D -x -std --manifest-path -p --package --example --bin --test --features --target --target-dir",
        Role::Builds(Builds::Compiles),
    ),
    row("git hub", "", Role::Git),
    row("curl", "", Role::Fetches(Fetches::Curl)),
    row(
        "wget axel httpie http https xh curlie lynx w3m links links2 elinks",
        "-O --output-document -o --output-file -a --append-output -P --directory-prefix --save-cookies --load-cookies --hsts-file --warc-file --rejected-log --config -U -i --input-file -e --execute --header --post-file --post-data --body-file -t -T --timeout --tries",
        Role::Fetches(Fetches::Wget),
    ),
    row(
        "aria2c",
        "-o --out -d --dir -i --input-file -l --log -j -x -s -k --header -U --user-agent --save-session --load-cookies --save-cookies",
        Role::Fetches(Fetches::Wget),
    ),
    row(
        "pip pip3 pip2",
        "-r -c -i -t -e -f --proxy --index-url --extra-index-url --target",
        Role::Fetches(Fetches::Remote),
    ),
    row(
        "gh glab hg svn terraform tofu aws gcloud az doctl heroku fly flyctl vercel netlify wrangler s3cmd rclone gsutil helm \
         brew gem composer pytest py.test mypy ruff black flake8 pylint isort jest vitest mocha eslint prettier tsc shellcheck shfmt hadolint \
         actionlint yamllint markdownlint pre-commit rustup rustfmt clippy-driver gofmt golangci-lint bats act codespell typos cloc tokei scc \
         phpunit rspec rubocop cypress playwright webpack vite esbuild rollup babel sass swc ffmpeg convert magick dot pandoc latexmk pdflatex \
         protoc buf sqlx diesel alembic flask uvicorn gunicorn celery supervisorctl nginx apachectl coverage bandit semgrep trivy gitleaks \
         pdm-backend twine poetry-core sphinx-build mkdocs hugo jekyll say vault-token",
        "",
        Role::Plain,
    ),
];
