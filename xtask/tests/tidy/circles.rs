//! The rule against circles: files of a crate that import each other cannot be read one after the other.
//!
//! An import leads from a file to the file that *defines* what it names. A name that a parent merely hands on
//! (`pub use child::X`) leads through the parent to the child, so a parent that is a face for its children imports
//! nothing by that, and children that use each other's names through it do not import it. A parent imports a child
//! where it names something of the child in its own code; a child imports its parent where it names something that the
//! parent itself defines. A module as such (`use crate::json;`) is no import, what is named of it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use xtask::paths::is_below;
use xtask::rust::{Source, closing, folder_of_children, parts};
use xtask::tree::{Finding, Tree, finding};

use crate::sources::RULES;

/// Parents that their children know and that name their children: a module and its parts, which are read together.
/// What a child takes from a parent of this list, or from one above that, is no import.
const WITH_THEIR_PARTS: &[&str] = &[
    "crates/agent/src/media.rs",
    "crates/agent/src/tools.rs",
    "crates/dialects/src/process/config/entry.rs",
    "crates/dialects/src/process/wire.rs",
    "crates/dialects/src/skill/manifest.rs",
    "crates/domain/src/audit/verify.rs",
    "crates/domain/src/checkpoint.rs",
    "crates/domain/src/clearing.rs",
    "crates/domain/src/execution.rs",
    "crates/domain/src/json.rs",
    "crates/domain/src/record.rs",
    "crates/domain/src/turn.rs",
    "crates/doors/src/mcp/listener.rs",
    "crates/egress/src/lib.rs",
    "crates/guard/src/trial.rs",
    "crates/host/src/config.rs",
    "crates/host/src/config/resolve.rs",
    "crates/host/src/config/trust.rs",
    "crates/host/src/rule_files.rs",
    "crates/pintle-cli/src/cli.rs",
    "crates/pintle-cli/src/cli/audit.rs",
    "crates/pintle-cli/src/cli/doctor.rs",
    "crates/pintle-cli/src/cli/hooks.rs",
    "crates/pintle-cli/src/cli/hooks/test.rs",
    "crates/pintle-cli/src/cli/sessions.rs",
    "crates/pintle-cli/src/cli/skills.rs",
    "crates/pintle-cli/src/cli/skills/explain.rs",
    "crates/pintle-cli/src/cli/why.rs",
    "crates/process/src/command.rs",
    "crates/providers/src/anthropic.rs",
    "crates/providers/src/lib.rs",
    "crates/providers/src/lower.rs",
    "crates/rules/src/admin.rs",
    "crates/rules/src/builtin.rs",
    "crates/rules/src/cache.rs",
    "crates/rules/src/handler.rs",
    "crates/rules/src/handler/observing.rs",
    "crates/rules/src/http.rs",
    "crates/rules/src/record.rs",
    "crates/rules/src/reply.rs",
    "crates/shell/src/code.rs",
    "crates/shell/src/read.rs",
    "crates/shell/src/run.rs",
    "crates/skills/src/lib.rs",
    "crates/store/src/keyring.rs",
    "crates/store/src/lib.rs",
    "crates/store/src/memory.rs",
    "crates/testkit/src/conformance/sessions.rs",
    "crates/testkit/src/rules.rs",
];

/// Longest chain of names handed on that is followed; beyond it they lead in a circle themselves.
const MAX_STEPS: usize = 16;

/// The names from the root of the crate to a module.
type Module = Vec<String>;

