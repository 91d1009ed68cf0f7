use super::*;
use crate::amount::Amount;
use crate::complex::Complex;
use crate::id::TaskId;
use proptest::prelude::*;

fn slots(text: &str) -> SlotRange {
    SlotRange::parse(text).unwrap()
}

fn tasks(text: &str) -> TaskSet {
    TaskSet::parse(text).unwrap()
}

#[test]
fn slot_ranges_read_every_form_of_the_manual() {
    let cases = [
        ("4", "4"),
        ("2-8", "2-8"),
        ("4-", "4-9999999"),
        ("-6", "1-6"),
        ("4,8,16", "4,8,16"),
        ("4-2", "2-4"),
        ("1,2,3", "1-3"),
        ("8-10,1-3,2-5", "1-5,8-10"),
        ("16,4-", "4-9999999"),
        ("4:6", "4-6"),
        ("8:2", "2-8"),
        ("3-4", "3,4"),
        ("8,4,2,1", "1,2,4,8"),
        ("1,3,5", "1,3,5"),
        ("2-4,5:8", "2-8"),
        ("1,,4,", "1,4"),
    ];
    for (text, printed) in cases {
        assert_eq!(slots(text).to_string(), printed, "{text}");
    }
}

#[test]
fn a_slot_range_says_what_it_contains() {
    let range = slots("2-4,8,16-");
    assert_eq!((range.least(), range.largest()), (2, RANGE_MAX));
    assert!(range.contains(3) && range.contains(8) && !range.contains(5));
    assert_eq!(range.iter().take(5).collect::<Vec<_>>(), [2, 3, 4, 8, 16]);
    assert_eq!(
        [1, 2, 7, 12, 20].map(|free| range.largest_within(free)),
        [None, Some(2), Some(4), Some(8), Some(20)]
    );
}

#[test]
fn ranges_are_refused_in_the_words_of_8_1_9() {
    let slots = |text: &str| SlotRange::parse(text).unwrap_err().to_string();
    assert_eq!(slots("0"), "\"job\" rejected: pe range must be greater than zero");
    assert_eq!(
        slots("abc"),
        "Numerical value invalid!\nThe initial portion of string \"abc\" contains no decimal number"
    );
    assert_eq!(slots("1-9:2"), "Range specifier \"9:2\" has unknown trailer \":2\"");
    assert!(slots("99999999").contains("above 9999999"));
    assert!(SlotRange::parse("").is_err() && SlotRange::parse("-").is_err() && SlotRange::parse(",").is_err());
    assert_eq!(slots("4:"), "Range specifier \"4:\" has unknown trailer \":\"");
    assert_eq!(slots("1:2:3"), "Range specifier \"2:3\" has unknown trailer \":3\"");
    assert_eq!(slots("1.5"), "Range specifier \"1.5\" has unknown trailer \".5\"");
    let tasks = |text: &str| TaskRange::parse(text).unwrap_err().to_string();
    assert_eq!(tasks("0-5"), "job rejected: 0 is an invalid task id");
    assert_eq!(tasks("1-5:0"), "Negative or zero step in range is not allowed");
    assert_eq!(tasks("1-5:-1"), "Negative or zero step in range is not allowed");
    assert_eq!(
        tasks("abc"),
        "Numerical value invalid!\nThe initial portion of string \"abc\" contains no decimal number"
    );
    for (text, trailer) in [
        ("1-3-5", "3-5|-5"),
        ("1-3:2:1", "2:1|:1"),
        ("1:3-5", "3-5|-5"),
        ("1-2a", "2a|a"),
    ] {
        let (specifier, trailer) = trailer.split_once('|').unwrap();
        assert_eq!(
            tasks(text),
            format!("Range specifier \"{specifier}\" has unknown trailer \"{trailer}\"")
        );
    }
    for text in ["1,2,4", "1-3:2,4", "1-7:2,4", "1-3,5", "1-5:2,6-10:2", "1-6,7-12:2"] {
        assert_eq!(tasks(text), "-t option only allows one range specification", "{text}");
    }
    assert_eq!(
        tasks("1-9999999:2,2-9999999:2,3-9999999:2"),
        "the list names more than 9999999 tasks"
    );
    for text in ["1-", "1:", "-5", ":5", "1-3:", "1-3:x", "1--3", "", ","] {
        assert!(TaskRange::parse(text).is_err(), "{text}");
    }
    assert_eq!(SlotRange::parse("0").unwrap_err().diagnostic().code, Code::JobRejected);
    assert_eq!(SlotRange::parse("x").unwrap_err().diagnostic().code, Code::BadSyntax);
}

