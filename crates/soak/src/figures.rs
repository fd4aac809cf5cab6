//! What was measured, as a table.

use std::fmt;
use std::time::Duration;

/// Durations, of which the larger ones are asked for.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// One more.
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// All of another one.
    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Duration] {
        &self.0
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The one that `part` of a thousand are not above; zero where there is none.
    pub fn at(&self, part: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * part).div_ceil(1000).saturating_sub(1);
        sorted.get(rank).copied().unwrap_or_default()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |part| self.at(part).as_secs_f64() * 1e3;
        write!(f, "{:.2} / {:.2} / {:.2} ms", ms(500), ms(990), ms(1000))
    }
}

/// What came of the turns.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// Turns with a whole answer.
    pub turns: usize,
    /// Why the others failed.
    pub failed: Vec<String>,
    /// From when a message was sent until its turn had begun.
    pub starts: Times,
    /// From when the model wrote a piece until its frame was read.
    pub pieces: Times,
}

impl Heard {
    pub(crate) fn extend(&mut self, other: Self) {
        self.turns += other.turns;
        self.failed.extend(other.failed);
        self.starts.extend(other.starts);
        self.pieces.extend(other.pieces);
    }
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Idle clients that stayed to the end.
    pub idle: usize,
    /// Those that were closed before it.
    pub closed: usize,
    /// Memory of the server for each idle client, in bytes.
    pub bytes_per_idle: u64,
    /// What the server's clients heard.
    pub heard: Heard,
    /// The same from a server that does nothing but pass pieces on.
    pub floor: Option<Heard>,
    /// The same from the loop of the agent in a process without a gateway.
    pub alone: Option<Heard>,
    /// Memory of the server over time, in KiB.
    pub memory_kib: Vec<u64>,
    /// Processor time of the server and of this process, as parts of one core, while turns ran.
    pub cores: [f64; 2],
    /// How long turns ran.
    pub took: Duration,
}

/// Memory for each idle client, at most, in bytes. Source: what is promised of a soaked server.
const MOST_PER_IDLE: u64 = 40 * 1024;

/// What the gateway adds to a start and to a piece, at most, of 99 in a hundred. Source: the same.
const MOST_ADDED: Duration = Duration::from_millis(25);

/// Memory at the end above that of the middle, at most, in parts of a hundred: it is flat.
const MOST_GROWN: u64 = 10;

impl Report {
    /// What was promised and is not so.
    pub fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        if !self.heard.failed.is_empty() {
            broken.push(format!("{} turns failed", self.heard.failed.len()));
        }
        if self.closed > 0 {
            broken.push(format!("{} idle clients were closed", self.closed));
        }
        if self.bytes_per_idle > MOST_PER_IDLE {
            broken.push(format!("an idle client takes {:.1} KiB, of 40", kib(self.bytes_per_idle)));
        }
        let (middle, end) = (self.memory_kib.get(self.memory_kib.len() / 2), self.memory_kib.last());
        if let (Some(middle), Some(end)) = (middle, end)
            && end * 100 > middle * (100 + MOST_GROWN)
        {
            broken.push(format!("memory grew from {middle} to {end} KiB in the second half"));
        }
        let Some(alone) = &self.alone else { return broken };
        for (what, with, without) in
            [("start of a turn", &self.heard.starts, &alone.starts), ("piece", &self.heard.pieces, &alone.pieces)]
        {
            let added = with.at(990).saturating_sub(without.at(990));
            if added > MOST_ADDED {
                broken.push(format!("the gateway adds {:.1} ms to a {what} (p99), of 25", added.as_secs_f64() * 1e3));
            }
        }
        broken
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let floor = |of: &dyn Fn(&Heard) -> String| self.floor.as_ref().map(of).unwrap_or_default();
        let alone = |of: &dyn Fn(&Heard) -> String| self.alone.as_ref().map(of).unwrap_or_default();
        let wide = |f: &mut fmt::Formatter<'_>, what: &str, of: &dyn Fn(&Heard) -> String| {
            writeln!(f, "| {what} | {} | {} | {} |", of(&self.heard), alone(of), floor(of))
        };
        let row = |f: &mut fmt::Formatter<'_>, what: &str, measured: String| writeln!(f, "| {what} | {measured} | | |");
        writeln!(f, "| what | measured | without a gateway | floor |\n|---|---|---|---|")?;
        let turns = |heard: &Heard| format!("{}, {} failed", heard.turns + heard.failed.len(), heard.failed.len());
        wide(f, "turns", &turns)?;
        let idle = format!("{}, {} closed", self.idle + self.closed, self.closed);
        row(f, "idle clients", idle)?;
        let per_idle = format!("{:.1} KiB", kib(self.bytes_per_idle));
        row(f, "memory of the server for each idle client", per_idle)?;
        let starts = |heard: &Heard| heard.starts.to_string();
        wide(f, "message sent to turn begun: median / p99 / most", &starts)?;
        let pieces = |heard: &Heard| format!("{} ({})", heard.pieces, heard.pieces.count());
        wide(f, "piece of the model to frame read: median / p99 / most", &pieces)?;
        let memory: Vec<String> = self.memory_kib.iter().map(|kib| format!("{}", kib / 1024)).collect();
        row(f, "memory of the server over time", format!("{} MiB", memory.join(", ")))?;
        let [server, own] = self.cores;
        row(f, "cores at work: server", format!("{server:.2}"))?;
        row(f, "cores at work: clients and model", format!("{own:.2}"))?;
        row(f, "how long", format!("{:.0} s", self.took.as_secs_f64()))
    }
}

fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_its_limit_is_named() {
        let times = |ms: &[u64]| Times(ms.iter().map(|ms| Duration::from_millis(*ms)).collect());
        let heard =
            |starts: &[u64], pieces: &[u64]| Heard { starts: times(starts), pieces: times(pieces), ..Heard::default() };
        let good = Report {
            bytes_per_idle: MOST_PER_IDLE,
            heard: heard(&[30], &[26]),
            alone: Some(heard(&[5], &[1])),
            memory_kib: vec![10, 100, 110],
            ..Report::default()
        };
        assert_eq!(good.broken(), Vec::<String>::new());
        let bad = Report {
            bytes_per_idle: MOST_PER_IDLE + 1024,
            closed: 2,
            heard: Heard { failed: vec!["why".into()], ..heard(&[31], &[27]) },
            memory_kib: vec![10, 100, 111],
            ..good
        };
        let expected = [
            "1 turns failed",
            "2 idle clients were closed",
            "an idle client takes 41.0 KiB, of 40",
            "memory grew from 100 to 111 KiB in the second half",
            "the gateway adds 26.0 ms to a start of a turn (p99), of 25",
            "the gateway adds 26.0 ms to a piece (p99), of 25",
        ];
        assert_eq!(bad.broken(), expected);
    }

    #[test]
    fn the_rank_of_a_time_is_the_nearest_one() {
        let times = Times((1..=200).rev().map(Duration::from_millis).collect());
        let at = |part| times.at(part).as_millis();
        assert_eq!((at(500), at(990), at(1000)), (100, 198, 200));
        assert_eq!(Times::default().at(990), Duration::ZERO);
        assert_eq!(times.to_string(), "100.00 / 198.00 / 200.00 ms");
    }
}
