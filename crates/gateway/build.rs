//! Lists the built files of the console, if it was built. This runs no npm and reads no network: whoever wants the
//! console builds it first, with `npm --prefix console run build`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?);
    let built = manifest.join("../../console/dist");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", built.display());
    let mut files = Vec::new();
    if let Ok(built) = built.canonicalize() {
        collect(&built, &built, &mut files)?;
    }
    files.sort();
    let mut table = String::from("&[\n");
    for (name, file) in &files {
        let packed = file.with_file_name(format!("{}.gz", file.file_name().unwrap_or_default().display()));
        let packed = packed.exists().then(|| format!("include_bytes!({packed:?})"));
        let packed = packed.map_or_else(|| "None".to_owned(), |bytes| format!("Some({bytes})"));
        writeln!(table, "BuiltFile {{ name: {name:?}, bytes: include_bytes!({file:?}), packed: {packed} }},")
            .map_err(io::Error::other)?;
    }
    table.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    fs::write(out.join("console.rs"), table)
}

/// The files below `folder` that are served, each with its name below `root`.
fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || name.ends_with(".gz") {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files)?;
        } else {
            let below = path.strip_prefix(root).map_err(io::Error::other)?;
            files.push((below.to_string_lossy().replace('\\', "/"), path));
        }
    }
    Ok(())
}
