//! `pintle audit export`: entries and the signatures under them, as JSON Lines.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use pintle_domain::audit::AuditLine;
use pintle_domain::id::TenantId;
use pintle_domain::store::AuditStore;
use pintle_store::keyring::signing::PUBLIC_KEY_FILE;

use super::range::{Pages, Points, stretch, time};
use super::{chains, failed, in_question, is_read, put};
use crate::clean::prose;
use crate::cli::{Global, note_home, terminal};
use crate::error::CliError;
use pintle_host::host::{load, open_store};

/// Flags of `audit export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Only the entries of this tenant
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
    /// From this time or day on; begins after a signature, so that what is written can be proven
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<Timestamp>,
    /// Up to this time or day; goes on to the next signature
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Timestamp>,
    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(global: &Global, args: &ExportArgs) -> Result<u8, CliError> {
    if args.since.zip(args.until).is_some_and(|(since, until)| since >= until) {
        return Err(CliError::usage("--since is not before --until"));
    }
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    note_home(global, (&env, &loaded.config));
    let store = open_store(&loaded.config)?;
    // What is exported is the same all the same: whoever looks into the matter needs it.
    let doubts = in_question(&loaded.config, &*store).unwrap_or_else(|error| vec![error.to_string()]);
    if let Some(why) = doubts.first() {
        terminal::note(&format!("the exported record is in doubt: {}", prose(why)));
    }
    let chains = chains(&*store, args.tenant.as_deref())?;
    let mut export = Export { store: &*store, since: args.since, until: args.until, rows: 0, points: 0 };
    let mut all = |out: &mut dyn Write| -> Result<(), CliError> {
        for chain in &chains {
            if !export.chain(out, &chain.tenant)? {
                break;
            }
        }
        Ok(())
    };
    match &args.output {
        Some(file) => to_file(file, all)?,
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            all(&mut out)?;
            is_read(out.flush())?;
        }
    }
    let key = loaded.config.home.join(PUBLIC_KEY_FILE);
    terminal::note(&format!("{} entries, {} signatures", export.rows, export.points));
    if key.is_file() {
        terminal::note(&format!("they are checked with the public key in {}", key.display()));
    }
    Ok(0)
}

struct Export<'a> {
    store: &'a dyn AuditStore,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    rows: u64,
    points: u64,
}

