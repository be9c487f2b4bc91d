//! The ways of showing a document: in a terminal, as Markdown, as HTML; and of a table: as CSV. Each is a file that knows documents and
//! tables, and no records.

mod csv;
mod html;
mod markdown;
mod terminal;

pub(crate) use markdown::escaped;

#[cfg(test)]
mod tests {
    use crate::layout::{Tone, width};
    use crate::sheet::{Sheet, col};
    use crate::table::{Fit, Style, Table};
    use crate::unit::Unit;

    fn terminal(table: &Table, width: usize) -> String {
        table.terminal(&Style { width, ..Style::default() })
    }

    fn ways() -> Table {
        let rows = [("pipe:recv=splice,size=1MiB", Some(1.4e9), Some(52e3)), ("tcp", None, None)];
        let mut sheet = Sheet::new(&rows);
        sheet.add(col("way").fit(Fit::Spec), |row| Some(row.0.into()));
        sheet.add("speed", |row| Some(Unit::BytesPerS.of(row.1?)));
        sheet.bars(2, 3, |row| row.1.map(|_| 1.0));
        sheet.add(col("nothing").drop(3), |_| None);
        sheet.add("round trip", |row| Some(Unit::Ns.of(row.2?)));
        let mut table = sheet.table();
        table.title = "ways".to_owned();
        table.rows[0].tone = Tone::Bold;
        table.rows[1].reasons = vec!["there is no | network".to_owned()];
        table
    }

    #[test]
    fn a_terminal_has_the_columns_that_fit_and_reasons_below() {
        let wide = "
 way                             speed       round trip
 pipe:recv=splice,size=1MiB  1.40 GB/s  ███     52.0 µs
 tcp                         – there is no | network
";
        assert_eq!(format!("\n{}", terminal(&ways(), 80)), wide);
        let narrow = "
 way                    speed  round trip
 pipe:recv=splice,  1.40 GB/s     52.0 µs
   size=1MiB
 tcp                – there is no |
                      network
";
        assert_eq!(format!("\n{}", terminal(&ways(), 41)), narrow);
        let below = terminal(&ways(), 36);
        assert!(
            below.contains("\n\n way                round trip\n"),
            "the first column comes again: {below}"
        );
        for columns in 24..80 {
            let text = terminal(&ways(), columns);
            assert!(text.lines().all(|line| width(line) <= columns), "{columns} columns:\n{text}");
        }
    }

    #[test]
    fn words_are_wrapped_and_commands_cut() {
        let row =
            ["cat a/long/path of files", "no such program: apt-get install it"].map(str::to_owned).to_vec();
        let columns = [col("command").fit(Fit::Cut), col("remark").fit(Fit::Wrap)];
        let expected = "
 command         remark
 cat a/long/pa…  no such program: apt-get
                 install it
";
        assert_eq!(format!("\n{}", terminal(&Table::new("", columns, [row]), 41)), expected);
    }

    #[test]
    fn markdown_and_html_have_no_pictures_and_a_column_for_reasons() {
        let expected = "\
| way | speed | round trip | why not |
| --- | ---: | ---: | --- |
| `pipe:recv=splice,size=1MiB` | 1.40 GB/s | 52.0 µs |  |
| `tcp` | – | – | there is no \\| network |
";
        assert_eq!(ways().markdown(), expected);
        let html = ways().html().into_string();
        assert!(html.contains("<th scope=\"row\">tcp</th><td class=\"number whole\">–</td>"), "{html}");
        assert!(html.contains("<td>there is no | network</td>") && !html.contains('█'), "{html}");
    }
}
