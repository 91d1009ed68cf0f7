//! What is shown of jobs and records that earlier versions stored.

use super::{full, list, options, utc, xml};
use crate::client::ShownReply;
use crate::commands::captured;
use proto::wire::client::Reply;
use proto::wire::frame::{Frame, Kind};
use proto::wire::view::Data;

/// Jobs of today have no such names, but stored ones and accounting records may.
#[test]
fn a_stored_name_with_control_characters_commands_no_terminal() {
    let name = "a\x1b[2J\nb";
    let mut row = captured::jobs().swap_remove(0);
    row.name = name.to_owned();
    let mut record = crate::commands::qacct::tests::record();
    record.job_name = name.to_owned();
    let read = |data: Data| {
        let frame = Frame::new(Kind::Reply, 1, &Reply::data(data));
        Reply::from(frame.message::<ShownReply>().unwrap()).data
    };
    let (Some(Data::Jobs(rows)), Some(Data::Accounting(records))) =
        (read(Data::Jobs(vec![row])), read(Data::Accounting(vec![record])))
    else {
        panic!()
    };
    let shown = "a\\u{1b}[2J\\nb";
    assert_eq!((&*rows[0].name, &*records[0].job_name), (shown, shown));
    for line in ["", "-r", "-f", "-xml"] {
        let options = options(line);
        let text = match line {
            "-f" => full::render(&captured::queues(), &rows, &options, &utc()),
            "-xml" => xml::list(&rows, &[], &options, &utc()),
            _ => list::render(&rows, &[], &options, &utc()),
        };
        assert!(
            text.chars()
                .all(|character| character == '\n' || !character.is_control()),
            "{line}:\n{text}"
        );
    }
}
