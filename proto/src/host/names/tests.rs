use super::*;

const ALIASES: &str = "# canonical first\nn1 n1-ib\tN1-ETH\n\nother  n1-ib gone\n";
const COMPARED: &str = "admin_user sgeadmin\nignore_fqdn false\ndefault_domain none\n";
const DEFAULT: &str = "ignore_fqdn no\ndefault_domain A.org\n";

/// `bootstrap` is a bootstrap file; an empty one has the shipped rules.
fn check(bootstrap: &str, known: &[&str], text: &str, expected: &str) {
    let naming = Naming::default()
        .with_aliases(ALIASES)
        .with_bootstrap(bootstrap)
        .unwrap();
    let known: BTreeSet<HostName> = known.iter().map(|host| HostName::new(host)).collect();
    let here = HostName::new("login");
    assert_eq!(
        HostNames::new(vec![&known], &naming, &here).canonical(text).as_str(),
        expected,
        "{text} of {known:?}"
    );
}

#[test]
fn every_name_of_a_host_leads_to_it() {
    for bootstrap in ["", COMPARED] {
        for text in [
            "n1",
            "N1",
            "n1.",
            " n1 ",
            "n1.example.org",
            "N1.Example.ORG.",
            "n1-ib",
            "n1-eth",
        ] {
            check(bootstrap, &["n1", "n2"], text, "n1");
        }
        check(bootstrap, &["n1.a.org", "n2"], "n1", "n1.a.org");
        check(bootstrap, &["n1.a.org", "n2"], "n1-ib", "n1.a.org");
        check(bootstrap, &["n1"], "127.0.1.1", "login");
        check(bootstrap, &["global", "n1"], "GLOBAL", "global");
    }
}

#[test]
fn what_names_several_hosts_or_none_stays_as_it_is() {
    for bootstrap in ["", COMPARED] {
        check(bootstrap, &["n1.a.org", "n1.b.org"], "n1", "n1");
        check(bootstrap, &["n1.a.org", "n1.b.org"], "n1.b.org", "n1.b.org");
        check(bootstrap, &["n1"], "N7", "n7");
        check(bootstrap, &["n1"], "gone", "other");
        check(bootstrap, &["10.0.0.1"], "10.0.0.2", "10.0.0.2");
        check(bootstrap, &["n10", "n1-x"], "n1", "n1");
    }
}

#[test]
fn domains_count_as_the_bootstrap_file_says() {
    check("", &["n1.a.org"], "n1.b.org", "n1.a.org");
    check(COMPARED, &["n1.a.org"], "n1.b.org", "n1.b.org");
    check(DEFAULT, &["n1.a.org", "n1.b.org"], "n1", "n1.a.org");
    check(DEFAULT, &["n1"], "n1.a.org", "n1");
    check(DEFAULT, &["n1"], "n1.b.org", "n1.b.org");
    check(DEFAULT, &["n1.b.org"], "n1", "n1");
}

#[test]
fn a_value_that_means_nothing_is_refused_with_its_line() {
    for (text, value) in [
        ("x y\nignore_fqdn maybe", "maybe"),
        ("\ndefault_domain a_b", "a_b"),
        ("\nignore_fqdn", "\"\""),
    ] {
        let refusal = Naming::default().with_bootstrap(text).unwrap_err();
        assert!(
            refusal.what.contains(value) && refusal.place == "line 2" && !refusal.fix.is_empty(),
            "{refusal:?}"
        );
    }
}

#[test]
fn names_inside_expressions_queues_and_requests_are_the_cells() {
    let naming = Naming::default().with_aliases(ALIASES);
    let known: BTreeSet<HostName> = ["n1".into(), "n2.a.org".into()].into();
    let here = HostName::new("n1");
    let names = HostNames::new(vec![&known], &naming, &here);
    for (text, expected) in [
        ("n1-ib", "n1"),
        ("N1", "n1"),
        ("N1|N2", "N1|n2.a.org"),
        ("N*", "N*"),
        ("NoSuch", "NoSuch"),
        ("!(n1-ib|n2)&x*", "!(n1|n2.a.org)&x*"),
        ("n1-ib | n?", "n1 | n?"),
        ("localhost", "n1"),
        ("nosuch", "nosuch"),
        ("", ""),
    ] {
        assert_eq!(names.in_expression(text), expected, "{text}");
    }
    for (text, expected) in [
        ("all.q@n1-ib", "all.q@n1"),
        ("all.q@N1", "all.q@n1"),
        ("@n2", "@n2.a.org"),
        ("all.q@@n1-ib", "all.q@@n1-ib"),
        ("n1-ib", "n1-ib"),
    ] {
        assert_eq!(names.in_queue(text), expected, "{text}");
    }
    let mut requests: Vec<ResourceRequest> = crate::request::ResourceList::parse("h=n1-ib,arch=n1-ib")
        .unwrap()
        .into();
    names.in_requests(&mut requests, &Complex::built_in());
    assert_eq!(
        requests.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["h=n1", "arch=n1-ib"]
    );
}
