//! The habits of the house, held by a test: documentation that repeats the registry is fresh, files hold one
//! idea, every module says what it is for.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Above this a file of ours holds more than one idea.
const LINES_MAX: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect(path)
}

/// Every Rust file below `folder`, except build outputs and what symbolic links lead to.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of the checkout");
    let paths = entries.map(|entry| entry.expect("a readable entry").path());
    let visible =
        |path: &PathBuf| path.file_name().is_some_and(|name| name != "target") && !path.is_symlink();
    paths
        .filter(visible)
        .flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

#[test]
fn the_page_of_mechanisms_is_what_the_registry_says() {
    let output = Command::new(env!("CARGO_BIN_EXE_hosepipe")).args(["list", "--md"]).output().expect("runs");
    let fresh = String::from_utf8(output.stdout).expect("text");
    assert!(
        text("docs/MECHANISMS.md") == fresh,
        "docs/MECHANISMS.md is stale: hosepipe list --md > docs/MECHANISMS.md"
    );
}

#[test]
fn every_mechanism_has_its_file_in_the_registry() {
    let folder = root().join("crates/mechanism/src/registry");
    for mechanism in mechanism::all() {
        let name = mechanism.name;
        let file = folder.join(format!("{}.rs", name.replace('-', "_")));
        assert!(file.is_file(), "{name} should live in {}", file.display());
    }
}

#[test]
fn every_file_is_short_and_says_what_it_is_for() {
    let files = rust_files(&root().join("crates"));
    assert!(files.len() > 50, "the walk found the tree");
    for file in files {
        let text = std::fs::read_to_string(&file).expect("readable");
        assert!(text.starts_with("//!"), "{} does not say what it is for", file.display());
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines: does it hold one idea?", file.display());
    }
}

/// The picture in docs/ARCHITECTURE.md: a crate uses only crates of lower layers, and stands in it.
#[test]
fn crates_use_only_crates_of_lower_layers() {
    let page = text("docs/ARCHITECTURE.md");
    let picture = page.split("```").nth(1).expect("a picture");
    let crates: Vec<String> = std::fs::read_dir(root().join("crates"))
        .expect("the crates")
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().expect("a name"))
        .collect();
    // A line names the crates of a layer; what it says of them is behind more than three blanks.
    let layer_of = |name: &str| {
        let names = |line: &str| {
            line.trim()
                .split("    ")
                .next()
                .is_some_and(|names| names.split_whitespace().any(|word| word == name))
        };
        picture.lines().position(names).unwrap_or_else(|| panic!("{name} is not in the picture"))
    };
    for user in &crates {
        let manifest = text(&format!("crates/{user}/Cargo.toml"));
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default().split("\n[").next();
        let names =
            dependencies.unwrap_or_default().lines().filter_map(|line| line.split(['.', ' ', '=']).next());
        for used in names.filter(|name| crates.iter().any(|known| known == name)) {
            assert!(layer_of(used) > layer_of(user), "{user} uses {used}, which is no lower layer");
        }
    }
}

/// Each test program is linked by itself, which takes longer than most of the tests.
#[test]
fn the_tests_of_a_crate_are_one_program() {
    for crate_folder in std::fs::read_dir(root().join("crates")).expect("the crates").flatten() {
        let tests = crate_folder.path().join("tests");
        // Beside them are cases that a property once failed for, and programs in which a model checker is `std`.
        let has_own_std =
            |name: &Path| std::fs::read_to_string(name).is_ok_and(|text| text.contains(" as std;"));
        let is_program =
            |name: &Path| name.extension().is_some() && !has_own_std(name) || name.join("main.rs").is_file();
        let programs = std::fs::read_dir(&tests)
            .map_or(0, |entries| entries.flatten().filter(|entry| is_program(&entry.path())).count());
        assert!(programs <= 1, "{} holds {programs} programs", tests.display());
    }
}

/// docs/SUMMARY.md, the contents of the book, has each page once.
#[test]
fn the_book_has_every_page() {
    let contents = text("docs/SUMMARY.md");
    let mut listed: Vec<&str> =
        contents.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    listed.sort_unstable();
    let pages = std::fs::read_dir(root().join("docs")).expect("docs").flatten();
    let names = pages.filter_map(|entry| entry.file_name().into_string().ok());
    let mut pages: Vec<String> = names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md").collect();
    pages.sort_unstable();
    assert_eq!(listed, pages);
}