/// The imports of one file: the files, each with the names that are taken from it.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// No file imports itself by way of others.
pub(crate) fn circles(tree: &Tree) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in tree.sources().iter().filter(|source| !source.is_test) {
        match source.path.split_once("/src/") {
            Some((_, inside)) if inside == "main.rs" || inside.starts_with("bin/") => {}
            Some((name, _)) => crates.entry(name).or_default().push(source),
            None => {}
        }
    }
    let crates: Vec<BTreeMap<&str, Imports>> = crates.into_values().map(|sources| Crate::of(&sources).all()).collect();
    let is_needed = |path: &str| crates.iter().any(|imports| knows_itself(imports, path));
    let stale = WITH_THEIR_PARTS.iter().filter(|path| tree.has(RULES) && !is_needed(path));
    let stale = stale.map(|path| finding(path, 1, "nothing needs it any more: take it out of WITH_THEIR_PARTS"));
    crates.iter().cloned().flat_map(circles_of).chain(stale).collect()
}

/// Whether the file at `whole` imports itself by way of its parts alone.
fn knows_itself(imports: &BTreeMap<&str, Imports>, whole: &str) -> bool {
    let belongs = |file: &str| file == whole || is_part(file, whole);
    let parts = imports.iter().filter(|(file, _)| belongs(file));
    let mut within: BTreeMap<&str, Imports> = parts.map(|(file, taken)| (*file, taken.clone())).collect();
    within.values_mut().for_each(|taken| taken.retain(|file, _| belongs(file)));
    reached(&within, whole).contains(whole)
}

fn circles_of(mut imports: BTreeMap<&str, Imports>) -> Vec<Finding> {
    for (file, imports) in &mut imports {
        imports.retain(|other, _| !WITH_THEIR_PARTS.contains(&other.as_str()) || !is_part(file, other));
    }
    let reach: BTreeMap<&str, BTreeSet<&str>> = imports.keys().map(|file| (*file, reached(&imports, file))).collect();
    let mut findings = Vec::new();
    let mut told = BTreeSet::new();
    for (file, reached) in &reach {
        let circle: Vec<&str> = reached.iter().copied().filter(|other| reach[other].contains(file)).collect();
        if circle.len() > 1 && !told.contains(file) {
            let ties: Vec<String> = ties(&imports, &circle);
            let mend = format!(
                "{} files import each other: move what two of them share into a third\n    {}",
                circle.len(),
                ties.join("\n    ")
            );
            findings.push(finding(file, 1, mend));
        }
        told.extend(circle);
    }
    findings
}

/// Whether the file at `part` stands below the module at `whole`.
fn is_part(part: &str, whole: &str) -> bool {
    part != whole && is_below(part, folder_of_children(whole))
}

/// All files that `file` imports, by way of others too; itself if they lead back.
fn reached<'a>(imports: &'a BTreeMap<&'a str, Imports>, file: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next = vec![file];
    while let Some(file) = next.pop() {
        for other in imports.get(file).into_iter().flat_map(Imports::keys) {
            if reached.insert(other.as_str()) {
                next.push(other);
            }
        }
    }
    reached
}

fn ties(imports: &BTreeMap<&str, Imports>, circle: &[&str]) -> Vec<String> {
    let mut ties = Vec::new();
    for file in circle {
        for (other, names) in imports[file].iter().filter(|(other, _)| circle.contains(&other.as_str())) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            ties.push(format!("{file} -> {other}: {}", names.join(", ")));
        }
    }
    ties
}

/// A crate as its files declare, define and import names.
struct Crate<'a> {
    files: Vec<File<'a>>,
    /// The file in which each module stands; those within a file are here too.
    modules: BTreeMap<Module, usize>,
    /// The names that a module brings in.
    brought: BTreeMap<Module, Vec<Use>>,
    /// The names that a module defines.
    defined: BTreeMap<Module, BTreeSet<&'a str>>,
}

struct File<'a> {
    path: &'a str,
    module: Module,
    /// The code without `use`.
    code: String,
    /// Modules within the file: where they stand, and their names from the root.
    inner: Vec<(std::ops::Range<usize>, Module)>,
}

/// One name that `use` brings.
struct Use {
    path: Vec<String>,
    /// What it is called here; `*` for all names, `_` for none.
    name: String,
    /// Whether others may take it from here.
    hands_on: bool,
}

