use super::*;
use crate::host::Domains;
use proptest::prelude::*;

fn reader(limits: Limits) -> Reader {
    Reader::new(limits, SelfNames::new(&"vm".into(), [], Domains::Compare))
}

/// The blocks, as `name=value` texts, and the kinds of the warnings that `text` brings.
fn read(limits: Limits, text: &str) -> (Vec<Vec<String>>, Vec<WarningKind>) {
    let mut reader = reader(limits);
    reader.request_sent();
    let (mut blocks, mut warnings) = (Vec::new(), Vec::new());
    reader.feed(text.as_bytes(), |heard| match heard {
        ProtocolItem::Line(..) => {}
        ProtocolItem::Block(block) => {
            blocks.push(
                block
                    .values()
                    .iter()
                    .map(|((_, name), value)| format!("{name}={value}"))
                    .collect(),
            );
        }
        ProtocolItem::Warning(kind, _) => warnings.push(kind),
    });
    (blocks, warnings)
}

fn check(text: &str, blocks: &[&[&str]], warnings: &[WarningKind]) {
    let (found, warned) = read(Limits::default(), text);
    assert_eq!(found, blocks, "{text:?}");
    assert_eq!(warned, warnings, "{text:?}");
}

#[test]
fn t2_a_block_opens_with_begin_or_start_or_not_at_all() {
    check("begin\nvm:a:1\nend\n", &[&["a=1"]], &[]);
    check("start\nvm:a:1\nend\n", &[&["a=1"]], &[]);
    check("vm:a:1\nend\n", &[&["a=1"]], &[WarningKind::NoBegin]);
}

#[test]
fn t3_data_before_an_opener_is_held_and_dropped_and_junk_is_ignored() {
    check(
        "vm:a:1\nbegin\nvm:b:2\nend\n",
        &[&["b=2"]],
        &[WarningKind::DataBeforeBegin],
    );
    check(
        "starting up\nbegin\nvm:b:2\nend\n",
        &[&["b=2"]],
        &[WarningKind::NotUnderstood],
    );
    check(
        "begin\n** Error: x: y\nvm:b:2\nend\n",
        &[&["b=2"]],
        &[WarningKind::NotUnderstood],
    );
}

#[test]
fn t5_an_empty_value_is_missing_and_the_block_still_good() {
    check("begin\nvm:a:\nvm:b:2\nend\n", &[&["b=2"]], &[WarningKind::EmptyValue]);
    check("begin\nvm:a:1\nvm:a:\nend\n", &[&[]], &[WarningKind::EmptyValue]);
    check("begin\n:a:1\nend\n", &[&["a=1"]], &[WarningKind::EmptyHost]);
}

#[test]
fn a_line_that_is_too_long_has_no_value_and_its_block_says_so() {
    let limits = Limits {
        line_bytes: 20,
        ..Limits::default()
    };
    let mut reader = reader(limits);
    let mut blocks = Vec::new();
    let text = format!(
        "begin\nvm:a:1\nvm:b:{}\nvm:c:{}\nend\nbegin\nend\n",
        "x".repeat(40),
        "y".repeat(40)
    );
    reader.feed(text.as_bytes(), |heard| {
        if let ProtocolItem::Block(block) = heard {
            blocks.push(block);
        }
    });
    let [first, second] = &blocks[..] else {
        panic!("{blocks:?}")
    };
    assert_eq!(first.values().len(), 1);
    assert_eq!(
        (first.long_lines().count, first.long_lines().first.as_str()),
        (2, "\"vm:b:xxxxxxxxxxxxxxx\"")
    );
    assert_eq!(second.long_lines().count, 0);
}

#[test]
fn t6_an_empty_block_is_a_success() {
    check("begin\nend\n", &[&[]], &[]);
    check("end\n", &[&[]], &[WarningKind::NoBegin]);
}

#[test]
fn t11_several_blocks_each_replace_the_one_before() {
    check(
        "begin\nvm:a:1\nvm:a:2\nend\nbegin\nvm:b:3\nend\n",
        &[&["a=2"], &["b=3"]],
        &[],
    );
    check("begin\nvm:a:1\nend\nend\n", &[&["a=1"]], &[WarningKind::StrayEnd]);
}

#[test]
fn a_new_begin_discards_the_unfinished_block() {
    check(
        "begin\nvm:a:1\nbegin\nvm:b:2\nend\n",
        &[&["b=2"]],
        &[WarningKind::UnfinishedBlock],
    );
}

#[test]
fn an_empty_line_is_nothing_which_hung_8_1_9() {
    check("\n\r\n  \nbegin\n\nvm:a:1\n\nend\n\n", &[&["a=1"]], &[]);
}

#[test]
fn recorded_malformed_sensor_keeps_its_good_lines() {
    let text = "begin\nnocolon\nvm:lsa\nvm:lsb:1:2:3\nvm:lsc:a:b:c\nvm:lsd:\n:lsa:5\nvm::5\nvm:lsf:notanumber\nvm : lse : 44\nend\n";
    let (blocks, warnings) = read(Limits::default(), text);
    assert_eq!(
        blocks,
        [["lsa=5", "lsb=1:2:3", "lsc=a:b:c", "lse=44", "lsf=notanumber"]]
    );
    assert_eq!(warnings.len(), 5);
}

#[test]
fn a_block_beyond_its_limits_keeps_its_beginning() {
    let limits = Limits {
        block_values: 2,
        ..Limits::default()
    };
    let (blocks, warnings) = read(limits, "begin\nvm:a:1\nvm:b:2\nvm:c:3\nend\n");
    assert_eq!(blocks, [["a=1", "b=2"]]);
    assert_eq!(warnings, [WarningKind::BlockTooLarge]);
    let limits = Limits {
        block_bytes: 5,
        ..Limits::default()
    };
    assert_eq!(read(limits, "begin\nvm:a:1\nvm:b:22222\nend\n").0, [["a=1"]]);
}

#[test]
fn an_over_long_line_is_ignored_because_its_value_is_incomplete() {
    let limits = Limits {
        line_bytes: 10,
        ..Limits::default()
    };
    let (blocks, warnings) = read(limits, "begin\nvm:a:123456789\nvm:b:2\nend\n");
    assert_eq!(blocks, [["b=2"]]);
    assert_eq!(warnings, [WarningKind::LineTooLong]);
}

proptest! {
    #[test]
    fn any_bytes_are_borne_within_the_limits(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let limits = Limits { line_bytes: 16, block_values: 3, block_bytes: 40, ..Limits::default() };
        let mut reader = reader(limits);
        reader.feed(&bytes, |heard| if let ProtocolItem::Block(block) = heard { assert!(block.values().len() <= 3) });
        prop_assert!(reader.held.block.values().len() <= 3);
    }

    #[test]
    fn what_is_written_is_read(values in proptest::collection::btree_map("[a-z]{1,5}", "[a-z0-9]{1,9}", 0..9)) {
        let lines: String = values.iter().map(|(name, value)| format!("vm:{name}:{value}\n")).collect();
        let (blocks, _) = read(Limits::default(), &format!("begin\n{lines}end\n"));
        let expected: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
        prop_assert_eq!(blocks, vec![expected]);
    }
}
