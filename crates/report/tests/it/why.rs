//! docs/WHY.md, which is made of the table of causes.

use std::fs;
use std::path::Path;

/// Expected: the page has every cause as the table has it.
#[test]
fn the_page_is_made_of_the_table() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/WHY.md");
    let page = report::why::page();
    if std::env::var_os("HOSEPIPE_WRITE_WHY").is_some() {
        fs::write(&file, &page).expect("written");
    }
    let kept = fs::read_to_string(&file).expect("docs/WHY.md");
    assert!(
        kept == page,
        "docs/WHY.md is stale: HOSEPIPE_WRITE_WHY=1 cargo test -p hosepipe-report --test it why"
    );
}