impl<'a> Crate<'a> {
    fn of(sources: &[&'a Source]) -> Self {
        let mut one =
            Self { files: Vec::new(), modules: BTreeMap::new(), brought: BTreeMap::new(), defined: BTreeMap::new() };
        for (at, source) in sources.iter().enumerate() {
            let file = File::of(source);
            one.modules.insert(file.module.clone(), at);
            one.modules.extend(file.inner.iter().map(|(_, module)| (module.clone(), at)));
            for (place, name) in definitions(&source.shipped) {
                one.defined.entry(file.module_at(place)).or_default().insert(name);
            }
            for (place, found) in uses(&source.shipped) {
                one.brought.entry(file.module_at(place)).or_default().extend(found);
            }
            one.files.push(file);
        }
        one
    }

    /// What each file imports.
    fn all(&self) -> BTreeMap<&'a str, Imports> {
        self.files.iter().map(|file| (file.path, self.imports(file))).collect()
    }

    /// The files that `file` imports.
    fn imports(&self, file: &File<'_>) -> Imports {
        static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\w+").expect("a pattern"));
        static PATH: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\w+(?:\s*::\s*\w+)+").expect("a pattern"));
        let words: BTreeSet<&str> = WORD.find_iter(&file.code).map(|word| word.as_str()).collect();
        let mut imports = Imports::new();
        let mut add = |found: Option<(usize, String)>| {
            if let Some((other, name)) = found.filter(|(other, _)| self.files[*other].path != file.path) {
                imports.entry(self.files[other].path.to_owned()).or_default().insert(name);
            }
        };
        let own = |(module, _): &(&Module, &Vec<Use>)| self.modules.get(*module).map(|at| self.files[*at].path);
        for (module, brought) in self.brought.iter().filter(|entry| own(entry) == Some(file.path)) {
            for one in brought.iter().filter(|one| !one.hands_on || words.contains(one.name.as_str())) {
                add(self.find(module, &one.path, 0));
            }
        }
        for found in PATH.find_iter(&file.code) {
            // What stands behind a type or a value is none of its module's names.
            if !file.code[..found.start()].ends_with(['.', ':', '>']) {
                let path: Vec<String> = found.as_str().split("::").map(|part| part.trim().to_owned()).collect();
                add(self.find(&file.module_at(found.start()), &path, 0));
            }
        }
        imports
    }

    /// The file that defines what `path` means in `module`, with its name; none for other crates and for modules.
    fn find(&self, module: &[String], path: &[String], steps: usize) -> Option<(usize, String)> {
        if steps > MAX_STEPS {
            return None;
        }
        let (first, rest) = path.split_first()?;
        let mut parent = module.to_vec();
        match first.as_str() {
            "crate" => self.find_in(&[], rest, steps),
            "self" => self.find_in(module, rest, steps),
            "super" => {
                parent.pop();
                match rest.first().map(String::as_str) {
                    Some("super") => self.find(&parent, rest, steps),
                    _ => self.find_in(&parent, rest, steps),
                }
            }
            name => {
                let is_here = self.modules.contains_key(&[module, std::slice::from_ref(first)].concat())
                    || self.brought.get(module).is_some_and(|all| all.iter().any(|one| one.name == name));
                is_here.then(|| self.find_in(module, path, steps)).flatten()
            }
        }
    }

    /// The same for a path that begins with a name of `module` itself.
    fn find_in(&self, module: &[String], path: &[String], steps: usize) -> Option<(usize, String)> {
        let (first, rest) = path.split_first()?;
        let inner = [module, std::slice::from_ref(first)].concat();
        if self.modules.contains_key(&inner) {
            return self.find_in(&inner, rest, steps);
        }
        let here = (*self.modules.get(module)?, first.clone());
        if first == "*" || self.defined.get(module).is_some_and(|names| names.contains(first.as_str())) {
            return Some(here);
        }
        let brought = self.brought.get(module).map_or(&[][..], Vec::as_slice);
        if let Some(one) = brought.iter().find(|one| one.name == *first) {
            // A name that is brought from another crate leads nowhere in this one.
            return self.find(module, &[one.path.as_slice(), rest].concat(), steps + 1);
        }
        let all = brought.iter().filter(|one| one.name == "*").find_map(|one| {
            let end = one.path.len() - 1;
            let found = self.find(module, &[&one.path[..end], path].concat(), steps + 1)?;
            self.defines(found.0, &found.1).then_some(found)
        });
        Some(all.unwrap_or(here))
    }

