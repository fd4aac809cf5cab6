//! A terminal with a person at it: keys go in, and what is seen comes out.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::env::{PINTLE, TestEnv};

/// Runs a program on a terminal of its own, 80 columns wide, and hands on what is typed and shown. Arguments: what was
/// typed before it began, the program, its arguments. When nothing more is typed, the terminal goes away. Tells on stderr which process it is, and in the end whether it
/// left the terminal as it was.
const RELAY: &str = "
import fcntl, os, select, struct, sys, termios
terminal, inside = os.openpty()
fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
before = termios.tcgetattr(inside)
os.write(terminal, sys.argv[1].encode())
pid = os.fork()
if pid == 0:
    os.close(terminal)
    os.setsid()
    fcntl.ioctl(inside, termios.TIOCSCTTY, 0)
    for stream in (0, 1, 2):
        os.dup2(inside, stream)
    os.execv(sys.argv[2], sys.argv[2:])
os.close(inside)
print(pid, file=sys.stderr, flush=True)
watched = [terminal, 0]
while True:
    ready = select.select(watched, [], [])[0]
    if 0 in ready:
        typed = os.read(0, 65536)
        if typed:
            os.write(terminal, typed)
        else:
            os.close(terminal)
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    if terminal in ready:
        try:
            shown = os.read(terminal, 65536)
        except OSError:
            break
        os.write(1, shown)
print(termios.tcgetattr(terminal) == before, file=sys.stderr, flush=True)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

/// How long anything may take until it is seen: far more than it does on a machine that is busy.
const DEADLINE: Duration = Duration::from_secs(30);

/// `pintle` on a terminal, as a rule `pintle chat`.
pub(crate) struct Tty {
    relay: Child,
    typed: Option<ChildStdin>,
    told: BufReader<std::process::ChildStderr>,
    shown: Arc<(Mutex<Shown>, Condvar)>,
    /// How much of it was looked at.
    seen: usize,
    /// The process of the program.
    pub(crate) pid: i32,
}

#[derive(Default)]
struct Shown {
    bytes: Vec<u8>,
    over: bool,
}

/// How a conversation ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    /// Whether the terminal is as it was before.
    pub(crate) restored: bool,
    /// What stands on the terminal, from its first line on.
    pub(crate) screen: String,
}

impl Tty {
    pub(crate) fn chat(env: &TestEnv, args: &[&str]) -> Self {
        Self::chat_after(env, "", args)
    }

    /// The same, where `ahead` was typed before the program began.
    pub(crate) fn chat_after(env: &TestEnv, ahead: &str, args: &[&str]) -> Self {
        Self::of(env, ahead, &[&["chat"], args].concat())
    }

    /// `pintle` with these arguments.
    pub(crate) fn of(env: &TestEnv, ahead: &str, args: &[&str]) -> Self {
        let mut command = env.command("python3");
        command.args(["-c", RELAY, ahead, PINTLE, "--color", "never"]).args(args).env("TERM", "xterm");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut relay = command.spawn().unwrap();
        let typed = relay.stdin.take();
        let mut out = relay.stdout.take().unwrap();
        let mut told = BufReader::new(relay.stderr.take().unwrap());
        let shown = Arc::new((Mutex::new(Shown::default()), Condvar::new()));
        let filled = shown.clone();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            loop {
                let read = out.read(&mut piece).unwrap_or(0);
                let (shown, more) = &*filled;
                let mut shown = shown.lock().unwrap();
                shown.bytes.extend_from_slice(&piece[..read]);
                shown.over = read == 0;
                more.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        let mut pid = String::new();
        told.read_line(&mut pid).unwrap();
        let pid = pid.trim().parse().unwrap();
        Self { relay, typed, told, shown, seen: 0, pid }
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: impl AsRef<[u8]>) {
        let typed = self.typed.as_mut().unwrap();
        typed.write_all(keys.as_ref()).and_then(|()| typed.flush()).unwrap();
    }

    /// Waits until `wanted` is shown, after everything that was waited for before. Returns what came up to there.
    #[track_caller]
    pub(crate) fn until(&mut self, wanted: &str) -> String {
        let from = self.seen;
        let find = |shown: &Shown| {
            let rest = &shown.bytes[from..];
            rest.windows(wanted.len()).position(|piece| piece == wanted.as_bytes())
        };
        let shown = self.wait(|shown| find(shown).is_some());
        let Some(at) = find(&shown) else {
            let screen = screen(&String::from_utf8_lossy(&shown.bytes));
            drop(shown);
            panic!("`{wanted}` did not come:\n{screen}");
        };
        let to = from + at + wanted.len();
        let text = String::from_utf8_lossy(&shown.bytes[from..to]).into_owned();
        drop(shown);
        self.seen = to;
        text
    }

    /// Waits until a message is awaited.
    pub(crate) fn idle(&self) {
        drop(self.wait(|shown| shown.bytes.ends_with(b"> \r\x1b[2C")));
    }

    /// Waits until what is shown is as `enough` wants it, or nothing more comes.
    fn wait(&self, enough: impl Fn(&Shown) -> bool) -> MutexGuard<'_, Shown> {
        let (shown, more) = &*self.shown;
        let waits = |shown: &mut Shown| !enough(shown) && !shown.over;
        more.wait_timeout_while(shown.lock().unwrap(), DEADLINE, waits).unwrap().0
    }

