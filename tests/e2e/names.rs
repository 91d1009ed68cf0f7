//! A host by each of its names: short, full, in any case, aliases; at every entry of a real cell.

use crate::hosts::{can_have_hosts, line_of, master, reports, submit_on, token};
use gridwright_tests::cell::{Cell, CommandUser, Network};
use std::sync::Arc;

/// Every name of the host `h2` below, its own one first.
const NAMES: [&str; 5] = ["h2", "H2", "h2.example.org", "h2-ib", "H2-IB"];

/// Gives the cell a second name of `h2`, and starts its master again, which reads such files once.
fn with_alias(master: &Cell) {
    let file = master.dir().join("default/common/host_aliases");
    std::fs::write(&file, "h2 h2-ib\n").unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    master.down(&[]).ok();
    master.bring_up(&[]).ok();
}

#[test]
fn every_name_of_a_host_leads_to_it_at_every_entry() {
    if !can_have_hosts() {
        return;
    }
    let network = Arc::new(Network::with_hosts(&["h1", "h2"]));
    let master = master(&network);
    with_alias(&master);
    let other = Cell::on(&network, "h2");
    let dir = other.dir_word();
    let given = token(&master, &["--hosts", "h2-ib"]);
    other
        .admin(&["join", "h1:6444", &given, "--dir", &dir, "--host", "H2-ib"])
        .ok();
    assert!(reports(&master, "h2"), "{}", master.admin(&["qhost"]));
    assert!(line_of(&master, "h2-ib").is_empty());
    for name in NAMES {
        asked_by(&master, name);
        changed_by(&master, name);
    }
    let job = submit_on(&master, "h2-ib", &["-b", "y", "true"]);
    assert_eq!(master.accounted(&job, 1)[0].value("hostname"), "h2");
    for name in NAMES {
        let record = master.user(&["qacct", "-j", &job, "-h", name]).ok().out;
        assert!(record.contains("hostname     h2"), "{name}: {record}");
    }
    master.admin(&["qconf", "-as", "H2-IB"]).ok();
    other.run(CommandUser::User, &["qsub", "-b", "y", "true"]).ok();
    assert!(
        master
            .admin(&["host", "revoke", "h2-ib"])
            .ok()
            .out
            .contains("host h2 is revoked")
    );
}

/// Questions.
fn asked_by(master: &Cell, name: &str) {
    let ask = |words: &[&str]| master.user(words).ok().out;
    let of_queue = format!("all.q@{name}");
    assert_eq!(ask(&["qselect", "-q", &of_queue]), "all.q@h2\n", "{name}");
    assert_eq!(ask(&["qselect", "-l", &format!("h={name}")]), "all.q@h2\n", "{name}");
    let hosts = ask(&["qhost", "-h", name]);
    assert!(
        hosts.lines().any(|line| line.starts_with("h2 ")) && !hosts.contains("h1 "),
        "{name}: {hosts}"
    );
    let instances = ask(&["qstat", "-f", "-q", &of_queue]);
    assert!(
        instances.contains("all.q@h2 ") && !instances.contains("all.q@h1"),
        "{name}: {instances}"
    );
    for words in [["qconf", "-se", name], ["qconf", "-sq", &of_queue]] {
        assert!(
            ask(&words)
                .lines()
                .any(|line| line.starts_with("hostname") && line.ends_with(" h2")),
            "{words:?}"
        );
    }
}

/// Changes, of which the last one undoes those before it.
fn changed_by(master: &Cell, name: &str) {
    let of_queue = format!("all.q@{name}");
    master.admin(&["qmod", "-d", &of_queue]).ok();
    let waiting = master.submit(&["-q", &of_queue, "-l", &format!("h=!{name}|{name}"), "-b", "y", "true"]);
    let listing = master.user(&["qstat", "-q", "all.q@h2", "-u", "*", "-s", "p"]).ok().out;
    assert!(listing.contains(&waiting), "{name}: {listing}");
    let shown = master.user(&["qstat", "-j", &waiting]).ok().out;
    assert!(
        shown
            .lines()
            .any(|line| line.starts_with("hard_queue_list") && line.ends_with("all.q@h2"))
            || name == "H2"
    );
    master.user(&["qalter", "-q", &of_queue, &waiting]).ok();
    master
        .admin(&["qconf", "-mattr", "queue", "slots", "3", &of_queue])
        .ok();
    assert!(
        master.admin(&["qconf", "-sq", "all.q"]).ok().out.contains("[h2=3]"),
        "{name}"
    );
    master.admin(&["qconf", "-purge", "queue", "slots", &of_queue]).ok();
    master.admin(&["qmod", "-e", &of_queue]).ok();
    assert_eq!(master.accounted(&waiting, 1)[0].value("hostname"), "h2", "{name}");
}

#[test]
fn domains_count_only_where_the_bootstrap_file_says_so() {
    let cell = Cell::up();
    // A host that does not resolve and has not joined comes with a saved cell alone.
    let add = |host: &str| {
        let saved = cell.dir().with_extension(host);
        std::fs::create_dir_all(saved.join("hostgroups")).unwrap();
        let group = format!("@{host}");
        std::fs::write(
            saved.join("hostgroups").join(&group),
            format!("group_name {group}\nhostlist {host}\n"),
        )
        .unwrap();
        let lists = [
            "load_scaling",
            "complex_values",
            "user_lists",
            "xuser_lists",
            "projects",
            "xprojects",
        ];
        let lists = lists.into_iter().chain(["usage_scaling", "report_variables"]);
        let lists: String = lists.map(|list| format!("{list} NONE\n")).collect();
        std::fs::create_dir_all(saved.join("execution")).unwrap();
        std::fs::write(saved.join("execution").join(host), format!("hostname {host}\n{lists}")).unwrap();
        cell.admin(&["qconf", "-import", saved.to_str().unwrap()]).ok();
        std::fs::remove_dir_all(&saved).unwrap();
    };
    let unknown = cell.admin(&["qconf", "-aattr", "hostgroup", "hostlist", "n1.a.org", "@allhosts"]);
    unknown.refused(&["unable to resolve host \"n1.a.org\""]);
    add("n1.a.org");
    cell.admin(&["qconf", "-ah", "n1.a.org"]).ok();
    let again = cell.admin(&["qconf", "-ah", "n1.b.org"]).ok();
    assert!(again.err.contains("adminhost \"n1.a.org\" already exists"), "{again}");
    let file = cell.dir().join("default/common/bootstrap");
    let text = std::fs::read_to_string(&file).unwrap();
    let others = text.lines().filter(|line| !line.starts_with("ignore_fqdn"));
    let others: String = others.fold(String::new(), |all, line| all + line + "\n");
    let write = |line: &str| std::fs::write(&file, format!("{others}{line}\n")).unwrap();
    write("ignore_fqdn false");
    cell.down(&[]).ok();
    cell.bring_up(&[]).ok();
    cell.admin(&["qconf", "-ah", "n1.b.org"])
        .refused(&["can't resolve hostname \"n1.b.org\""]);
    add("n1.b.org");
    cell.admin(&["qconf", "-ah", "n1.b.org"]).ok();
    let listed = cell.admin(&["qconf", "-sh"]).ok().out;
    assert!(listed.contains("n1.a.org") && listed.contains("n1.b.org"), "{listed}");
    write("ignore_fqdn perhaps");
    cell.down(&[]).ok();
    cell.bring_up(&[])
        .refused(&["bootstrap", "line", "perhaps", "true or false"]);
}