    fn defines(&self, file: usize, name: &str) -> bool {
        let mut names = self.defined.iter().filter(|(module, _)| self.modules.get(*module) == Some(&file));
        names.any(|(_, names)| names.contains(name))
    }
}

impl<'a> File<'a> {
    fn of(source: &'a Source) -> Self {
        static INNER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\bmod\s+(\w+)\s*\{").expect("a pattern"));
        let inside = folder_of_children(&source.path).split_once("/src").map_or("", |(_, inside)| inside);
        let module: Module = inside.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let mut file = Self { path: &source.path, module, code: without_uses(&source.shipped), inner: Vec::new() };
        for found in INNER.captures_iter(&source.shipped) {
            let (whole, name) = (found.get(0).expect("it matched"), &found[1]);
            let mut inner = file.module_at(whole.start());
            inner.push(name.to_owned());
            file.inner.push((whole.end()..closing(&source.shipped, whole.end() - 1), inner));
        }
        file
    }

    /// The module in which the place stands.
    fn module_at(&self, at: usize) -> Module {
        let innermost = self.inner.iter().rev().find(|(range, _)| range.contains(&at));
        innermost.map_or(&self.module, |(_, module)| module).clone()
    }
}

static USE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^\s*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);").expect("a pattern"));

fn without_uses(code: &str) -> String {
    let blank = |found: &regex::Captures<'_>| found[0].replace(|sign: char| sign != '\n', " ");
    USE.replace_all(code, blank).into_owned()
}

/// Every `use`: where it stands, and the names that it brings.
fn uses(code: &str) -> Vec<(usize, Vec<Use>)> {
    let found = USE.captures_iter(code).map(|found| {
        let tree = found.get(2).expect("the group is part of every match");
        let mut names = Vec::new();
        unfold(&[], tree.as_str(), found.get(1).is_some(), &mut names);
        (tree.start(), names)
    });
    found.collect()
}

fn unfold(before: &[String], tree: &str, hands_on: bool, names: &mut Vec<Use>) {
    let (front, group) = match tree.find('{') {
        Some(open) => (&tree[..open], Some(&tree[open + 1..closing(tree, open)])),
        None => (tree, None),
    };
    let (front, alias) = front.split_once(" as ").map_or((front, None), |(front, alias)| (front, Some(alias.trim())));
    let own = front.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned);
    let mut path: Vec<String> = before.iter().cloned().chain(own).collect();
    if let Some(group) = group {
        for part in parts(group) {
            unfold(&path, part, hands_on, names);
        }
        return;
    }
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = alias.map(str::to_owned).or_else(|| path.last().cloned()).unwrap_or_default();
    names.push(Use { path, name, hands_on });
}

/// The names that a file defines, and where.
fn definitions(code: &str) -> Vec<(usize, &str)> {
    static ITEM: LazyLock<Regex> = LazyLock::new(|| {
        let kinds = "struct|enum|union|trait|type|fn|const|static|macro_rules!";
        Regex::new(&format!(r"(?m)^\s*(?:pub(?:\([^)]*\))?\s+)?(?:async\s+|unsafe\s+)*(?:{kinds})\s+(?:fn\s+)?(\w+)"))
            .expect("a pattern")
    });
    let found = ITEM.captures_iter(code).filter_map(|found| found.get(1)).map(|name| (name.start(), name.as_str()));
    found.collect()
}
