//! What `qconf` reads from files and editors, against seeded mutations.

use super::text;
use crate::fuzz::mutate::Mutator;
use proto::object::{LineWrap, ObjectKind};

/// Inputs of each kind.
const INPUTS: usize = 100;

#[test]
fn objects_from_files_and_editors_print_as_what_they_were_read_from() {
    let kinds = [
        ObjectKind::Queue,
        ObjectKind::ExecHost,
        ObjectKind::HostGroup,
        ObjectKind::Pe,
        ObjectKind::ClusterConf,
        ObjectKind::SchedulerConf,
    ];
    for kind in kinds {
        let name = if kind == ObjectKind::HostGroup { "@x" } else { "x" };
        let template = kind.template(name).unwrap().print(kind, LineWrap::At80);
        let crlf = template.replace('\n', "\r\n");
        let commented = format!("# a comment\n{}", template.trim_end());
        let parse = |text: &str| text::parse(kind, "global", text);
        assert_eq!(parse(&template).err(), None, "{kind}");
        assert_eq!(
            parse(&crlf),
            parse(&template),
            "{kind}: line ends of another system mean nothing"
        );
        assert_eq!(
            parse(&commented),
            parse(&template),
            "{kind}: nor do comments, or a last line without an end"
        );
        let mut mutator = Mutator::new(vec![template, crlf, commented], 1);
        for _ in 0..INPUTS {
            let given = mutator.text();
            match parse(&given) {
                Ok(fields) => {
                    let shown = [LineWrap::At80, LineWrap::SingleLine].map(|wrap| text::draft(kind, &fields, wrap));
                    shown
                        .iter()
                        .for_each(|shown| assert_eq!(parse(shown).as_ref(), Ok(&fields), "{given}\n{shown}"));
                }
                Err(refusals) => assert!(refusals.iter().all(|refusal| !refusal.what.is_empty()), "{refusals:?}"),
            }
        }
    }
}