#[test]
fn task_ranges_print_as_qsub_does() {
    let printed = |text: &str| TaskRange::parse(text).unwrap().to_string();
    assert_eq!(printed("1-10:2"), "1-10:2");
    assert_eq!(printed("5"), "5-5:1");
    assert_eq!(printed("5-1"), "1-5:1");
    for (text, expected) in [
        ("1:500", "1-500:1"),
        ("1:9:3", "1-9:3"),
        ("3:1", "1-3:1"),
        ("5-1:3", "1-5:3"),
        ("1-9:10", "1-9:10"),
        ("1,2,3", "1-3:1"),
        ("3,2,1", "1-3:1"),
        ("1,3,5", "1-5:2"),
        ("1,10", "1-10:9"),
        ("5,5,5", "5-5:1"),
        ("1-3,4-6", "1-6:1"),
        ("10,1:9", "1-10:1"),
        ("1-5:2,7", "1-7:2"),
        ("1-7:2,3", "1-7:2"),
        ("1,4-7:3", "1-7:3"),
        ("1-4:3,7:10:3", "1-10:3"),
        ("1,,2,", "1-2:1"),
        ("1-400001:2,400003", "1-400003:2"),
        ("1-9:2,2-10:2", "1-10:1"),
        ("1-9:4,3-7:4", "1-9:2"),
        ("1-100:3,2-100:3,3-99:3", "1-100:1"),
        ("1-9999999:2,2-9999998:2", "1-9999999:1"),
        (" 1- 3", "1-3:1"),
    ] {
        assert_eq!(printed(text), expected, "{text}");
    }
    let range = TaskRange::parse("1-10:2").unwrap();
    assert_eq!(range.iter().map(|task| task.0).collect::<Vec<_>>(), [1, 3, 5, 7, 9]);
    assert_eq!(
        (range.first(), range.last(), range.step(), range.count()),
        (1, 10, 2, 5)
    );
    assert!(range.contains(TaskId(9)) && !range.contains(TaskId(10)) && !range.contains(TaskId(11)));
}

#[test]
fn task_sets_print_as_qstat_does() {
    let cases = [
        ("1-3,7", "1-3:1,7"),
        ("5-10:1", "5-10:1"),
        ("3,5", "3,5"),
        ("1-10:2", "1-9:2"),
        ("1,2", "1,2"),
        ("1,3,5,6", "1,3,5,6"),
        ("1-2,4-5,7-8,12", "1,2,4,5,7,8,12"),
        ("2,4,6,20", "2-6:2,20"),
        ("", ""),
    ];
    for (text, printed) in cases {
        assert_eq!(tasks(text).to_string(), printed, "{text}");
    }
    assert_eq!(TaskSet::parse("1-9999999:2"), Err(RangeError::TooManyPieces));
    assert_eq!(tasks("1-9999999").len(), 9_999_999);
}

#[test]
fn ranges_are_stored_as_text() {
    let json = serde_json::to_string(&slots("2-4,8")).unwrap();
    assert_eq!(json, "\"2-4,8\"");
    assert_eq!(serde_json::from_str::<SlotRange>(&json).unwrap(), slots("2-4,8"));
    assert!(serde_json::from_str::<TaskRange>("\"0-3\"").is_err());
}

#[test]
fn requests_split_at_commas_outside_quotes() {
    let list = |text: &str| ResourceList::parse(text).unwrap().to_string();
    assert_eq!(list("a=b,c=d,e"), "a=b,c=d,e");
    assert_eq!(list("h_vmem=1G, ,h_rt=1:0:0,"), "h_vmem=1G,h_rt=1:0:0");
    assert_eq!(list("arch=lx*|sol*,x=(a&!b)"), "arch=lx*|sol*,x=(a&!b)");
    assert_eq!(list(""), "");
    let quoted = ResourceList::parse("a=\"x,y\",b='p,q',c=don't,d").unwrap();
    assert_eq!(
        quoted.iter().map(|request| request.name.as_str()).collect::<Vec<_>>(),
        ["a", "b", "c", "d"]
    );
    let value = ResourceList::parse("a=b=c").unwrap();
    assert_eq!(
        value.iter().next().and_then(|request| request.value.as_deref()),
        Some("b=c")
    );
    assert!(ResourceList::parse("=5").is_err());
}

#[test]
fn a_name_with_a_quotation_mark_is_refused() {
    for text in ["a=1,y\"=2", "'b'=1", "a=\"x,y\":0,y\"=\"z"] {
        assert_eq!(
            ResourceList::parse(text).unwrap_err().code,
            Code::UnknownResource,
            "{text}"
        );
    }
}

