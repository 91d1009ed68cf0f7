//! The texts of requests and topologies, and the choices of a recorded Grid Engine 8.1.9.

use super::*;

fn topology(text: &str) -> Topology {
    Topology::parse(text).unwrap()
}

#[test]
fn strategies_are_shown_as_8_1_9_shows_them() {
    for (given, shown) in [
        ("linear", "linear:slots"),
        ("linear:", "linear:slots"),
        ("linear:slots", "linear:slots"),
        ("linear_automatic", "linear:slots"),
        ("linear_automatic:2", "linear:2"),
        ("linear:1:", "linear:1"),
        ("linear:0", "linear:0"),
        ("linear:2:1,1", "linear:2:1,1"),
        ("linear:slots:0,0", "linear:slots:0,0"),
        ("striding:2:2", "striding:2:2"),
        ("striding:2:1:", "striding:2:1"),
        ("striding_automatic:2:1", "striding:2:1"),
        ("striding:2:1:0,0", "striding:2:1:0,0"),
        ("striding:2:0", "striding:2:0"),
        ("explicit:0,1", "explicit:0,1"),
        ("explicit:0,0:1,3", "explicit:0,0:1,3"),
        ("explicit:0,0:", "explicit:0,0"),
    ] {
        let strategy: BindingStrategy = given.parse().unwrap();
        assert_eq!(strategy.to_string(), shown, "{given}");
        assert_eq!(shown.parse(), Ok(strategy), "{given}");
    }
}

#[test]
fn wrong_strategies_are_refused_with_the_recorded_words() {
    const NO_STRATEGY: &str = "couldn't parse binding parameter (no strategy found)";
    for (given, words) in [
        ("nonsense:1", NO_STRATEGY),
        ("one_socket:1", NO_STRATEGY),
        ("balance_sockets:1", NO_STRATEGY),
        ("set", NO_STRATEGY),
        ("LINEAR:2", NO_STRATEGY),
        // 8.1.9 takes these two for `linear:slots`.
        ("linear2", NO_STRATEGY),
        ("linear,1", NO_STRATEGY),
        ("linear:x", "couldn't parse amount (linear)"),
        ("linear:-1", "couldn't parse amount (linear)"),
        ("linear:1x", "couldn't parse amount (linear)"),
        ("linear:1:x,0", "couldn't parse amount (linear)"),
        ("linear:1:,0", "couldn't parse amount (linear)"),
        ("linear:1:0", "couldn't parse core number (linear)"),
        ("linear:1:0,x", "couldn't parse core number (linear)"),
        ("linear:1:0,", "couldn't parse core number (linear)"),
        // 8.1.9 takes another number, and leaves the rest out.
        ("linear:99999999999", "couldn't parse amount (linear)"),
        ("linear:1:0,0:1", "couldn't parse core number (linear)"),
        ("striding", "couldn't parse amount (striding)"),
        ("striding:", "couldn't parse amount (striding)"),
        ("striding:2", "couldn't parse amount (striding)"),
        ("striding:2:x", "couldn't parse amount (striding)"),
        ("striding::2", "couldn't parse amount (striding)"),
        ("striding:slots:2", "couldn't parse amount (striding)"),
        ("striding:2:2:0", "couldn't parse core number (striding)"),
        ("striding:2:2:,0", "couldn't parse core number (striding)"),
        ("striding:2:2:x,0", "couldn't parse socket number (striding)"),
        ("striding:2:2:0,x", "couldn't parse core number (striding)"),
        ("explicit", "'explicit:' not found in string!"),
        ("explicit:", "No <socket,core> pair given!"),
        ("explicit:0", "Missing first core number!"),
        ("explicit:0,", "Missing first core number!"),
        ("explicit:,0", "Missing first core number!"),
        ("explicit:x,0", "First socket is not a number!"),
        ("explicit:-1,0", "First socket is not a number!"),
        ("explicit:0,x", "First core is not a number!"),
        ("explicit:0,0,1,0", "First core is not a number!"),
        ("explicit:0,0:1", "No core for a given socket!"),
        ("explicit:0,0:,1", "No core for a given socket!"),
        ("explicit:0,0:1,", "No core for a given socket!"),
        ("explicit:0,0:x,1", "Socket is not a number!"),
        ("explicit:0,0::0,1", "Socket is not a number!"),
        ("explicit:0,0:1,x", "Core is not a number!"),
        ("explicit:0,0:0,0", "<socket,core> pairs are not unique!"),
    ] {
        let refusal = given.parse::<BindingStrategy>().unwrap_err();
        assert_eq!(refusal.to_string(), words, "{given}");
    }
}

