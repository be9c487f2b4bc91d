//! Counts the lines of every mechanism's implementation, for a table of the study `stover`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const REGISTRY: &str = "src/registry";

/// A module of the registry: a file, and the folder of the same name if there is one.
struct Module {
    lines: usize,
    text: String,
}

fn main() {
    println!("cargo:rerun-if-changed={REGISTRY}");
    let modules = modules(Path::new(REGISTRY));
    let mut table = String::from("&[\n");
    for name in modules.keys() {
        let own = modules[name].lines;
        let all: usize = with_used(name, &modules).into_iter().map(|module| modules[module].lines).sum();
        table.push_str(&format!("    (\"{name}\", {own}, {all}),\n"));
    }
    table.push_str("]\n");
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).expect("cargo sets OUT_DIR");
    fs::write(out.join("lines.rs"), table).expect("OUT_DIR can be written to");
}

fn modules(registry: &Path) -> BTreeMap<String, Module> {
    let mut modules = BTreeMap::new();
    for file in rust_files(registry) {
        let inside = file.strip_prefix(registry).expect("below the folder");
        let first = inside.components().next().expect("a name");
        let name = Path::new(first.as_os_str()).file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).expect("a readable source");
        let module = modules.entry(name).or_insert_with(|| Module { lines: 0, text: String::new() });
        module.lines += lines_of_code(&text);
        module.text.push_str(&text);
    }
    modules
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the registry is a folder of this crate");
    let paths = entries.map(|entry| entry.expect("a readable entry").path());
    let mut files: Vec<PathBuf> = paths
        .flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    files.sort();
    files
}

/// Lines that are neither blank nor a comment, up to the tests, which are at the end of a file.
fn lines_of_code(text: &str) -> usize {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// A module and all modules of the registry that it uses, directly or through others.
fn with_used<'a>(name: &'a str, modules: &'a BTreeMap<String, Module>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::from([name]);
    let mut left = vec![name];
    while let Some(next) = left.pop() {
        let text = &modules[next].text;
        for other in modules.keys().filter(|other| names(text, other)) {
            if found.insert(other) {
                left.push(other);
            }
        }
    }
    found
}

/// Whether a text contains `super::NAME::`. A submodule with the same name counts as the module, so the result may have a
/// few lines too many.
fn names(text: &str, module: &str) -> bool {
    text.contains(&format!("super::{module}::")) || text.contains(&format!("registry::{module}::"))
}