    /// Types a message and waits for `answer`.
    #[track_caller]
    pub(crate) fn say(&mut self, message: &str, answer: &str) -> String {
        self.press(format!("{message}\r"));
        self.until(answer)
    }

    /// Leaves with Ctrl-D, once a message is awaited.
    #[track_caller]
    pub(crate) fn leave(mut self) -> Ended {
        self.idle();
        self.press([4]);
        self.end()
    }

    /// Takes the terminal away. Returns how the program ended.
    pub(crate) fn hang_up(mut self) -> Option<i32> {
        drop(self.typed.take());
        self.relay.wait().unwrap().code()
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        let shown = self.wait(|_| false);
        let (screen, over) = (screen(&String::from_utf8_lossy(&shown.bytes)), shown.over);
        drop(shown);
        assert!(over, "it goes on:\n{screen}");
        let mut restored = String::new();
        self.told.read_to_string(&mut restored).unwrap();
        assert!(["True\n", "False\n"].contains(&&*restored), "{restored}");
        Ended { code: self.relay.wait().unwrap().code(), restored: restored == "True\n", screen }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        // The program ends with its terminal.
        self.relay.kill().ok();
        self.relay.wait().ok();
    }
}

const COLUMNS: usize = 80;

/// What a terminal makes of `shown`: all lines, also those that have left at its top. It knows what `chat` uses, and
/// nothing else may come.
pub(crate) fn screen(shown: &str) -> String {
    let mut lines = vec![Vec::new()];
    let (mut row, mut column, mut saved) = (0_usize, 0_usize, (0, 0));
    let mut chars = shown.chars();
    while let Some(c) = chars.next() {
        match c {
            '\r' => column = 0,
            '\n' => row += 1,
            '\u{1b}' => {
                let sequence: String = match chars.next().unwrap() {
                    '[' => {
                        let mut sequence = String::from('[');
                        while !sequence.ends_with(|c: char| c.is_ascii_alphabetic()) {
                            sequence.push(chars.next().unwrap());
                        }
                        sequence
                    }
                    c => c.to_string(),
                };
                match sequence.as_str() {
                    "D" => row += 1,
                    "7" => saved = (row, column),
                    "8" => (row, column) = saved,
                    "[A" => row -= 1,
                    "[J" => {
                        lines.truncate(row + 1);
                        lines.resize_with(row + 1, Vec::new);
                        lines[row].truncate(column);
                    }
                    "[?2004h" | "[?2004l" => {}
                    right if right.ends_with('C') => {
                        column = (column + right[1..right.len() - 1].parse::<usize>().unwrap()).min(COLUMNS - 1);
                    }
                    other => panic!("a terminal gets ESC {other}"),
                }
            }
            c => {
                assert!(!c.is_control() || c == '\t', "a terminal gets {c:?}");
                if column == COLUMNS {
                    (row, column) = (row + 1, 0);
                }
                lines.resize_with(lines.len().max(row + 1), Vec::new);
                let line = &mut lines[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = c;
                column += 1;
            }
        }
        lines.resize_with(lines.len().max(row + 1), Vec::new);
    }
    let line = |line: &Vec<char>| line.iter().collect::<String>().trim_end().to_owned();
    lines.iter().map(line).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}