/// Every page that a page of ours links to is there, and every source that it names.
#[test]
fn links_and_sources_that_our_pages_name_are_there() {
    let docs = std::fs::read_dir(root().join("docs")).expect("docs").flatten().map(|entry| entry.path());
    let pages = docs.chain(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name)));
    let workers = std::fs::read_dir(root().join("workers")).expect("workers").flatten();
    let pages =
        pages.chain(workers.map(|entry| entry.path().join("README.md")).filter(|page| page.is_file()));
    for page in pages.filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
        let text = std::fs::read_to_string(&page).expect("readable");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let external = target.is_empty() || target.contains("://");
            let there = page.parent().is_some_and(|folder| folder.join(target).exists());
            assert!(external || there, "{} links to {target}", page.display());
        }
        // Sources are named from the root, from `crates`, or as a room and a file of it.
        let is_source =
            |word: &&str| word.ends_with(".rs") && word.contains("/") && !word.contains(['*', ' ', '{']);
        for source in text.split('`').filter(is_source).filter(|word| !word.contains("NAME")) {
            let of_a_room = source.split_once('/').map(|(room, file)| format!("crates/{room}/src/{file}"));
            let places = [Some(source.to_owned()), Some(format!("crates/{source}")), of_a_room];
            let there = places.into_iter().flatten().any(|place| root().join(place).is_file());
            assert!(there, "{} names {source}", page.display());
        }
    }
}

/// `println!` and its kin panic where the stream takes nothing, `Command::output` where a read fails.
#[test]
fn nothing_is_printed_or_read_by_what_panics() {
    for file in rust_files(&root().join("crates")) {
        let text = std::fs::read_to_string(&file).expect("readable");
        let of_the_program = file.components().any(|part| part.as_os_str() == "src");
        let prints = ["print!(", "println!("].iter().any(|name| text.contains(name));
        assert!(!of_the_program || !prints, "{} prints by a macro", file.display());
        assert!(!of_the_program || !text.contains(".output()"), "{}: process::output", file.display());
    }
}

/// A release has no tables of the unwinder. An error that takes a backtrace, as `anyhow` does by default where RUST_BACKTRACE is set, would
/// abort the program without a word.
#[test]
fn errors_take_no_backtrace() {
    assert!(text("Cargo.toml").contains("\nanyhow = { version = \"1\", default-features = false }\n"));
}

#[test]
fn the_readme_is_short_and_names_the_two_commands() {
    let readme = text("README.md");
    assert!(readme.lines().count() <= 130);
    assert!(readme.contains("cargo run --release -- bench"));
    assert!(readme.contains("cargo test --workspace"));
}

/// The table at the end of docs/DECISIONS.md has each dependency that the workspace names, and no other.
#[test]
fn every_dependency_has_its_reason() {
    let manifest = text("Cargo.toml");
    let dependencies =
        manifest.split("[workspace.dependencies]").nth(1).expect("a section").split("\n[").next();
    let lines = dependencies.into_iter().flat_map(str::lines).filter(|line| !line.contains("path = \""));
    let named: Vec<&str> = lines.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect();
    let page = text("docs/DECISIONS.md");
    let table = page.split("## Dependencies\n").nth(1).expect("a table");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let reasons: Vec<&str> = rows.map(|(name, _)| name).collect();
    assert!(named.len() > 30, "the section was found");
    for name in &named {
        assert!(reasons.contains(name), "docs/DECISIONS.md gives no reason for the dependency {name}");
    }
    for name in &reasons {
        assert!(named.contains(name), "docs/DECISIONS.md has a reason for {name}, which is no dependency");
    }
    // A crate names its dependencies in the workspace's section only.
    for folder in std::fs::read_dir(root().join("crates")).expect("the crates").flatten() {
        let Ok(manifest) = std::fs::read_to_string(folder.path().join("Cargo.toml")) else { continue };
        let sections = manifest.split("\n[").filter(|section| section.contains("dependencies]\n"));
        let outside = sections
            .flat_map(|section| section.lines().skip(1))
            .find(|line| !line.is_empty() && !line.starts_with('#') && !line.contains("workspace = true"));
        assert_eq!(outside, None, "{}", folder.path().display());
    }
}
