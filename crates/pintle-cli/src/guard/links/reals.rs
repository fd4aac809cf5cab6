//! Where paths lead to, looked up once for all paths that begin with the same folders.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use pintle_guard::protects::MAX_PATH_BYTES;

/// How many links are followed one after another. Source: path_resolution(7).
const MAX_LINKS: u8 = 40;

/// How many places are remembered: a call may name thousands of long paths, and the rest is looked up each time.
const MAX_PLACES: usize = 4096;

/// Where `path` leads to, as far as anything of it is there. What a link leads to need not be: whoever writes there makes
/// it. This says what is right; [`Reals`] says the same sooner.
pub(super) fn real(path: &Path) -> PathBuf {
    followed(path, MAX_LINKS)
}

fn followed(path: &Path, links: u8) -> PathBuf {
    for above in path.ancestors() {
        let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
        if let Ok(found) = above.canonicalize() {
            return found.join(rest);
        }
        if links > 0
            && let Ok(target) = above.read_link()
        {
            let folder = above.parent().unwrap_or(Path::new("/"));
            return followed(&folder.join(target).join(rest), links - 1);
        }
    }
    path.to_owned()
}

/// What is at a path.
#[derive(Clone)]
enum Place {
    /// Something that lies here, behind all links.
    There(PathBuf),
    /// Nothing, in a folder that is there.
    Nothing,
    /// A link that leads nowhere, or what cannot be looked at.
    Unknown,
}

/// Where paths lead to during one look. It is never kept for the next one: an agent makes links between its calls.
#[derive(Default)]
pub(super) struct Reals {
    /// By the letters of the paths: as paths, they would be taken apart for each comparison.
    places: RefCell<HashMap<OsString, Place>>,
}

impl Reals {
    /// Where `path` leads to, letter by letter as [`real`] says it.
    pub(super) fn real(&self, path: &Path) -> PathBuf {
        if !is_plain(path) {
            return real(path);
        }
        let (mut lies, unknown) = self.known(path);
        for named in unknown {
            match self.place(named, &lies) {
                Place::There(found) => lies = found,
                Place::Nothing => {
                    let above = named.parent().unwrap_or(Path::new("/"));
                    return lies.join(path.strip_prefix(above).unwrap_or(Path::new("")));
                }
                Place::Unknown => return real(path),
            }
        }
        // What is there ends with a slash, as it does there.
        lies.join("")
    }

    /// Where the longest folder of `path` lies that somebody asked for before, and the steps from there on; of the root,
    /// which leads nowhere else, that is known without asking.
    fn known<'a>(&self, path: &'a Path) -> (PathBuf, impl Iterator<Item = &'a Path> + use<'a>) {
        let mut unknown = Vec::new();
        let mut lies = PathBuf::from("/");
        for named in path.ancestors().filter(|named| named.parent().is_some()) {
            if let Some(Place::There(found)) = self.places.borrow().get(named.as_os_str()) {
                lies.clone_from(found);
                break;
            }
            unknown.push(named);
        }
        (lies, unknown.into_iter().rev())
    }

    /// What is at `named`, whose folder is `folder` behind all links.
    fn place(&self, named: &Path, folder: &Path) -> Place {
        if let Some(place) = self.places.borrow().get(named.as_os_str()) {
            return place.clone();
        }
        let place = looked_up(named, folder);
        let mut places = self.places.borrow_mut();
        if places.len() < MAX_PLACES {
            places.insert(named.as_os_str().to_owned(), place.clone());
        }
        place
    }
}

fn looked_up(named: &Path, folder: &Path) -> Place {
    let Some(name) = named.file_name() else { return Place::Unknown };
    let found = folder.join(name);
    match found.read_link() {
        // Asked by its whole name, because the system counts the links on the way.
        Ok(_) => named.canonicalize().map_or(Place::Unknown, Place::There),
        // By the number: a name with a zero byte in it is of the same kind.
        Err(error) if error.raw_os_error() == Some(Errno::EINVAL as i32) => Place::There(found),
        Err(error) if error.raw_os_error() == Some(Errno::ENOENT as i32) => Place::Nothing,
        Err(_) => Place::Unknown,
    }
}

/// Whether each name of `path` stands for one step down from the root. Other systems than Linux may know a file by more
/// than one spelling, and canonical names have theirs.
fn is_plain(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
    cfg!(target_os = "linux")
        && bytes.len() < MAX_PATH_BYTES
        && bytes.strip_prefix(b"/").is_some_and(|names| names.split(|byte| *byte == b'/').all(is_name))
}
