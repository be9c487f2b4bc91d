//! Files, and pieces of them that end where a line does.

use std::fs;
use std::io::Write;

use model::ByteSize;
use proptest::prelude::*;
use remote::spread::{InputFile, cut, files, sample};

fn file(text: &[u8]) -> (tempfile::NamedTempFile, InputFile) {
    let mut made = tempfile::NamedTempFile::new().expect("a file");
    made.write_all(text).expect("written");
    let looked = InputFile::read_metadata(made.path()).expect("a file");
    (made, looked)
}

proptest! {
    #[test]
    fn pieces_are_whole_lines_and_everything(
        lines in prop::collection::vec(0usize..300, 0..60), piece in 1u64..2000, ends in any::<bool>()
    ) {
        let mut text = lines.iter().map(|len| "x".repeat(*len)).collect::<Vec<_>>().join("\n").into_bytes();
        if ends { text.push(b'\n'); }
        let (_made, file) = file(&text);
        let ranges = cut(&file, piece, u64::MAX).unwrap();
        let mut at = 0;
        for range in &ranges {
            prop_assert_eq!(range.offset, at);
            prop_assert!(range.bytes > 0);
            at += range.bytes;
            prop_assert!(at == file.bytes || text[at as usize - 1] == b'\n');
            // No more lines than it takes to be so long.
            let short = &text[range.offset as usize..(at - 1) as usize];
            let before = short.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place as u64 + 1);
            prop_assert!(before < piece);
        }
        prop_assert_eq!(at, file.bytes);
    }
}

#[test]
fn files_are_found_by_name_and_by_pattern() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["b.log", "a.log", "c[1].log"] {
        fs::write(folder.path().join(name), name).expect("written");
    }
    let named = |name: &str| files(folder.path().join(name).as_os_str());
    let names = |found: Vec<InputFile>| {
        let name = |file: &InputFile| Some(file.path.file_name()?.to_str()?.to_owned());
        found.iter().filter_map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(named("?.log").expect("two")), ["a.log", "b.log"]);
    assert_eq!(names(named("c[1].log").expect("itself")), ["c[1].log"]);
    for (name, words) in
        [("*.txt", "no file matches"), ("a.txt", "a.txt: ENOENT"), (".", "is a folder: an input is")]
    {
        let problem = named(name).expect_err("none");
        assert!(problem.contains(words), "{problem}");
    }
}

#[test]
fn a_sample_is_the_beginning_in_pieces() {
    let (_made, file) = file("line\n".repeat(1000).as_bytes());
    let bytes = |files: &[InputFile], split: Option<u64>, most| {
        let ranges = sample(files, split.map(ByteSize), ByteSize(most)).expect("ranges");
        ranges.iter().map(|range| range.bytes).collect::<Vec<_>>()
    };
    assert_eq!(bytes(std::slice::from_ref(&file), Some(1 << 20), 1000), [250; 4]);
    // Of less than is asked for, a quarter each.
    let files = [file.clone(), file.clone(), file];
    assert_eq!(bytes(&files[..2], Some(1 << 20), 1 << 20), [2500; 4]);
    // Happened: files that the work takes whole were cut, and packed ones were refused because of a --split that was not given.
    assert_eq!(bytes(&files, None, 1000), [5000; 2]);
    assert_eq!(bytes(&files, None, 11_000), [5000; 3]);
    let (_made, packed) = self::file(b"\x1f\x8b and more of it");
    let files = [packed.clone(), packed];
    assert_eq!(bytes(&files, None, 8), [17; 2]);
    assert_eq!(bytes(&files, Some(100), 1 << 20), [17; 2]);
}