#[test]
fn topologies_are_read_and_printed() {
    for text in ["", "SCC", "ScC", "SCTTCTT", "SCttcttCTTSCTTcttCTtCTT", "SCSC", "SCCTT"] {
        let expected = text.replace("Ctt", "ctt");
        assert_eq!(topology(text).to_string(), expected, "{text}");
    }
    let detailed = topology("NSNCTTCTTNCTTEESNCCNCC");
    assert_eq!(detailed.detailed(), "SNCTTCTTNCTTEESNCCNCC");
    assert_eq!(detailed.to_string(), "SCTTCTTCTTCCSCCCC");
    let nodes: Vec<u32> = detailed.cores().iter().map(|core| core.node).collect();
    assert_eq!(nodes, [0, 0, 1, 1, 1, 2, 2, 3, 3]);
    for (text, error) in [
        ("SCX", TopologyError::Letter('X')),
        ("C", TopologyError::Order('C')),
        ("ST", TopologyError::Order('T')),
        ("SCCST", TopologyError::Order('T')),
    ] {
        assert_eq!(Topology::parse(text), Err(error), "{text}");
    }
    assert_eq!(Topology::parse(&"S".repeat(20_000)), Err(TopologyError::TooLong));
    assert_eq!(
        Topology::parse(&format!("SC{}", "T".repeat(65))),
        Err(TopologyError::Threads)
    );
}

#[test]
fn lists_of_processors_are_in_the_form_of_the_kernel() {
    for text in ["0", "0-3", "0-1,4,8-10"] {
        let list: ProcessorList = text.parse().unwrap();
        assert_eq!(list.to_string(), text);
    }
    assert_eq!(ProcessorList::new(vec![5, 1, 0, 1]).to_string(), "0-1,5");
    for bad in ["", "a", "3-1", "0-", "0-4294967295", "-1"] {
        assert_eq!(bad.parse::<ProcessorList>(), Err(BadProcessorList), "{bad:?}");
    }
}

/// The cores of one request after the other on a host, as places or as the reason.
fn check(host: &str, requests: &[(&str, &str)]) {
    let mut in_use = topology(host);
    for (request, expected) in requests {
        let chosen = choose(&in_use, &request.parse().unwrap(), 2);
        let told = match &chosen {
            Ok(cores) => cores
                .marked_places()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" "),
            Err(why) => why.to_string(),
        };
        assert_eq!(told, *expected, "{request} on {in_use}");
        chosen.into_iter().for_each(|cores| in_use.mark_all(&cores));
    }
}

#[test]
fn cores_are_chosen_as_8_1_9_chose_them_on_two_sockets_of_four_cores() {
    const HOST: &str = "SCTTCTTCTTCTTSCTTCTTCTTCTT";
    for (request, expected) in [
        ("linear:1", "0,0"),
        ("linear:slots", "0,0 0,1"),
        ("linear:3", "0,0 0,1 0,2"),
        ("linear:5", "0,0 0,1 0,2 0,3 1,0"),
        ("linear:8", "0,0 0,1 0,2 0,3 1,0 1,1 1,2 1,3"),
        ("linear:9", "it asks for 9 free cores, and the host has 8"),
        ("linear:4:1,0", "1,0 1,1 1,2 1,3"),
        ("linear:2:0,3", "0,3 1,0"),
        ("linear:2:1,3", "the host has fewer than 2 cores from core 1,3 on"),
        ("striding:2:2", "0,0 0,2"),
        ("striding:4:2", "0,0 0,2 1,0 1,2"),
        ("striding:8:1", "0,0 0,1 0,2 0,3 1,0 1,1 1,2 1,3"),
        ("striding:3:3", "0,0 0,3 1,2"),
        ("striding:2:4", "0,0 1,0"),
        ("striding:2:3:0,1", "0,1 1,0"),
        ("striding:2:8", "no 2 free cores are 8 apart from one another"),
        ("striding:2:0", "no 2 free cores are 0 apart from one another"),
        ("striding:2:1:0,0", "0,0 0,1"),
        ("explicit:0,1:1,3", "0,1 1,3"),
        ("explicit:3,0", "the host has no core 3,0"),
        ("linear:0", "it asks for no cores"),
    ] {
        check(HOST, &[(request, expected)]);
    }
    check(
        HOST,
        &[
            ("linear:3", "0,0 0,1 0,2"),
            ("linear:3", "1,0 1,1 1,2"),
            ("linear:3", "it asks for 3 free cores, and the host has 2"),
            ("explicit:0,2", "core 0,2 is in use by another task"),
            ("linear:2", "0,3 1,3"),
        ],
    );
    check(
        HOST,
        &[
            ("striding:2:2", "0,0 0,2"),
            ("striding:2:2", "0,1 0,3"),
            ("striding:2:2", "1,0 1,2"),
        ],
    );
}

#[test]
fn a_host_that_comes_back_with_fewer_cores_keeps_what_it_still_has() {
    let mut host = topology("SCC");
    host.mark_all(&topology("SCcCcSc"));
    assert_eq!(host.to_string(), "SCc");
}

#[test]
fn stored_outcomes_are_read_back() {
    for outcome in [
        BindingOutcome::Bound("ScC".to_owned()),
        BindingOutcome::Unbound(BindingObstacle::TooFew { wanted: 3, free: 2 }),
        BindingOutcome::Unbound(BindingObstacle::Disabled),
    ] {
        let host = HostName::new("vm");
        let binding = HostBinding { host, outcome };
        let stored = rmp_serde::to_vec_named(&binding).unwrap();
        assert_eq!(rmp_serde::from_slice::<HostBinding>(&stored).unwrap(), binding);
    }
}