impl Export<'_> {
    /// Writes one chain, each signature after its entry. Says whether somebody reads.
    fn chain(&mut self, out: &mut dyn Write, tenant: &TenantId) -> Result<bool, CliError> {
        let points = Points::new(self.store, tenant).map_err(failed)?;
        let entries = Pages::new(self.store, tenant, 1);
        let stretch = stretch(points.between(0, u64::MAX), entries, self.since, self.until).map_err(failed)?;
        let from = stretch.anchor.as_ref().map_or(1, |anchor| anchor.seq.saturating_add(1));
        let last = stretch.last.unwrap_or(u64::MAX);
        let anchor = stretch.anchor.as_ref().map_or(0, |anchor| anchor.seq);
        let mut points = points.between(anchor, last);
        let mut pages = Pages::new(self.store, tenant, from);
        loop {
            let page = pages.next().map_err(failed)?;
            if page.is_empty() {
                break;
            }
            for entry in page {
                if entry.seq > last {
                    return self.signatures(out, &mut points, u64::MAX);
                }
                // Those of entries before this one: an anchor, or one whose entry is gone.
                let (seq, line) = (entry.seq, AuditLine::Entry(entry));
                if !self.signatures(out, &mut points, seq.saturating_sub(1))? || !put(out, &line.to_string())? {
                    return Ok(false);
                }
                self.rows += 1;
                if !self.signatures(out, &mut points, seq)? {
                    return Ok(false);
                }
            }
        }
        self.signatures(out, &mut points, u64::MAX)
    }

    /// Writes the signatures up to that of the entry `to`.
    fn signatures(&mut self, out: &mut dyn Write, points: &mut Points<'_>, to: u64) -> Result<bool, CliError> {
        while let Some(point) = points.up_to(to).map_err(failed)? {
            self.points += 1;
            if !put(out, &AuditLine::Checkpoint(point).to_string())? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Lets `write` fill a file of its owner only, which is there with all of it or not at all.
fn to_file(file: &Path, write: impl FnOnce(&mut dyn Write) -> Result<(), CliError>) -> Result<(), CliError> {
    let cannot = |error: io::Error| CliError::failed(format!("{} cannot be written: {error}", file.display()));
    let mut draft = file.as_os_str().to_owned();
    draft.push(format!(".{}.part", std::process::id()));
    let draft = PathBuf::from(draft);
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(cannot)?;
    let written = fill(made, write).and_then(|()| fs::rename(&draft, file).map_err(cannot));
    if written.is_err() {
        // What is half written helps nobody; the first failure is the one to tell.
        drop(fs::remove_file(&draft));
    }
    written
}

fn fill(made: File, write: impl FnOnce(&mut dyn Write) -> Result<(), CliError>) -> Result<(), CliError> {
    let cannot = |error: io::Error| CliError::failed(format!("the output cannot be written: {error}"));
    let mut out = BufWriter::new(made);
    write(&mut out)?;
    let made = out.into_inner().map_err(|error| cannot(error.into_error()))?;
    made.sync_all().map_err(cannot)
}

#[cfg(test)]
mod tests {
    use pintle_domain::audit::{AuditLines, Proof, Verifier};

    use super::super::PAGE;
    use super::super::range::tests::{Fake, at, fake};
    use super::*;

    fn exported(store: &Fake, since: Option<u64>, until: Option<u64>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut export = Export { store, since: since.map(at), until: until.map(at), rows: 0, points: 0 };
        assert!(export.chain(&mut out, &TenantId::default_tenant()).unwrap());
        out
    }

    fn checked(bytes: &[u8]) -> String {
        let good = |_: &str, _: &[u8], _: &str| Proof::Good;
        let mut verifier = Verifier::new(&good);
        let mut lines = AuditLines::default();
        lines.feed(bytes, |line| verifier.line(line));
        lines.end(|line| verifier.line(line));
        verifier.finish().to_string()
    }

    #[test]
    fn every_part_of_a_chain_can_be_proven() {
        let store = fake(30, &[10, 20]);
        insta::assert_snapshot!(checked(&exported(&store, None, None)), @"
        tenant 0193a5b0-7000-7000-8000-000000000002: 30 rows (1 to 30), 2 checkpoints, intact
          proven up to row 20: 20 rows
          not proven: 10 rows (21 to 30)
        ");
        insta::assert_snapshot!(checked(&exported(&store, Some(15), Some(17))), @"
        tenant 0193a5b0-7000-7000-8000-000000000002: 10 rows (11 to 20), 2 checkpoints, intact
          rows up to 10 were cut; its signed checkpoint stands in for them
          proven up to row 20: 10 rows
        ");
    }

    #[test]
    fn a_long_chain_is_never_read_at_once() {
        let rows = 3 * PAGE as u64;
        let store = fake(rows, &(1..=rows).collect::<Vec<_>>());
        let whole = checked(&exported(&store, None, None));
        assert!(whole.contains(&format!("{rows} rows (1 to {rows}), {rows} checkpoints, intact")), "{whole}");
        let part = checked(&exported(&store, Some(rows - 1), None));
        assert!(part.contains("2 rows (1535 to 1536), 3 checkpoints, intact"), "{part}");
        assert_eq!(store.most.into_inner(), PAGE);
    }

    #[test]
    fn a_chain_whose_end_was_cut_shows_the_signature_of_what_is_gone() {
        let mut store = fake(30, &[10, 20]);
        store.entries.truncate(15);
        assert!(checked(&exported(&store, None, None)).contains("rows 16 to 20 are missing"));
    }

    #[test]
    fn a_file_is_there_with_all_of_it_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        let broken = to_file(&file, |out| {
            assert!(put(out, "half").unwrap());
            Err(CliError::failed("the store went away"))
        });
        assert_eq!(broken.unwrap_err().message, "the store went away");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        to_file(&file, |out| put(out, "all").map(drop)).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "all\n");
    }
}