#[test]
fn the_same_name_again_overrides_in_its_place_within_a_list_and_at_the_end_in_a_later_one() {
    let mut list = ResourceList::parse("arch=x,h_rt=1,arch=y").unwrap();
    assert_eq!(list.to_string(), "arch=y,h_rt=1");
    list.merge(ResourceList::parse("h_rt=2,exclusive,arch=z").unwrap());
    assert_eq!(list.to_string(), "h_rt=2,exclusive,arch=z");
}

#[test]
fn blanks_part_requests() {
    let list = |text: &str| ResourceList::parse(text).unwrap().to_string();
    assert_eq!(list("lic=1 h_vmem=1G"), "lic=1,h_vmem=1G");
    assert_eq!(list(" lic=1 ,  h_vmem=2G "), "lic=1,h_vmem=2G");
    assert_eq!(list("a='x y' b"), "a='x y',b");
}

#[test]
fn requests_have_one_form_however_they_are_written() {
    for (text, expected) in [
        ("l=1", "lic=1"),
        ("lic=1,h_rt=60,l=2", "h_rt=60,lic=2"),
        ("h_rt=1:0:0", "h_rt=3600"),
        ("h_rt=1::", "h_rt=3600"),
        ("h_rt=:30:", "h_rt=1800"),
        ("h_rt=0:90:0", "h_rt=5400"),
        ("h_rt=1.5", "h_rt=2"),
        ("h_rt=1K,s_rt=0x10", "h_rt=1024,s_rt=16"),
        ("h_rt=INFINITY,s_rt=infinity", "h_rt=INFINITY,s_rt=infinity"),
        ("h_rt=abc", "h_rt=abc"),
        ("excl", "exclusive=TRUE"),
        ("excl=1", "exclusive=1"),
        ("dwg=false", "display_win_gui=false"),
        ("h_rt=0", "h_rt=0"),
        ("h_rt=010", "h_rt=8"),
        (
            "vf=01G,mf=1.50g,h_vmem=infinity",
            "virtual_free=01G,mem_free=1.50g,h_vmem=infinity",
        ),
        ("a=lx*,h=node*,q=all.q", "arch=lx*,hostname=node*,qname=all.q"),
        ("vf=3G,h_rt=5,virtual_free=1G", "h_rt=5,virtual_free=1G"),
        ("nosuch=1:0:0,nosuch2", "nosuch=1:0:0,nosuch2"),
        ("nla=1", "nla=1"),
        ("h_vmem", "h_vmem"),
    ] {
        let list = ResourceList::parse(text).unwrap().canonical(&site());
        assert_eq!(list.to_string(), expected, "{text}");
        assert_eq!(list.clone().canonical(&site()), list, "{text}");
    }
}

/// The built-in complex with some attributes of a site.
fn site() -> Complex {
    let own = "lic l INT <= YES YES 0 0\nlsa lsa INT <= YES NO 0 0\nexclusive excl BOOL EXCL YES YES 0 0\n";
    Complex::parse(&format!("{}{own}", Complex::built_in())).unwrap()
}

fn resolved(text: &str, purpose: RequestPurpose) -> Result<Vec<String>, Vec<String>> {
    let list = ResourceList::parse(text).unwrap();
    let print = |resolved: ResolvedRequest| format!("{}={}", resolved.attribute, resolved.value);
    match list.resolve_for(&site(), purpose) {
        Ok(resolved) => Ok(resolved.into_iter().map(print).collect()),
        Err(refusals) => Err(refusals.into_iter().map(|refusal| refusal.what).collect()),
    }
}

#[test]
fn requests_are_resolved_to_full_names_and_base_units() {
    let cases = [
        ("h_vmem=1g,h_rt=90", vec!["h_vmem=1000000000", "h_rt=90"]),
        ("h_vmem=1.5G", vec!["h_vmem=1610612736"]),
        ("h_vmem=infinity", vec!["h_vmem=INFINITY"]),
        ("lsa=1k,l=3", vec!["lsa=1000", "lic=3"]),
        ("dwg,excl", vec!["display_win_gui=1", "exclusive=1"]),
        ("excl=false", vec!["exclusive=0"]),
        ("a=lx*|sol*,h=node[0-9]", vec!["arch=lx*|sol*", "hostname=node[0-9]"]),
        ("mf=1G,h_rt=1,mem_free=2G", vec!["mem_free=2147483648", "h_rt=1"]),
        ("", vec![]),
    ];
    for (text, expected) in cases {
        assert_eq!(
            resolved(text, RequestPurpose::Hard),
            Ok(expected.into_iter().map(str::to_owned).collect()),
            "{text}"
        );
    }
}

#[test]
fn requests_are_refused_in_the_words_of_8_1_9() {
    let cases = [
        ("nosuchres=1", "unknown resource \"nosuchres\""),
        ("h_vmem=abc", "attribute \"h_vmem\" is not a memory value"),
        ("h_vmem=", "denied: missing value for resource \"h_vmem\""),
        ("h_vmem", "denied: missing value for resource \"h_vmem\""),
        ("h_rt=1:2:3:4", "attribute \"h_rt\" is not a time value"),
        ("h_rt=abc", "attribute \"h_rt\" is not a time value"),
        ("h_rt=-5", "denied: negative value for resource \"h_rt\""),
        (
            "slots=2",
            "\"job\" denied: use parallel environments instead of requesting slots explicitly",
        ),
        (
            "s=2",
            "\"job\" denied: use parallel environments instead of requesting slots explicitly",
        ),
        (
            "np_load_avg=1",
            "resource \"np_load_avg\" configured as non requestable",
        ),
        ("nla=1", "resource \"nla\" configured as non requestable"),
        (
            "l=infinity",
            "attribute \"lic\" is not a value that can be set to infinity",
        ),
        (
            "display_win_gui=maybe",
            "attribute \"display_win_gui\" is not a boolean value",
        ),
        ("arch=lx|", "Parse error on position 3 of the expression \"lx|\"."),
    ];
    for (text, expected) in cases {
        assert_eq!(
            resolved(text, RequestPurpose::Hard),
            Err(vec![expected.to_owned()]),
            "{text}"
        );
    }
    assert_eq!(
        resolved("x=1,y=2", RequestPurpose::Hard).map_err(|refusals| refusals.len()),
        Err(2)
    );
}

#[test]
fn soft_requests_and_filters_have_rules_of_their_own() {
    let soft = "denied: soft requests on consumables like \"lic\" are not supported";
    assert_eq!(resolved("lic=1", RequestPurpose::Soft), Err(vec![soft.to_owned()]));
    assert_eq!(resolved("lsa=1", RequestPurpose::Soft), Ok(vec!["lsa=1".to_owned()]));
    let filter = vec![
        "slots=4".to_owned(),
        "load_avg=100000000".to_owned(),
        "lsa=-1".to_owned(),
    ];
    assert_eq!(resolved("s=4,load_avg=100,lsa=-1", RequestPurpose::Filter), Ok(filter));
    assert!(resolved("nosuch=1", RequestPurpose::Filter).is_err());
}

#[test]
fn a_resolved_request_gives_its_amount_or_its_pattern() {
    let list = ResourceList::parse("h_rt=60,arch=lx*")
        .unwrap()
        .resolve(&site())
        .unwrap();
    assert_eq!(list[0].value.amount(), Some(Amount::from_base(60)));
    assert_eq!(
        (list[1].value.amount(), list[1].value.pattern().map(|p| p.as_str())),
        (None, Some("lx*"))
    );
    let json = serde_json::to_string(&list).unwrap();
    assert_eq!(serde_json::from_str::<Vec<ResolvedRequest>>(&json).unwrap(), list);
}

proptest! {
    #[test]
    fn a_printed_slot_range_reads_back(parts in prop::collection::vec((1u32..50, 1u32..50), 1..8)) {
        let text = parts.iter().map(|(a, b)| format!("{a}-{b}")).collect::<Vec<_>>().join(",");
        let range = slots(&text);
        prop_assert_eq!(&slots(&range.to_string()), &range);
        for n in 1..60 {
            prop_assert_eq!(range.contains(n), parts.iter().any(|(a, b)| (*a.min(b)..=*a.max(b)).contains(&n)));
        }
    }

    #[test]
    fn a_task_set_is_a_set(steps in prop::collection::vec((any::<bool>(), 1u32..40), 0..80)) {
        let mut set = TaskSet::default();
        let mut model = std::collections::BTreeSet::new();
        for (add, task) in steps {
            let changed = if add { set.insert(TaskId(task)) } else { set.remove(TaskId(task)) };
            prop_assert_eq!(changed, if add { model.insert(task) } else { model.remove(&task) });
        }
        prop_assert_eq!(set.iter().map(|task| task.0).collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
        prop_assert_eq!(set.len() as usize, model.len());
        prop_assert_eq!(&tasks(&set.to_string()), &set);
        prop_assert_eq!(&set.iter().collect::<TaskSet>(), &set);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,30}") {
        let _ = (SlotRange::parse(&text), TaskRange::parse(&text), TaskSet::parse(&text), ResourceList::parse(&text));
    }

    #[test]
    fn no_text_of_digits_panics(text in "[-0-9:,]{0,30}") {
        let _ = (SlotRange::parse(&text), TaskRange::parse(&text), TaskSet::parse(&text));
    }
}
